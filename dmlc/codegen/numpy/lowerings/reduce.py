"""Reductions. Sums and products of f16 are taken in f32; sums and products of integers stay in their dtype and wrap."""

from __future__ import annotations

from dmlc.codegen.numpy import support
from dmlc.codegen.numpy.expr import Argument, Expr, infix
from dmlc.codegen.numpy.registry import NumpyCall, axis_or_axes, lowers
from dmlc.ir import product
from dmlc.ir.dtype import DType, f16, f32, i64, u64
from dmlc.ops import reduce as ops
from dmlc.ops.reduce import ReduceAttributes


def _over(call: NumpyCall) -> dict[str, Argument]:
    """``axis=`` and, where it is true, ``keepdims=`` of a NumPy reduction."""
    a: ReduceAttributes = call.attributes
    return {"axis": axis_or_axes(a.axes), **({"keepdims": True} if a.keepdims else {})}


def _total(call: NumpyCall, function: str, x: Expr) -> Expr:
    """``np.sum`` or ``np.prod``, which would else widen small integers."""
    dtype = call.operand_dtype
    needs = dtype is f16 or (dtype.is_integer and dtype.bits < 64)
    kind = {"dtype": call.dtype(dtype.accumulator)} if needs else {}
    return call.np(function, x, **_over(call), **kind)


def _kept_or_not(call: NumpyCall, total: Expr) -> Expr:
    """A result whose axes are kept as size 1, as the attribute says."""
    a: ReduceAttributes = call.attributes
    return total if a.keepdims else call.np("squeeze", total, axis=axis_or_axes(a.axes))


@lowers(ops.REDUCE_SUM, ops.REDUCE_PROD)
def _sum(call: NumpyCall) -> Expr:
    x = call.operand()
    if not call.attributes.axes:
        return x
    return call.narrow(_total(call, "sum" if call.node.op is ops.REDUCE_SUM else "prod", x))


@lowers(ops.REDUCE_L1)
def _l1(call: NumpyCall) -> Expr:
    x = call.np("abs", call.operand())
    return call.narrow(_total(call, "sum", x)) if call.attributes.axes else x


def _squares(call: NumpyCall) -> Expr:
    """The sum of squares; of f16 it stays f32."""
    kind = {"dtype": call.dtype(f32)} if call.operand_dtype is f16 else {}
    squares = call.np("square", call.operand(), **kind)
    return _total(call, "sum", squares) if call.attributes.axes else squares


@lowers(ops.REDUCE_SUM_SQUARE)
def _sum_square(call: NumpyCall) -> Expr:
    return call.narrow(_squares(call))


@lowers(ops.REDUCE_L2)
def _l2(call: NumpyCall) -> Expr:
    return call.narrow(call.np("sqrt", _squares(call)))


@lowers(ops.REDUCE_LOG_SUM)
def _log_sum(call: NumpyCall) -> Expr:
    if not call.attributes.axes:
        return call.np("log", call.operand())
    return call.narrow(call.np("log", _total(call, "sum", call.operand())))


@lowers(ops.REDUCE_LOG_SUM_EXP)
def _log_sum_exp(call: NumpyCall) -> Expr:
    a: ReduceAttributes = call.attributes
    if not a.axes:
        return call.operand()  # the logarithm of its own exponential
    total = call.support(support._log_sum_exp, call.wide(call.operand()), axes=axis_or_axes(a.axes))
    return call.narrow(_kept_or_not(call, total))


@lowers(ops.REDUCE_MAX, ops.REDUCE_MIN)
def _extreme(call: NumpyCall) -> Expr:
    a: ReduceAttributes = call.attributes
    x, dtype = call.operand(), call.operand_dtype
    if not a.axes:
        return x
    largest = call.node.op is ops.REDUCE_MAX
    if dtype.kind == "bool":
        return call.np("any" if largest else "all", x, **_over(call))
    start = {}
    if _may_be_empty(call):
        start["initial"] = call.number(dtype.numpy.type(dtype.lowest if largest else dtype.highest))
    return call.np("max" if largest else "min", x, **_over(call), **start)


def _may_be_empty(call: NumpyCall) -> bool:
    return any(call.scope.may_be_zero(call.operand_shape[axis]) for axis in call.attributes.axes)


@lowers(ops.REDUCE_MEAN)
def _mean(call: NumpyCall) -> Expr:
    a: ReduceAttributes = call.attributes
    dtype = call.operand_dtype
    x = call.operand()
    if not a.axes:
        return x
    if dtype.is_integer:
        return _integer_mean(call, x, dtype)
    if not _may_be_empty(call):
        return call.np("mean", x, **_over(call))  # takes f16 in f32 by itself
    total = _total(call, "sum", x)  # the mean of nothing is NaN, for which np.mean would warn
    return call.narrow(infix("/", total, _count(call, dtype.accumulator)))


def _count(call: NumpyCall, dtype: DType) -> Expr:
    size = product([call.operand_shape[axis] for axis in call.attributes.axes])
    return call.np(dtype.long_name, call.dim(size))


def _integer_mean(call: NumpyCall, x: Expr, dtype: DType) -> Expr:
    """Truncated toward zero. A 64-bit sum holds the narrower types."""
    a: ReduceAttributes = call.attributes
    if dtype.bits == 64:
        mean = call.support(support._integer_mean, x, axes=a.axes)
        return mean if not a.keepdims else call.np("expand_dims", mean, axis_or_axes(a.axes))
    accumulator = i64 if dtype.kind == "int" else u64
    total = call.np("sum", x, **_over(call), dtype=call.dtype(accumulator))
    if dtype.kind == "int":
        return call.cast(call.support(support._divide, total, _count(call, accumulator)), dtype)
    return call.cast(infix("//", total, _count(call, accumulator)), dtype)
