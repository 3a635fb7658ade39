"""The rules of ``canonicalize-reduce``, one idea a file."""
