"""The rules of ``repair``, a family of known failures a file."""
