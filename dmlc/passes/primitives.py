"""Normalizations and reductions in primitive operations: what plans, repairs and decompositions make of them.

Each function computes in the dtype of the values that it gets; ``accumulated`` puts the casts of f16 around.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from dmlc.ir import DType, Node, Operation, Value
from dmlc.ops.binary import ADD, DIV, EQUAL, MUL, SUB
from dmlc.ops.choose import CLIP, WHERE, ClipAttributes
from dmlc.ops.elementwise import ABS, EXP, LOG, SQRT
from dmlc.ops.normalize import SOFTMAX
from dmlc.ops.reduce import (
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_LOG_SUM,
    REDUCE_MAX,
    REDUCE_MEAN,
    REDUCE_SUM,
    ReduceAttributes,
    Reduction,
)
from dmlc.passes.layouts import is_unit, reshape_ones
from dmlc.passes.node_maker import Maker

_AFTER = {"sqrt": SQRT, "log": LOG}


def accumulated(make: Maker, x: Value, compute: Callable[[Value], Value], dtype: DType | None = None) -> Value:
    """Compute in the accumulation dtype of ``x``; the result is a ``dtype`` (default: the dtype of ``x``)."""
    own = x.type.dtype
    return make.cast(compute(make.cast(x, own.accumulator)), dtype or own)


def softmax(make: Maker, op: Operation, x: Value, axes: Sequence[int]) -> Value:
    """A maximum, powers, their sum and a quotient; the logarithm of a softmax subtracts that of the sum instead."""
    over = ReduceAttributes(axes=tuple(axes), keepdims=True)
    shifted = make(SUB, x, make(REDUCE_MAX, x, attributes=over))
    powers = make(EXP, shifted)
    total = make(REDUCE_SUM, powers, attributes=over)
    return make(DIV, powers, total) if op is SOFTMAX else make(SUB, shifted, make(LOG, total))


def log_sum_exp(make: Maker, node: Node, *, is_fused: bool = False, peak: Value | None = None) -> Value:
    """The maximum, powers of what is below it, their sum, its logarithm, and their sum, for a log-sum-exp.

    An infinite maximum counts as the largest number, so that no infinity is subtracted from itself. ``is_fused`` takes
    the logarithm of the sum in one operation. ``peak`` is the maximum in the accumulation dtype, with its axes kept,
    where there is one. Axes go last, so that a reduction behind the node can take them out.
    """
    axes = node.attributes_as(ReduceAttributes).axes
    out = accumulated(make, node.operand("x"), lambda x: _shifted(make, x, axes, peak, is_fused))
    return reshape_ones(make.rewriter, out, node.result.shape)


def _shifted(make: Maker, x: Value, axes: Sequence[int], peak: Value | None, is_fused: bool) -> Value:
    counting = tuple([axis for axis in axes if not is_unit(make.rewriter.graph, x.shape[axis])]) or tuple(axes[:1])
    over = ReduceAttributes(axes=counting, keepdims=True)
    largest = float(np.finfo(x.type.dtype.numpy).max)
    peak = make(REDUCE_MAX, x, attributes=over) if peak is None else peak
    peak = make(CLIP, peak, attributes=ClipAttributes(min=-largest, max=largest))
    powers = make(EXP, make(SUB, x, peak))
    if is_fused:
        return make(ADD, make(REDUCE_LOG_SUM, powers, attributes=over), peak)
    return make(ADD, make(LOG, make(REDUCE_SUM, powers, attributes=over)), peak)


def total_in_parts(make: Maker, op: Reduction, x: Value, record: ReduceAttributes) -> Value:
    """A plain sum, with what the reduction does to the elements before and to the sum after."""
    if op.before == "abs":
        x = make(ABS, x)
    elif op.before == "square":
        x = make(MUL, x, x)
    out = make(op.base, x, attributes=record)
    return make(_AFTER[op.after], out) if op.after else out


def lp_norm(make: Maker, x: Value, axis: int, p: int) -> Value:
    """A division by the norm; a row of zeros is divided by 1."""
    over = ReduceAttributes(axes=(axis,), keepdims=True)
    norm = make(REDUCE_L1 if p == 1 else REDUCE_L2, x, attributes=over)
    is_zero = make(EQUAL, norm, make.constant(0, x.type.dtype))
    return make(DIV, x, make(WHERE, is_zero, make.constant(1, x.type.dtype), norm))


def centred(make: Maker, x: Value, axes: Sequence[int]) -> tuple[Value, Value]:
    """The value less its mean over the axes, and the mean."""
    mean = make(REDUCE_MEAN, x, attributes=ReduceAttributes(axes=tuple(axes), keepdims=True))
    return make(SUB, x, mean), mean


def deviation(make: Maker, x: Value, axes: Sequence[int], epsilon: float) -> Value:
    """The root of the mean square over the axes plus epsilon."""
    square = make(REDUCE_MEAN, make(MUL, x, x), attributes=ReduceAttributes(axes=tuple(axes), keepdims=True))
    return make(SQRT, make(ADD, square, make.constant(epsilon, x.type.dtype)))


def normalized(make: Maker, x: Value, axes: Sequence[int], epsilon: float) -> Value:
    """The value less its mean, over its deviation."""
    out, _ = centred(make, x, axes)
    return make(DIV, out, deviation(make, out, axes, epsilon))
