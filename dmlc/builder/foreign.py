"""Help for what users of NumPy write on tensors of the builder: what to write instead."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dmlc.diagnostics import DmlcError
from dmlc.ir import DimExpr, Operation
from dmlc.ops import OPERATIONS
from dmlc.ops.attributes import attribute_specs
from dmlc.ops.foreign import instead_of, operation_named

_REDUCED = {"add": "sum", "multiply": "prod", "maximum": "max", "minimum": "min", "logical_and": "all"}
_ATTRIBUTES = {"T": "dmlc.transpose({0})", "mT": "dmlc.transpose({0})", "ndim": "len({0}.shape)"}
#: An operation of the language, called.
_CALLED = re.compile(r"(?<![\w.])([a-z]\w*)(?=\()")


class NoAttribute(DmlcError, AttributeError):
    """A tensor has no such attribute; the message says what to write instead."""


class NotAnArray(DmlcError, TypeError):
    """A tensor is not an array; the message says which operation of dmlc to use."""


def instead(name: str, call: tuple[Sequence[str], Mapping[str, str]] | None = None) -> str:
    """The call of dmlc for a method, a function or an attribute of NumPy or PyTorch; empty for an unknown name.

    ``call`` has the texts of its operands and keywords, None where the source is not at hand.
    """
    if name in _ATTRIBUTES:
        return _ATTRIBUTES[name].format(call[0][0] if call else "x")
    if call and (written := _in_python(instead_of(name, *call, is_foreign=True).text)):
        return written
    found = operation_named(name)
    if not found:
        return ""
    if found.startswith("reduce_"):
        return f"dmlc.{found}(x, axes=...)"
    specs = attribute_specs(OPERATIONS[found].attributes)
    operands = ["x", *["y"] * (len(OPERATIONS[found].operands) - 1)]
    return f"dmlc.{found}({', '.join([*operands, *[f'{spec.name}=...' for spec in specs if spec.required]])})"


def _in_python(text: str) -> str:
    """An expression of the language as one of the builder; empty where it has signs that Python lacks."""
    if "!" in text:
        return ""
    text = _CALLED.sub(lambda found: f"dmlc.{found[0]}" if found[0] in OPERATIONS else found[0], text)
    text = re.sub(r"\b(true|false|none)\b", lambda found: found[0].capitalize(), text)
    return re.sub(r" as (\w+)$", r'.astype("\1")', text)


def of_function(name: str, method: str, call: tuple[Sequence[str], Mapping[str, str]] | None) -> str:
    """The call of dmlc for a universal function of NumPy, or for its reduction."""
    return instead(_REDUCED.get(name, name) if method == "reduce" else name, call)


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
