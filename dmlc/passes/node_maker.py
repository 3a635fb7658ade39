"""Short spellings for the nodes that rules make."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dmlc.ir import Attributes, Dim, DimExpr, DType, Node, Operation, Value, product
from dmlc.ops import INFIX, OPERATIONS
from dmlc.ops.choose import CAST, CastAttributes
from dmlc.ops.constant import constant_of
from dmlc.ops.elementwise import UnaryOperation, attributes_of
from dmlc.ops.index import FULL, FullAttributes
from dmlc.ops.literals import attribute_array
from dmlc.ops.move import RESHAPE, ReshapeAttributes
from dmlc.passes.rewrite import Rewriter


class Maker:
    """Short spellings for the nodes that rules make."""

    __slots__ = ("rewriter",)

    def __init__(self, rewriter: Rewriter) -> None:
        self.rewriter: Rewriter = rewriter

    def __call__(self, op: Operation, *operands: Value, attributes: Attributes | None = None) -> Value:
        return self.rewriter.add(op, operands, attributes)

    def constant(self, value: Any, dtype: DType) -> Value:
        """A constant; integers wrap to the dtype."""
        array = np.asarray(value)
        if dtype.is_integer and array.dtype == object:
            array = np.asarray(array % 2**64).astype(np.uint64)
        return self.rewriter.constant(array.astype(dtype.numpy))

    def cast(self, value: Value, dtype: DType) -> Value:
        """The value in that dtype; itself where it has it, a new constant where it is one, or is one number."""
        if value.type.dtype is dtype:
            return value
        data = constant_of(value)
        if data is not None:
            return self.constant(data.array, dtype)
        if value.producer is not None and value.producer.op is FULL:
            a = value.producer.attributes_as(FullAttributes)
            if not isinstance(a.value, DimExpr):
                number = attribute_array(a.value, a.dtype, "value").astype(dtype.numpy).item()
                return self(FULL, attributes=FullAttributes(shape=a.shape, value=number, dtype=dtype))
        return self(CAST, value, attributes=CastAttributes(to=dtype))

    def reshape(self, value: Value, shape: Sequence[Dim]) -> Value:
        return (
            value
            if value.shape == tuple(shape)
            else self(RESHAPE, value, attributes=ReshapeAttributes(shape=tuple(shape)))
        )


def dtype_of(node: Node) -> DType:
    """The dtype of the first operand."""
    return node.operand(0).type.dtype


def composed_of(make: Maker, op: UnaryOperation, x: Value, attributes: Attributes) -> Value:
    """The operation's declared form in other operations, in the dtype of ``x``."""
    assert op.composed is not None

    def call(inner: str, *operands: Value | float) -> Value:
        return make(
            INFIX.get(inner) or OPERATIONS[inner],
            *[v if isinstance(v, Value) else make.constant(v, x.type.dtype) for v in operands],
        )

    composed: Value = op.composed(call, x, **attributes_of(op, attributes))
    return composed


def groups(axes: Sequence[int]) -> list[tuple[int, int]]:
    """Sorted axes as runs of neighbours: (first, last + 1) of each."""
    out: list[tuple[int, int]] = []
    for axis in axes:
        if out and out[-1][1] == axis:
            out[-1] = (out[-1][0], axis + 1)
        else:
            out.append((axis, axis + 1))
    return out


def around(shape: Sequence[Dim], first: int, last: int) -> tuple[Dim, Dim, Dim]:
    """Return the number of elements before, within and after the axes ``first`` to before ``last``."""
    return product(shape[:first]), product(shape[first:last]), product(shape[last:])
