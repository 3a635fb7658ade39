"""Written types: ``f32[N, 3]`` to the type of a value."""

from __future__ import annotations

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

#: NumPy's limit, in axes.
_MAX_RANK = 64
_MAX_SIZE = 2**63 - 1


def type_of(unit: Unit, written: tree.Type) -> TensorType:
    """The type that was written. Raises ``DmlcError`` E0211, E0332."""
    block = Block(unit, Frame())
    dtype = block.dtype(written.dtype)
    assert dtype is not None
    if len(written.sizes) > _MAX_RANK:
        message = f"a tensor has at most {_MAX_RANK} axes, not {len(written.sizes)}"
        raise fail(codes.WRONG_SIZE, message, Label(written.span))
    return TensorType(dtype, tuple([_size(run(block.evaluate(s, Asked.SIZE)), s) for s in written.sizes]))


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
