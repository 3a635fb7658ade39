"""Operations on indices, and tensors made from attributes alone."""

from __future__ import annotations

from typing import Any

from dmlc.codegen.numpy import support
from dmlc.codegen.numpy.expr import Expr
from dmlc.codegen.numpy.literals import number
from dmlc.codegen.numpy.registry import NumpyCall, lowers
from dmlc.ir import DimExpr
from dmlc.ops import index as ops
from dmlc.ops.literals import attribute_array


@lowers(ops.GATHER, quiet=True)
def _gather(call: NumpyCall) -> Expr:
    a: ops.GatherAttributes = call.attributes
    if a.batch_axes:
        operands = call.operand(0), call.operand(1)
        return call.support(support._gather_batch, *operands, axis=a.axis, batch_axes=a.batch_axes)
    return call.support(support._gather, call.operand(0), call.operand(1), axis=a.axis)


@lowers(ops.GATHER_ELEMENTS, quiet=True)
def _gather_elements(call: NumpyCall) -> Expr:
    return call.support(support._gather_along, call.operand(0), call.operand(1), axis=call.attributes.axis)


@lowers(ops.SCATTER_ELEMENTS, quiet=True)
def _scatter_elements(call: NumpyCall) -> Expr:
    operands = [call.operand(i) for i in range(3)]
    return call.support(support._scatter, *operands, axis=call.attributes.axis)


@lowers(ops.ONE_HOT, quiet=True)
def _one_hot(call: NumpyCall) -> Expr:
    a: ops.OneHotAttributes = call.attributes
    hot = call.support(support._one_hot, call.operand(), depth=call.dim(a.depth), axis=a.axis)
    on, off = [attribute_array(v, a.dtype, None)[()] for v in (a.on, a.off)]
    if on == 1 and _is_plain_zero(off):
        return call.cast(hot, a.dtype)
    return call.np("where", hot, call.number(on), call.number(off))


def _is_plain_zero(value: Any) -> bool:
    return bool(value == 0) and not bool(value.tobytes().strip(b"\0"))


@lowers(ops.IOTA)
def _iota(call: NumpyCall) -> Expr:
    a: ops.IotaAttributes = call.attributes
    # NumPy fills small types wrong or not at all beyond their range.
    if a.dtype.bits < 32 or a.dtype.is_float:
        return call.cast(call.np("arange", call.dim(a.length)), a.dtype)
    return call.np("arange", call.dim(a.length), dtype=call.dtype(a.dtype))


@lowers(ops.FULL, quiet=True)
def _full(call: NumpyCall) -> Expr:
    a: ops.FullAttributes = call.attributes
    if isinstance(a.value, DimExpr):
        if not a.shape:
            return call.np(a.dtype.long_name, call.dim(a.value))
        return call.np("full", call.dims(a.shape), call.dim(a.value), dtype=call.dtype(a.dtype))
    value = number(attribute_array(a.value, a.dtype, None)[()], call.scope.numpy)
    return call.np("full", call.dims(a.shape), value, dtype=call.dtype(a.dtype))
