"""Every order of a few values, through every way of selecting."""
