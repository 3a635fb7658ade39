"""Tools that look for the wrong node: differences of two models, the first value that parts, bisection,
reduction to the smallest model with a fault.

The names are loaded when they are first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dmlc.debugging.bisection import BisectResult, bisect
    from dmlc.debugging.first_difference import Location
    from dmlc.debugging.model_diff import ModelDiff, diff
    from dmlc.debugging.reproduction import Repro, repro
    from dmlc.debugging.verification import LocatedVerdict, last_line, locate

__all__ = [
    "BisectResult",
    "LocatedVerdict",
    "Location",
    "ModelDiff",
    "Repro",
    "bisect",
    "diff",
    "last_line",
    "locate",
    "repro",
]

_HOMES = {
    "BisectResult": "bisection",
    "LocatedVerdict": "verification",
    "Location": "first_difference",
    "ModelDiff": "model_diff",
    "Repro": "reproduction",
    "bisect": "bisection",
    "diff": "model_diff",
    "last_line": "verification",
    "locate": "verification",
    "repro": "reproduction",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'dmlc.debugging' has no attribute {name!r}")
    return getattr(importlib.import_module(f"dmlc.debugging.{_HOMES[name]}"), name)
