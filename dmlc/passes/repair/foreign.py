"""Nodes of a model whose operand has an unknown rank, or whose axes are computed: repaired as ONNX operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dmlc.ir import FOREIGN, DType, ForeignType, Node, TensorType, Value, product
from dmlc.ir.dtype import bool_, i64
from dmlc.ops.opaque import attribute_of, title_of
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import KEEP, Lowered, lowers
from dmlc.passes.manager import REASSOCIATES

#: The first opset at which the axes of a reduction are an operand.
_AXES_OPERAND = {"ReduceSum": 13}
_ALL_AXES_OPERAND = 18


def element_dtype(value: Value) -> DType | None:
    """The dtype of a value, of one of unknown rank too; None if it is not known."""
    if value.type.dtype is not FOREIGN:
        return value.type.dtype
    from dmlc.onnx_schema.types import dtype_of_foreign  # loads onnx, which a model has loaded already

    return dtype_of_foreign(value.type)


def unsized_type(dtype: DType) -> ForeignType:
    from dmlc.onnx_schema.types import unsized

    return unsized(dtype)


class _Axes:
    """The axes of an opaque reduction: an operand, an attribute, or all; and whether they stay."""

    def __init__(self, node: Node, operand: Term | None) -> None:
        self.operand: Term | None = operand
        self.plain: Any = attribute_of(node, "axes")
        self.noop: bool = bool(attribute_of(node, "noop_with_empty_axes", 0))
        self.keeps: bool = bool(attribute_of(node, "keepdims", 1))

    def reduce(self, e: Sketch, op_type: str, x: Term, home: DType, *, keepdims: bool | None = None) -> Term:
        """A reduction over the axes, in the form that the operator has at the opset."""
        given: dict[str, Any] = {"keepdims": int(self.keeps if keepdims is None else keepdims)}
        operand = None
        if e.target.opset < _AXES_OPERAND.get(op_type, _ALL_AXES_OPERAND):
            if self.plain is not None:
                given["axes"] = self.plain
        else:
            operand = self.operand
            if operand is None and self.plain is not None:
                operand = e.number(self.plain, i64)
            if self.noop:
                given["noop_with_empty_axes"] = 1
        return e.onnx(op_type, unsized_type(home), x, *([] if operand is None else [operand]), **given)


def _has_fault(e: Sketch, faults: Sequence[str], op_type: str, parameter: str, x: Term) -> DType | None:
    """The dtype of the operand, of unknown rank too, if the operator has one of the faults on it."""
    dtype = element_dtype(x.value)
    found = dtype is not None and any(e.target.has_fault(fault, op_type, parameter, dtype) for fault in faults)
    return dtype if found else None


#: The faults of casts to bool.
_CASTS = ("cast-bool", "cast-integer-bool", "cast-int-bool")


@lowers(onnx=("Cast", "CastLike"), repairs=_CASTS)
def truth_of_unknown_rank(e: Sketch, node: Node, x: Term, *_: Term | None) -> Lowered:
    """A cast to bool of an unknown rank becomes Not(Equal(x, 0)), which asks for no rank."""
    if element_dtype(node.result) is not bool_:
        return KEEP
    dtype, type = _has_fault(e, _CASTS, title_of(node), "T1", x), node.result.type
    return KEEP if dtype is None else e.onnx("Not", type, e.onnx("Equal", type, x, e.number(0, dtype)))


@lowers(onnx=("ReduceLogSumExp",), repairs=("log-sum-exp",), gives=REASSOCIATES)
def shift_log_sum_exp_of_unknown_rank(e: Sketch, node: Node, x: Term, axes: Term | None = None) -> Lowered:
    """A ReduceLogSumExp of unknown rank, or over computed axes, has its maximum over the same axes taken out."""
    dtype, over = _has_fault(e, ["log-sum-exp"], "ReduceLogSumExp", "T", x), _Axes(node, axes)
    if dtype is None:
        return KEEP
    home = dtype.accumulator
    any_shape = unsized_type(home)
    like_x = any_shape if x.dtype is FOREIGN else x.type.with_dtype(home)
    if home is not dtype:
        x = e.onnx("Cast", like_x, x, to=_number(home))
    largest = float(np.finfo(home.numpy).max)
    low, high = e.number(-largest, home), e.number(largest, home)

    def peak(keepdims: bool) -> Term:
        found = over.reduce(e, "ReduceMax", x, home, keepdims=keepdims)
        return e.onnx("Min", any_shape, e.onnx("Max", any_shape, found, low), high)  # no inf - inf

    top = peak(True)
    powers = e.onnx("Exp", like_x, e.onnx("Sub", like_x, x, top))
    total = e.onnx("Log", any_shape, over.reduce(e, "ReduceSum", powers, home))
    out_type = node.result.type if home is dtype else any_shape
    out = e.onnx("Add", out_type, total, top if over.keeps else peak(False))
    return out if home is dtype else e.onnx("Cast", node.result.type, out, to=_number(dtype))


#: The faults of means of integers.
_MEANS = ("reduce-integers", "reduce-unsigned")


@lowers(onnx=("ReduceMean",), repairs=_MEANS)
def exact_mean_of_unknown_rank(e: Sketch, node: Node, x: Term, axes: Term | None = None) -> Lowered:
    """A ReduceMean of integers of unknown rank, or over computed axes, becomes the sum in i64, divided and truncated.

    The number of elements of each mean is computed: the size of the operand by the size of the sum.
    """
    dtype, over = _has_fault(e, _MEANS, "ReduceMean", "T", x), _Axes(node, axes)
    if dtype is None:
        return KEEP

    def total(value: Term) -> Term:
        return over.reduce(e, "ReduceSum", value, i64)

    if dtype is i64:
        return _signed_mean(e, x, total, node.result.type)
    mean = _wide_mean(e, x, dtype, total)[0] if dtype.bits == 64 else _narrow_mean(e, x, total)
    return e.onnx("Cast", node.result.type, mean, to=_number(dtype))


def _narrow_mean(e: Sketch, x: Term, total: Callable[[Term], Term]) -> Term:
    """The mean in i64 of numbers of up to 32 bits, of which a sum fits i64."""
    sums = total(e.onnx("Cast", unsized_type(i64), x, to=_number(i64)))
    return e.onnx("Div", unsized_type(i64), sums, _elements_of_each(e, x, sums))


def _wide_mean(e: Sketch, x: Term, dtype: DType, total: Callable[[Term], Term]) -> tuple[Term, Term]:
    """The mean in i64 of 64-bit numbers, each taken apart into 2^32 h + l so that no sum overflows; and its remainder.

    With H and L the sums, n elements and H = q n + r, the mean is 2^32 q + (2^32 r + L) / n. Divisions truncate.
    """
    any_shape, apart, base = unsized_type(i64), e.number(2**32, dtype), e.number(2**32, i64)
    high = e.onnx("Div", unsized_type(dtype), x, apart)
    low = e.onnx("Sub", unsized_type(dtype), x, e.onnx("Mul", unsized_type(dtype), high, apart))
    if dtype is not i64:
        high, low = (e.onnx("Cast", any_shape, part, to=_number(i64)) for part in (high, low))
    highs, lows = total(high), total(low)
    count = _elements_of_each(e, x, highs)

    def divided(value: Term) -> tuple[Term, Term]:
        quotient = e.onnx("Div", any_shape, value, count)
        return quotient, e.onnx("Sub", any_shape, value, e.onnx("Mul", any_shape, quotient, count))

    whole, rest = divided(highs)
    part, rest = divided(e.onnx("Add", any_shape, e.onnx("Mul", any_shape, rest, base), lows))
    return e.onnx("Add", any_shape, e.onnx("Mul", any_shape, whole, base), part), rest


def _signed_mean(e: Sketch, x: Term, total: Callable[[Term], Term], type: TensorType) -> Term:
    """The mean of i64: the mean of 64-bit numbers, less one too many where its remainder has the other sign."""
    mean, rest = _wide_mean(e, x, i64, total)
    any_shape, zero, flag = unsized_type(i64), e.number(0, i64), unsized_type(bool_)
    down = e.onnx("And", flag, e.onnx("Less", flag, zero, mean), e.onnx("Less", flag, rest, zero))
    up = e.onnx("And", flag, e.onnx("Less", flag, mean, zero), e.onnx("Less", flag, zero, rest))
    lowered = e.onnx("Sub", any_shape, mean, e.onnx("Cast", any_shape, down, to=_number(i64)))
    return e.onnx("Add", type, lowered, e.onnx("Cast", any_shape, up, to=_number(i64)))


def _elements_of_each(e: Sketch, x: Term, reduced: Term) -> Term:
    """The number of elements in each group of ``x`` that was reduced to one; 1 if there are none, so that a division
    by it does not fail."""
    scalar, one = TensorType(i64, ()), e.number(1, i64)
    results = e.onnx("Max", scalar, e.onnx("Size", scalar, reduced), one)
    return e.onnx("Max", scalar, e.onnx("Div", scalar, _size(e, x), results), one)


def _size(e: Sketch, value: Term) -> Term:
    """The number of elements."""
    if isinstance(value.type, ForeignType) or not value.type.is_static:
        return e.onnx("Size", TensorType(i64, ()), value)
    return e.number(product(value.shape), i64)


def _number(dtype: DType) -> int:
    from dmlc.onnx_schema.types import ELEMENT_TYPE

    return ELEMENT_TYPE[dtype]
