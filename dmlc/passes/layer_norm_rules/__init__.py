"""The rules of ``fuse-layer-norm``, one idea a file."""
