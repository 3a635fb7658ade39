"""The suites: each yields cases."""
