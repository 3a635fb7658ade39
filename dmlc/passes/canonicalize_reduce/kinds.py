"""Classes of what the rules do to reductions, and bounds of integers."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dmlc.ir import Graph, Node, Operation, Shape, Value, product
from dmlc.ops.reduce import EXTREMES, REDUCE_L1, REDUCE_PROD, REDUCE_SUM_SQUARE, Reduction
from dmlc.ops.rules import reduced_shape
from dmlc.ops.select import ARGMAX, ARGMIN
from dmlc.passes.expressions import Formulas
from dmlc.passes.intervals import Intervals
from dmlc.passes.layouts import is_unit
from dmlc.passes.manager import EXACT, RANGE, REASSOCIATES
from dmlc.targets import Target


def elementwise_class(op: Reduction) -> str:
    """The class of replacing the reduction of one element by its elementwise part.

    sqrt(x * x) is abs(x) and log(exp(x)) is x but for overflow and underflow; a log kernel may round otherwise than
    log_sum.
    """
    return REASSOCIATES if op.after else EXACT


def merge_class(outer: Operation, inner: Node, axes: tuple[int, ...], graph: Graph, target: Target) -> str:
    """The class of merging two reductions into one over ``axes`` of the inner one's operand.

    Integer sums and products are the same in any order where they wrap (``Target.wraps_integers``). ONNX Runtime's CPU
    provider saturates from 1.27 on and adds i64 in f64; ONNX does not say. ``legalize`` makes them wrap, but the class
    is the class of the reductions as they are written here.
    """
    x = inner.operand("x")
    dtype = x.type.dtype
    if outer in EXTREMES:
        return EXACT
    if dtype.is_float:
        return REASSOCIATES
    # The absolute value of an inner sum that wrapped is not that of the whole sum, whatever the target does.
    wraps = target.wraps_integers and not (outer is REDUCE_L1 and dtype.kind == "int")
    return EXACT if wraps or stays_in_range(outer, inner, axes, graph) else RANGE


def order_class(node: Node) -> str:
    """The class of reducing the same elements in another order."""
    if node.op in EXTREMES or node.op in (ARGMAX, ARGMIN) or not node.operand("x").type.dtype.is_float:
        return EXACT
    return REASSOCIATES


def stays_in_range(outer: Operation, inner: Node, axes: tuple[int, ...], graph: Graph) -> bool:
    """Return whether bounds prove that every target computes all partial results of an integer reduction exactly."""
    return _is_exact(outer, inner, axes, magnitude(inner.operand("x"), graph), graph)


def promises_in_range(outer: Operation, inner: Node, axes: tuple[int, ...], graph: Graph) -> tuple[str, ...]:
    """Return the inputs whose promised ranges prove what ``stays_in_range`` asks; none if they do not."""
    x = inner.operand("x")
    most = promised_magnitude(x, graph)
    return () if most is None or not _is_exact(outer, inner, axes, most, graph) else Intervals(graph).promised(x)


def promised_magnitude(value: Value, graph: Graph) -> int | None:
    """A bound of the absolute values of an integer value that promised ranges give; None where they give none."""
    found = Intervals(graph).promised_of(value)
    return None if found is None else int(max(-found[0], found[1]))


def _is_exact(outer: Operation, inner: Node, axes: tuple[int, ...], most: int, graph: Graph) -> bool:
    x = inner.operand("x")
    high = graph.dims.interval(product([x.shape[a] for a in axes]))[1]
    if not isfinite(high):
        return False
    count = int(high)
    limit = min(int(x.type.dtype.highest), 2**53)
    if outer is REDUCE_PROD:
        return most <= 1 or (count <= 64 and most**count <= limit)
    each = most * most if inner.op is REDUCE_SUM_SQUARE else most
    return count * each <= limit


def magnitude(value: Value, graph: Graph) -> int:
    """A bound of the absolute values of an integer (or bool) value, from what produced it."""
    low, high = Intervals(graph, trusts=False).of(value)
    return int(max(-low, high))


class Fit(Struct, frozen=True):
    """Attributes with which a reduction gives the shape."""

    axes: tuple[int, ...]
    keepdims: bool


def fit(graph: Graph, shape: Shape, axes: Sequence[int], target: Shape) -> Fit | None:
    """Find attributes with which a reduction over ``axes`` gives ``target``; None if there are none.

    Axes of size 1 are reduced too if that helps. At least one axis is given, so one more of size 1 changes nothing.
    """
    if reduced_shape(shape, axes, True) == target:
        return Fit(tuple(axes), True)
    gone = set(axes)
    place = 0
    for axis, size in enumerate(shape):
        if axis in gone:
            continue
        if place < len(target) and size == target[place]:
            place += 1
        elif is_unit(graph, size):
            gone.add(axis)
        else:
            return None
    return Fit(tuple(sorted(gone)), False) if place == len(target) else None


def reduce_to(rewriter: Formulas, op: Operation, x: Value, attributes: Any, target: Shape) -> Value:
    """The reduction (or selection) of ``x``, in a shape that differs from what it would have by axes of size 1 only."""
    found = fit(rewriter.graph, x.shape, attributes.axes, target) or Fit(attributes.axes, False)
    made = rewriter.add(op, [x], replace(attributes, axes=found.axes, keepdims=found.keepdims))
    return rewriter.with_ones(made, target)
