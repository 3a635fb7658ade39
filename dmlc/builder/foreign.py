"""Help for what users of NumPy write on tensors of the builder: what to write instead."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.diagnostics import DmlcError
from dmlc.ir import DimExpr, Operation
from dmlc.ops import OPERATIONS
from dmlc.ops.attributes import attribute_specs
from dmlc.ops.foreign import operation_named

_REDUCED = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all"}
_ATTRIBUTES = {"T": "dmlc.transpose(x)", "mT": "dmlc.transpose(x)", "ndim": "len(x.shape)", "size": "dmlc.size(x)"}


class NoAttribute(DmlcError, AttributeError):
    """A tensor has no such attribute; the message says what to write instead."""


class NotAnArray(DmlcError, TypeError):
    """A tensor is not an array; the message says which operation of dmlc to use."""


def instead(name: str, *, of_array: bool = False) -> str:
    """The call of dmlc for a method, a function or an attribute of NumPy; empty for a name that is not known."""
    if not of_array and name in _ATTRIBUTES:
        return _ATTRIBUTES[name]
    found = operation_named(name)
    if not found:
        return ""
    if found.startswith("reduce_"):
        return f"dmlc.{found}(x, axes=...)"
    specs = attribute_specs(OPERATIONS[found].attributes)
    operands = ["x", *["y"] * (len(OPERATIONS[found].operands) - 1)]
    return f"dmlc.{found}({', '.join([*operands, *[f'{spec.name}=...' for spec in specs if spec.required]])})"


def of_function(name: str, method: str) -> str:
    """The call of dmlc for a universal function of NumPy, or for its reduction."""
    return instead(_REDUCED.get(name, name) if method == "reduce" else name, of_array=True)


def with_keywords(op: Operation, extra: Sequence[object]) -> str:
    """The call with the attributes that were given by position as keywords; empty where they are too many."""
    names = [spec.name for spec in attribute_specs(op.attributes)]
    if not names or len(extra) > len(names) or not all(_is_plain(value) for value in extra):
        return ""
    given = [f"{name}={value!r}" for name, value in zip(names, extra, strict=False)]
    return f"dmlc.{op.name}({', '.join([*[operand.name for operand in op.operands], *given])})"


def _is_plain(value: object) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_is_plain, value))
    return isinstance(value, (int, float, str, DimExpr))
