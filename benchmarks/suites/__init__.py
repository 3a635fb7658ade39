"""What is measured: each suite yields cases."""
