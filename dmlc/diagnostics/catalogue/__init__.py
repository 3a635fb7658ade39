"""Every code, a module a family; importing this package fills ``CODES``."""

from dmlc.diagnostics.catalogue import bugs, files, names, shapes, syntax, targets

__all__ = ["bugs", "files", "names", "shapes", "syntax", "targets"]
