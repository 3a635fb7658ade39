"""Kinds of artifacts, by the suffix of the file that they are saved in."""

from __future__ import annotations

import os
from pathlib import Path

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue.runs import UNKNOWN_CHOICE

#: Kinds of artifacts by the suffix of the file they are saved in; longer suffixes first.
SUFFIXES = {".dxdispatch.json": "dxdispatch", ".onnx": "onnx", ".py": "numpy", ".dml": "dml"}


def kind_of(path: str | os.PathLike[str]) -> str:
    """Return the artifact kind of a file's suffix. Raises ``DmlcError`` E0556 (exit code 2)."""
    name = Path(path).name.lower()
    for suffix, kind in SUFFIXES.items():
        if name.endswith(suffix):
            return kind
    help = f"suffixes are {' '.join(SUFFIXES)}"
    raise fail(UNKNOWN_CHOICE, f"the suffix of {path} is not an output type", help=help, exit_code=2)
