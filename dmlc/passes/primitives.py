"""Normalizations and reductions in primitive operations, in the dtype of the values that they get."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlc.ir import Operation
from dmlc.ops.normalize import SOFTMAX
from dmlc.ops.reduce import REDUCE_L1, REDUCE_L2, ReduceAttributes, Reduction
from dmlc.passes.expressions import Formulas, Sketch, Term


def softmax(e: Sketch, op: Operation, x: Term, axes: Sequence[int]) -> Term:
    """A maximum, powers, their sum and a quotient; the logarithm of a softmax subtracts the sum's logarithm instead."""
    shifted = x - e.max(x, axes)
    powers = e.exp(shifted)
    return powers / e.sum(powers, axes) if op is SOFTMAX else shifted - e.log_sum(powers, axes)


def log_sum_exp(e: Sketch, x: Term, axes: Sequence[int], peak: Term | None = None) -> Term:
    """The maximum, powers of what is below it, their sum, its logarithm, and their sum, for a log-sum-exp.

    Axes are kept. An infinite maximum counts as the largest number, so that no infinity is subtracted from itself.
    ``peak`` is the maximum in the accumulation dtype, where there is one.
    """
    axes, wide = e.counting(x, axes), x.widened()
    largest = float(np.finfo(wide.dtype.numpy).max)
    peak = e.clip(e.max(wide, axes) if peak is None else peak, min=-largest, max=largest)
    return (e.log_sum(e.exp(wide - peak), axes) + peak).cast(x.dtype)


def total_in_parts(e: Formulas, op: Reduction, x: Term, record: ReduceAttributes) -> Term:
    """A plain sum, with what the reduction does to the elements before and to the sum after."""
    part = {"abs": e.abs, "square": lambda x: x * x}.get(op.before or "", lambda x: x)(x)
    total = e(op.base, part, attributes=record)
    return {"sqrt": e.sqrt, "log": e.log}[op.after](total) if op.after else total


def lp_norm(e: Formulas, x: Term, axis: int, p: int) -> Term:
    """A division by the norm; a row of zeros is divided by 1."""
    norm = e.reduced(REDUCE_L1 if p == 1 else REDUCE_L2, x, [axis])
    return x / e.where(e.equal(norm, 0), 1, norm)


def centred(e: Formulas, x: Term, axes: Sequence[int]) -> tuple[Term, Term]:
    """The value less its mean over the axes, and the mean."""
    mean = e.mean(x, axes)
    return x - mean, mean


def deviation(e: Formulas, x: Term, axes: Sequence[int], epsilon: float) -> Term:
    """The root of the mean square over the axes plus epsilon."""
    return e.sqrt(e.mean(x * x, axes) + epsilon)


def affine_norm(
    e: Formulas, x: Term, axes: Sequence[int], epsilon: float, scale: Term, bias: Term | None, *, centre: bool
) -> tuple[Term, Term | None, Term]:
    """A layer normalization, or without ``centre`` an RMS normalization; the mean, and the deviation."""
    rest, mean = centred(e, x, axes) if centre else (x, None)
    spread = deviation(e, rest, axes, epsilon)
    out = rest / spread * scale.cast(x.dtype)
    return (out if bias is None else out + bias.cast(x.dtype)), mean, spread


def normalized(e: Formulas, x: Term, axes: Sequence[int], epsilon: float) -> Term:
    """The value less its mean, over its deviation."""
    rest, _ = centred(e, x, axes)
    return rest / deviation(e, rest, axes, epsilon)
