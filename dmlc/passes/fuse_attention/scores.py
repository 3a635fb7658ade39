"""Scores of attention: a product of query and key, scaled, with biases added, through a softmax."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from dmlc.ir import Node, Shape, Value
from dmlc.ops.binary import ADD, EQUAL
from dmlc.ops.choose import WHERE
from dmlc.ops.elementwise import IS_NAN
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import RESHAPES
from dmlc.ops.normalize import SOFTMAX, SoftmaxAttributes
from dmlc.ops.reduce import REDUCE_MAX, ReduceAttributes
from dmlc.passes.patterns import both_ways, made_by, scalar_of, scaled_of
from dmlc.passes.rewrite import Miss, used_elsewhere

#: Nodes between the product of query and key and the softmax.
_MOST_STEPS = 12


class Weights(Struct, eq=False):
    """A softmax. If ``is_safe``, the model replaces the weights of rows that are hidden as a whole by 0 behind it:
    where they are NaN, or where the maximum of a row of the bias ``rows`` is -inf."""

    softmax: Node
    is_safe: bool
    nodes: tuple[Node, ...]
    rows: Value | None = None


class Trail(Struct, frozen=True):
    """The way of the scores, from the softmax back: ``terms`` were added to them, outside of the factor ``scale``, and
    ``mask``, a condition and a fill, chose between the result and the fill."""

    scale: float = 1.0
    terms: tuple[Value, ...] = ()
    mask: tuple[Value, float] | None = None
    nodes: tuple[Node, ...] = ()


class Scores(Struct, frozen=True):
    """``product`` is the product of query and key."""

    product: Node
    trail: Trail


def weights_of(value: Value) -> Weights | None:
    """The softmax that the value comes from; None if it is something else."""
    softmax = made_by(value, SOFTMAX)
    if softmax is not None:
        return Weights(softmax, False, (softmax,))
    chosen = made_by(value, WHERE)
    test = None if chosen is None else made_by(chosen.operand("cond"), IS_NAN, EQUAL)
    softmax = None if chosen is None else made_by(chosen.operand("b"), SOFTMAX)
    if chosen is None or test is None or softmax is None or scalar_of(chosen.operand("a")) != 0:
        return None
    if value.shape != softmax.result.shape:
        return None
    if test.op is EQUAL:
        return _tested_rows(chosen, test, softmax)
    return Weights(softmax, True, (chosen, test, softmax)) if test.operand("x") is softmax.result else None


def _tested_rows(chosen: Node, test: Node, softmax: Node) -> Weights | None:
    """The weights with zeros where the maximum of a row of a bias is -inf."""
    for most, bound in both_ways(test):
        reduced = made_by(most, REDUCE_MAX)
        if reduced is None or scalar_of(bound) != -inf:
            continue
        rows, a = reduced.operand("x"), reduced.attributes_as(ReduceAttributes)
        if a.axes == (rows.type.rank - 1,) and a.keepdims:
            return Weights(softmax, True, (chosen, test, softmax, reduced), rows)
    return None


def why_not_weights(weights: Weights, value: Value) -> Miss | None:
    """The reason against the weights: other users, or a softmax over other axes than the last."""
    softmax = weights.softmax
    if softmax.attributes_as(SoftmaxAttributes).axes != (softmax.result.type.rank - 1,):
        return Miss("the softmax is not over the last axis", (), softmax.result)
    if not weights.is_safe:
        return used_elsewhere(value)
    if any(user not in weights.nodes for user in softmax.result.users):
        return Miss("the weights are used elsewhere", (), softmax.result)
    return used_elsewhere(value)


def scores_of(value: Value, shapes: Sequence[Shape]) -> Scores | Miss:
    """Read the operand of the softmax; each node between is used once and keeps the shape of the scores, which is one
    of ``shapes``: batch and heads are two axes or one."""
    return _read(value, Trail(), shapes, _MOST_STEPS)


def _read(value: Value, trail: Trail, shapes: Sequence[Shape], steps: int) -> Scores | Miss:
    node = value.producer
    if node is None or not steps:
        return Miss("the softmax is not of a product of query and key", (), value)
    if (miss := used_elsewhere(value)) is not None:
        return miss
    trail = replace(trail, nodes=(*trail.nodes, node))
    if node.op is MATMUL:
        return Scores(node, trail)
    if (scaled := scaled_of(value, in_shape=False)) is not None:
        return _scaled(scaled.x, scaled.factor, trail, shapes, steps)
    if node.op is ADD:
        return _biased(node, trail, shapes, steps)
    if node.op is WHERE and trail.mask is None:
        fill = scalar_of(node.operand("b"))
        if fill is not None and node.operand("a").shape == value.shape:
            trail = replace(trail, mask=(node.operand("cond"), float(fill)))
            return _read(node.operand("a"), trail, shapes, steps - 1)
        if scalar_of(node.operand("a")) is not None:
            return Miss("masked_fill is there, where(mask, fill, scores): where(mask, scores, fill) is read", (), value)
    if node.op in RESHAPES and node.operand("x").shape in shapes:
        return _read(node.operand("x"), trail, shapes, steps - 1)
    return Miss("{0} is between the product and the softmax", (node.op.name,), value)


def _biased(node: Node, trail: Trail, shapes: Sequence[Shape], steps: int) -> Scores | Miss:
    """Read on at the operand that leads to the product; the other one is a bias."""
    misses: list[Miss] = []
    for inner, term in both_ways(node):
        if inner.shape == node.result.shape:
            read = _read(inner, replace(trail, terms=(term, *trail.terms)), shapes, steps - 1)
            if isinstance(read, Scores):
                return read
            misses.append(read)
    return misses[0] if misses else Miss("a bias has another shape than the scores", (), node.result)


def _scaled(inner: Value, number: float, trail: Trail, shapes: Sequence[Shape], steps: int) -> Scores | Miss:
    """Read on behind a scale: nothing is added or chosen inside it."""
    read = _read(inner, Trail(trail.scale * number, nodes=trail.nodes), shapes, steps - 1)
    if isinstance(read, Miss):
        return read
    if read.trail.terms or read.trail.mask is not None:
        return Miss("a mask is inside the scale", (), inner)
    return Scores(read.product, replace(read.trail, terms=trail.terms, mask=trail.mask))
