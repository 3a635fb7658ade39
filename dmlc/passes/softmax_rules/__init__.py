"""The rules of ``fuse-softmax``, one idea a file."""
