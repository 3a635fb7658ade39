"""Tools that look for the wrong node: differences of two models, the first value that parts, decomposition.

The names are loaded when they are first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dmlc.debugging.model_diff import ModelDiff, diff

__all__ = ["ModelDiff", "diff"]

_HOMES = {"ModelDiff": "model_diff", "diff": "model_diff"}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'dmlc.debugging' has no attribute {name!r}")
    return getattr(importlib.import_module(f"dmlc.debugging.{_HOMES[name]}"), name)
