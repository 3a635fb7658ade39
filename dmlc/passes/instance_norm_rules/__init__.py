"""The rules of ``fuse-instance-norm``, one idea a file."""
