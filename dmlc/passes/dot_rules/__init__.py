"""The rules of ``fuse-dot``."""
