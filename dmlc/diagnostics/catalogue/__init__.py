"""Every code, a module a family; importing this package fills ``CODES``."""

from dmlc.diagnostics.catalogue import (
    advice,
    bugs,
    builder,
    dxdispatch,
    files,
    functions,
    limits,
    models,
    names,
    runs,
    searches,
    shapes,
    source_advice,
    syntax,
    targets,
)

__all__ = [
    "advice",
    "bugs",
    "builder",
    "dxdispatch",
    "files",
    "functions",
    "limits",
    "models",
    "names",
    "runs",
    "searches",
    "shapes",
    "source_advice",
    "syntax",
    "targets",
]
