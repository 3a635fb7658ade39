"""The same bytes in every process."""
