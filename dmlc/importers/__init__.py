"""ONNX models become graphs.

The names are loaded when they are first asked for: programs of the language need none of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dmlc.importers.again import read_again
    from dmlc.importers.broken import blaming
    from dmlc.importers.definitions import in_definitions, with_definitions, with_kernels
    from dmlc.importers.fixed_shapes import fix_shapes
    from dmlc.importers.function import ModelFunction
    from dmlc.importers.model import import_model, read_model
    from dmlc.importers.opset import choose_opset, join_opset, lost_definition, says_flattened, why_to_stay

__all__ = [
    "ModelFunction",
    "blaming",
    "choose_opset",
    "fix_shapes",
    "import_model",
    "in_definitions",
    "join_opset",
    "lost_definition",
    "read_again",
    "read_model",
    "says_flattened",
    "why_to_stay",
    "with_definitions",
    "with_kernels",
]

_HOMES = {
    "ModelFunction": "function",
    "blaming": "broken",
    "choose_opset": "opset",
    "fix_shapes": "fixed_shapes",
    "import_model": "model",
    "in_definitions": "definitions",
    "join_opset": "opset",
    "lost_definition": "opset",
    "read_again": "again",
    "read_model": "model",
    "says_flattened": "opset",
    "why_to_stay": "opset",
    "with_definitions": "definitions",
    "with_kernels": "definitions",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'dmlc.importers' has no attribute {name!r}")
    return getattr(importlib.import_module(f"dmlc.importers.{_HOMES[name]}"), name)
