"""The rules of ``fuse-selection``, one idea a file."""
