"""Softmax, log-sum-exp and norms: one kernel, or its parts, which are vectorised.

ONNX Runtime's CPU provider has a softmax for the last axis. For others it transposes twice, and the parts cost less
unless the runs behind the axis are short. Its log-sum-exp takes each element's power alone, and its norms are slow off
the last axes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar

from dmlc.ir import DType, Graph, Node, Operation
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX, SoftmaxAttributes
from dmlc.ops.reduce import (
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_LOG_SUM,
    REDUCE_LOG_SUM_EXP,
    REDUCE_MAX,
    REDUCE_SUM,
    REDUCE_SUM_SQUARE,
    ReduceAttributes,
    reduction_of,
)
from dmlc.passes.choose_lowering.plan import Lowered, Plan, Sizes, Sketch, Standing, Step, Term
from dmlc.passes.choose_lowering.reduce import (
    axes_of,
    chain_steps,
    home_of,
    reduce_step,
    reduce_view,
    why_not_in_parts,
)
from dmlc.passes.choose_lowering.view import after, view_of
from dmlc.passes.layouts import groups, is_unit
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.primitives import log_sum_exp, softmax, total_in_parts

_SOFTMAXES: tuple[Operation, ...] = (SOFTMAX, LOG_SOFTMAX)
_NORMS: tuple[Operation, ...] = (REDUCE_L1, REDUCE_L2, REDUCE_SUM_SQUARE, REDUCE_LOG_SUM)
#: Elements this many bytes apart evict each other from the cache.
_PAGE = 4096


#: The steps of a reduction: of an operation and a dtype, a shape and axes.
Reductions = Callable[[Operation, DType, Sequence[int], Sequence[int]], Sequence[Step]]


def _where(behind: int, dtype: DType) -> str:
    """The end of a kernel's row: so many elements lie behind the axis."""
    return "" if behind == 1 else " far" if behind * dtype.numpy.itemsize >= _PAGE else " strided"


def _kept(shape: Sequence[int], axes: Sequence[int]) -> int:
    """The elements that a reduction over the axes leaves."""
    return math.prod(shape) // max(math.prod([shape[a] for a in axes]), 1)


# --- softmax


def _broadcast_step(dtype: DType, shape: Sequence[int], axes: Sequence[int]) -> Step:
    """An elementwise node whose second operand is the same along the axes."""
    total = math.prod(shape)
    flags = [i in axes for i in range(len(shape)) if shape[i] != 1]
    sizes = [d for d in shape if d != 1]
    run = 1
    for size, flag in zip(reversed(sizes), reversed(flags), strict=True):
        if flag is not flags[-1]:
            break
        run *= size
    return Step("Broadcast", dtype, total, total, run)


def _one_reduction(op: Operation, dtype: DType, shape: Sequence[int], axes: Sequence[int]) -> Sequence[Step]:
    return [reduce_step(op, dtype, shape, axes)]


def _shifted_powers(
    home: DType, shape: Sequence[int], axes: Sequence[int], reduce: Reductions, *, log: bool
) -> list[Step]:
    """Maximum, difference, power, sum, and its logarithm."""
    total, small = math.prod(shape), _kept(shape, axes)
    out = [*reduce(REDUCE_MAX, home, shape, axes)]
    out += [_broadcast_step(home, shape, axes), Step("Exp", home, total, total)]
    out += reduce(REDUCE_SUM, home, shape, axes)
    return out + [Step("Log", home, small, small)] * log


def _softmax_axes(node: Node) -> tuple[int, ...]:
    return node.attributes_as(SoftmaxAttributes).axes


def _softmax_steps(node: Node, sizes: Sizes, reduce: Reductions) -> list[Step]:
    home, shape, axes = home_of(node), sizes.of(node.operand("x")), _softmax_axes(node)
    powers = _shifted_powers(home, shape, axes, reduce, log=node.op is LOG_SOFTMAX)
    return [*powers, _broadcast_step(home, shape, axes)]


class SoftmaxAsItStands(Standing):
    """One node where the axes are neighbours."""

    roots: ClassVar[tuple[Operation, ...]] = _SOFTMAXES

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Step]:
        axes, home = _softmax_axes(node), home_of(node)
        view = view_of(node.graph, node, axes)
        if not axes or len(view.groups) > 1 or len(groups(axes)) > 1:
            return _softmax_steps(node, sizes, _one_reduction)
        shape = view.at(sizes)
        (segment,) = view.groups
        total = math.prod(shape)
        return [Step(f"Softmax{_where(after(shape, segment), home)}", home, total, total, shape[segment])]


