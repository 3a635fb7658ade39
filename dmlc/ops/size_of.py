"""``size(x)`` and ``size(x, axis=1)``: numbers that a type gives, so that no node is made."""

from __future__ import annotations

from typing import Any

from dmlc.ir import FOREIGN, Dim, Value, product
from dmlc.ops.attributes import AxisKind, Binding
from dmlc.ops.written import foreign_error

#: The name of the call, which is not an operation: it has no node.
SIZE = "size"


def size_of(x: Value, axis: Any = None, name: str | None = None) -> Dim:
    """Return the size of ``x`` along an axis, or its number of elements where ``axis`` is None.

    Raises ``OpError``: E0301 for an axis that does not exist, E0304 for what is not an axis, E0309 for a value whose
    type the language does not have.
    """
    type = x.type
    if type.dtype is FOREIGN:
        raise foreign_error("size", name or x.name or "it", 0)
    if axis is None:
        return product(type.shape)
    return type.shape[AxisKind().convert(axis, Binding("axis", SIZE, [type], [name or x.name or "it"]))]
