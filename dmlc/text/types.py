"""Written types: ``f32[N, 3]`` to the type of a value."""

from __future__ import annotations

from math import prod
from typing import Any

from dmlc.diagnostics import Label, fail
from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.ir import Dim, DimExpr, TensorType
from dmlc.text import tree
from dmlc.text.blocks import Block
from dmlc.text.evaluate import Asked
from dmlc.text.machine import run
from dmlc.text.scope import Frame
from dmlc.text.unit import Unit

_MAX_SIZE = 2**63 - 1


def type_of(unit: Unit, written: tree.Type) -> TensorType:
    """The type that was written. Raises ``DmlcError`` E0211, E0332, E0336."""
    block = Block(unit, Frame())
    dtype = block.dtype(written.dtype)
    assert dtype is not None
    if len(written.sizes) > unit.limits.rank:
        raise unit.limits.passed("rank", "this type has", len(written.sizes), Label(written.span))
    shape = tuple([_size(run(block.evaluate(s, Asked.SIZE)), s) for s in written.sizes])
    if prod([size for size in shape if isinstance(size, int)]) > _MAX_SIZE:
        raise fail(codes.WRONG_SIZE, "a tensor has at most 2^63 - 1 elements", Label(written.span))
    return TensorType(dtype, shape)


def _size(value: Any, expr: tree.Expr) -> Dim:
    if isinstance(value, DimExpr):
        return value
    if not isinstance(value, int) or isinstance(value, bool):
        help = "sizes look like 3, N, N * 2"
        raise fail(codes.WRONG_SIZE, "a size is an integer or a dim", Label(expr.span), help=help)
    if not 0 <= value <= _MAX_SIZE:
        help = "a size is 0 or more, and fits 64 bits"
        raise fail(codes.WRONG_SIZE, f"{value} is no size", Label(expr.span), help=help)
    return value
