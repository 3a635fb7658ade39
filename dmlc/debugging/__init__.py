"""Tools that look for the wrong node: differences of two models, the first value that parts, bisection,
reduction to the smallest model with a fault; and the records of their results.

The names are loaded when they are first asked for.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dmlc.debugging.bisection import BisectResult, BisectStep, bisect
    from dmlc.debugging.constants import ConstantChange
    from dmlc.debugging.first_difference import ComparedValue, Location
    from dmlc.debugging.insides import NodeRecord
    from dmlc.debugging.model_diff import EntryChange, ModelDiff, diff
    from dmlc.debugging.node_changes import NodeChange, NodeSummary
    from dmlc.debugging.reproduction import Repro, repro
    from dmlc.debugging.type_changes import TypeChange
    from dmlc.debugging.verification import LocatedVerdict, last_line, locate

__all__ = [
    "BisectResult",
    "BisectStep",
    "ComparedValue",
    "ConstantChange",
    "EntryChange",
    "LocatedVerdict",
    "Location",
    "ModelDiff",
    "NodeChange",
    "NodeRecord",
    "NodeSummary",
    "Repro",
    "TypeChange",
    "bisect",
    "diff",
    "last_line",
    "locate",
    "repro",
]

_HOMES = {
    "BisectResult": "bisection",
    "BisectStep": "bisection",
    "ComparedValue": "first_difference",
    "ConstantChange": "constants",
    "EntryChange": "model_diff",
    "LocatedVerdict": "verification",
    "Location": "first_difference",
    "ModelDiff": "model_diff",
    "NodeChange": "node_changes",
    "NodeRecord": "insides",
    "NodeSummary": "node_changes",
    "Repro": "reproduction",
    "TypeChange": "type_changes",
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
