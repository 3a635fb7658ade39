"""The rules of ``recognize-reduce``, one idea a file."""