class SoftmaxInParts(Plan):
    """A softmax that is not along the last axes becomes a maximum, powers, their sum and a quotient.

    The logarithm of a softmax subtracts the logarithm of the sum instead.
    """

    name: ClassVar[str] = "softmax-in-parts"
    roots: ClassVar[tuple[Operation, ...]] = _SOFTMAXES
    rewrite_class = REASSOCIATES

    def applies(self, node: Node, graph: Graph) -> str | None:
        if all(is_unit(graph, node.operand("x").shape[axis]) for axis in _softmax_axes(node)):
            return "its axes have one element, whose reductions are nodes all the same"
        return why_not_in_parts(self.capabilities, REDUCE_MAX, node, _softmax_axes(node))

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Step]:
        return _softmax_steps(node, sizes, chain_steps)

    def lower(self, e: Sketch, node: Node, x: Term) -> Lowered:
        return softmax(e, node.op, x.widened(), _softmax_axes(node)).cast(x.dtype)


# --- log-sum-exp


class LogSumExpAsItStands(Standing):
    """One node. The maximum is taken out of all others before."""

    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_LOG_SUM_EXP,)

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Step]:
        shape = sizes.of(node.operand("x"))
        return [Step("ReduceLogSumExp", home_of(node), math.prod(shape), _kept(shape, axes_of(node)))]


class LogSumExpInParts(Plan):
    """A log-sum-exp becomes the maximum, powers of what is below it, their sum, its logarithm, and their sum.

    An infinite maximum counts as the largest number, so that no infinity is subtracted from itself.
    """

    name: ClassVar[str] = "log-sum-exp-in-parts"
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_LOG_SUM_EXP,)
    rewrite_class = REASSOCIATES

    def applies(self, node: Node, graph: Graph) -> str | None:
        return why_not_in_parts(self.capabilities, REDUCE_MAX, node, axes_of(node))

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Step]:
        home, shape = home_of(node), sizes.of(node.operand("x"))
        small = _kept(shape, axes_of(node))
        powers = _shifted_powers(home, shape, axes_of(node), chain_steps, log=True)
        return [*powers, *[Step("others", home, small, small)] * 2]

    def lower(self, e: Sketch, node: Node, x: Term) -> Lowered:
        return log_sum_exp(e, x, axes_of(node)).with_ones(node.result.shape)


# --- norms


class NormAsItStands(Standing):
    """One node over the axes."""

    roots: ClassVar[tuple[Operation, ...]] = _NORMS

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Step]:
        view, home = reduce_view(node), home_of(node)
        shape = view.at(sizes)
        return [Step(f"ReduceL2{_where(after(shape, view.groups[-1]), home)}", home, math.prod(shape))]


class NormInParts(Plan):
    """A norm or a logarithm of a sum becomes a plain sum, with what is done to the elements before and to it after."""

    name: ClassVar[str] = "norm-in-parts"
    roots: ClassVar[tuple[Operation, ...]] = _NORMS
    rewrite_class = REASSOCIATES

    def applies(self, node: Node, graph: Graph) -> str | None:
        if not node.operand("x").type.dtype.is_float:
            return "partial sums of integers may leave their range"
        return why_not_in_parts(self.capabilities, REDUCE_SUM, node, axes_of(node))

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Step]:
        shape, home, op = sizes.of(node.operand("x")), home_of(node), reduction_of(node)
        total, small = math.prod(shape), _kept(shape, axes_of(node))
        before = [Step("Square", home, total, total)] if op.before else []
        sums = chain_steps(REDUCE_SUM, home, shape, axes_of(node))
        return [*before, *sums, *([Step("others", home, small, small)] if op.after else [])]

    def lower(self, e: Sketch, node: Node, x: Term) -> Lowered:
        return total_in_parts(e, reduction_of(node), x.widened(), node.attributes_as(ReduceAttributes)).cast(x.dtype)


LOG_SUM_EXP: Sequence[type[Plan]] = (LogSumExpAsItStands, LogSumExpInParts)
PLANS: Sequence[type[Plan]] = (SoftmaxAsItStands, SoftmaxInParts, NormAsItStands, NormInParts)
