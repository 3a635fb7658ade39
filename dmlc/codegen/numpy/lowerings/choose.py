"""Choosing and converting elements."""

from __future__ import annotations

from dmlc.codegen.numpy.expr import Expr
from dmlc.codegen.numpy.registry import NumpyCall, lowers
from dmlc.ops import choose as ops
from dmlc.ops.literals import attribute_array


@lowers(ops.WHERE, quiet=True)
def _where(call: NumpyCall) -> Expr:
    return call.np("where", call.operand(0), call.operand(1), call.operand(2))


@lowers(ops.CLIP)
def _clip(call: NumpyCall) -> Expr:
    a: ops.ClipAttributes = call.attributes
    dtype = call.operand_dtype
    low, high = [
        None if bound is None else call.literal(attribute_array(bound, dtype, None)[()]) for bound in (a.min, a.max)
    ]
    if low is None or high is None:
        return call.np("minimum" if low is None else "maximum", call.operand(), high if low is None else low)
    return call.np("clip", call.operand(), low, high)


@lowers(ops.CAST)
def _cast(call: NumpyCall) -> Expr:
    return call.cast(call.operand(), call.attributes.to)
