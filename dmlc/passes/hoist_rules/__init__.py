"""The rules of ``hoist``, one idea a file."""
