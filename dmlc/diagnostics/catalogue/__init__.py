"""Every code, a module a family; importing this package fills ``CODES``."""

from dmlc.diagnostics.catalogue import bugs, builder, files, models, names, runs, shapes, syntax, targets

__all__ = ["bugs", "builder", "files", "models", "names", "runs", "shapes", "syntax", "targets"]
