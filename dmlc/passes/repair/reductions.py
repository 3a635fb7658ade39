"""Repairs of reductions and selections: log-sum-exp, narrow integers and top_k."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from msgspec import Struct

from dmlc.ir import Dim, Graph, Node, Operation, Value, product
from dmlc.ir.dtype import i32, i64
from dmlc.ops.binary import ADD, GREATER_EQUAL, LESS
from dmlc.ops.choose import WHERE
from dmlc.ops.index import GATHER_ELEMENTS, IOTA, IndexAttributes, IotaAttributes
from dmlc.ops.move import CONCAT, SLICE, ConcatAttributes, SliceAttributes
from dmlc.ops.opaque import OPAQUE, is_opaque
from dmlc.ops.reduce import (
    EXTREMES,
    REDUCE_LOG_SUM_EXP,
    REDUCE_MAX,
    REDUCE_MEAN,
    ReduceAttributes,
    reduction_of,
)
from dmlc.ops.select import ARGMAX, ARGMIN, TOP_K, ArgAttributes, TopKAttributes
from dmlc.passes.choose_lowering.plan import judged
from dmlc.passes.manager import EXACT, REASSOCIATES, PassContext
from dmlc.passes.node_maker import Maker, dtype_of
from dmlc.passes.primitives import log_sum_exp
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule
from dmlc.targets import dispatch_cost, dispatch_row, dispatches
from dmlc.targets.directml import operator_rows, refusal


class ShiftLogSumExp(Rule[Match]):
    """A ReduceLogSumExp of a model is written out with the maximum taken out, as one of the language always is.

    ``reassociates``: the same function over the reals, whose rounding differs. An infinite maximum is kept from
    inf - inf: the result of -inf alone is -inf, of a +inf among others +inf.
    """

    name = "shift-log-sum-exp"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_LOG_SUM_EXP,)
    repairs: ClassVar[tuple[str, ...]] = ("log-sum-exp",)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> Match | None:
        (failure,) = self.repairs
        wrong = self.capabilities.has_fault(failure, "ReduceLogSumExp", "T", dtype_of(node))
        return Match(node) if wrong else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        return [log_sum_exp(Maker(rewriter), match.root, is_fused=True)]


class NarrowExtreme(Rule[Match]):
    """The largest or smallest of 8 or 16 bits is found in i32, at opsets where only wider integers are taken."""

    name = "narrow-extreme"
    optional = False
    roots = EXTREMES
    repairs: ClassVar[tuple[str, ...]] = ("reduce-bytes-18",)

    def match(self, node: Node, graph: Graph) -> Match | None:
        (failure,) = self.repairs
        return (
            Match(node) if self.capabilities.has_fault(failure, reduction_of(node).onnx, "T", dtype_of(node)) else None
        )

    def check(self, match: Match, graph: Graph) -> Miss | None:
        x = match.root.operand("x")
        for axis in match.root.attributes_as(ReduceAttributes).axes:
            if graph.dims.promises_empty(x.shape[axis]):
                return Miss(
                    "axis {0} may be empty, and the maximum or minimum of nothing depends on {1}", (axis, x.type.dtype)
                )
        return None

    def describe(self, match: Match) -> str:
        return f"{match.root.op.name} of {dtype_of(match.root)} in i32"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, root = Maker(rewriter), match.root
        found = make(root.op, make.cast(root.operand("x"), i32), attributes=root.attributes)
        return [make.cast(found, dtype_of(root))]


#: Reductions that poolings over the whole map compute, and DirectML's operators for these poolings.
_POOLS = {"GlobalAveragePool": (REDUCE_MEAN, "AVERAGE_POOLING"), "GlobalMaxPool": (REDUCE_MAX, "MAX_POOLING")}


class ReduceManyAxes(Rule[Match]):
    """A pooling over the whole map becomes a reduction if it has more axes than DirectML's pooling takes.

    ``exact`` for the largest element, else ``reassociates``: a mean may be summed in another order.
    """

    name = "reduce-many-axes"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_MAX, REDUCE_MEAN, OPAQUE)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> Match | None:
        pool = _pool(node)
        level = self.capabilities.target.feature_level
        if pool is None or level is None or self.capabilities.kernel(pool) is None:
            return None
        row = operator_rows().get(_POOLS[pool][1])
        tensors = {"InputTensor": (None, node.operand(0).type.rank)}
        return Match(node) if row is not None and refusal(row, tensors, level) is not None else None

    def class_of(self, match: Match, graph: Graph, context: PassContext) -> str:
        return EXACT if _pool(match.root) == "GlobalMaxPool" else REASSOCIATES

    def describe(self, match: Match) -> str:
        return f"{_pool(match.root)} of {match.root.result.type.rank} axes"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        x, (op, _) = match.root.operand(0), _POOLS[str(_pool(match.root))]
        return [rewriter.add(op, [x], ReduceAttributes(axes=tuple(range(2, x.type.rank)), keepdims=True))]


def _pool(node: Node) -> str | None:
    """The operator of a model that pools over the whole map; None for other nodes."""
    if node.op is OPAQUE:
        return next((name for name in _POOLS if is_opaque(node, name)), None)
    found = None if node.origin is None else node.origin.proto.op_type
    return found if found in _POOLS else None


#: With more than this, the nodes would be far more than a reader of the model can follow.
_MOST = 8
#: The searches are many nodes for one, and what both take is only estimated: they must take this many times less.
_WORTH = 2
#: Stands for a number of rows without a bound; the costs are straight lines of it.
_MANY = 1e12


#: Longer counts are not stored in the model.
_MOST_COUNTED = 4096


class _TopKWork(Struct, frozen=True):
    """Work of one way to compute it for any number of rows: a dispatch count, and bytes per row."""

    dispatches: float
    bytes_a_row: float
    dispatches_a_row: float = 0

    def microseconds(self, rows: float) -> float:
        cost = dispatch_cost()
        return cost.microseconds(self.dispatches + rows * self.dispatches_a_row, rows * self.bytes_a_row)


class TopKBySearch(Rule[Match]):
    """top_k of a small k becomes k maxima, each of the elements that are left, where they are far less work.

    A search is an argmax or argmin, whose first winner is top_k's. The element found is removed from its row, and the
    elements behind it move up. No value marks it, so rows of -inf, of the lowest integer or with a NaN give k
    different indices too. Without times, how much work it is comes from ``dispatch.json``.
    """

    name = "top-k-by-search"
    roots: ClassVar[tuple[Operation, ...]] = (TOP_K,)
    repairs: ClassVar[tuple[str, ...]] = ()

    def match(self, node: Node, graph: Graph) -> Match | None:
        table = self.capabilities.provider.dispatches
        if not dispatch_row("TopK", table).per_row:  # it costs what one search does
            return None
        kernel, a = self.capabilities.kernel("TopK"), node.attributes_as(TopKAttributes)
        if kernel is None or dtype_of(node).name not in kernel.types["T"] or not any(v.uses for v in node.results):
            return None
        return Match(node) if isinstance(a.k, int) and a.k <= _MOST else None

    def check(self, match: Match, graph: Graph) -> Miss | None:
        root = match.root
        a, x, dtype = root.attributes_as(TopKAttributes), root.operand("x"), dtype_of(root)
        needed = (ARGMAX, GATHER_ELEMENTS, WHERE) if a.k != 1 else (ARGMAX, GATHER_ELEMENTS)
        if not all(self.capabilities.has_kernel(op, dtype) for op in needed):
            return Miss("argmax and top-k of {0} need casts", (dtype,), x)
        size = x.shape[a.axis]
        if not isinstance(size, int):
            return Miss("axis {0} has a dynamic size: the cost of an argmax over it is not known", (a.axis,), x)
        rows = product([d for i, d in enumerate(x.shape) if i != a.axis])
        return judged(self, match, graph, _no_gain(_top_k(root, size), _searches(root, size), graph, rows))

    def describe(self, match: Match) -> str:
        return f"top_k with k={match.root.attributes_as(TopKAttributes).k}"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, root = Maker(rewriter), match.root
        a, x = root.attributes_as(TopKAttributes), root.operand("x")
        found: list[Value] = []
        left = x
        for step in range(int(str(a.k))):
            if step:
                left = _without(make, left, found[-1], a.axis)
            record = ArgAttributes(axes=(a.axis,), ties="first", dtype=i64, keepdims=True)
            found.append(make(ARGMAX if a.order == "largest" else ARGMIN, left, attributes=record))
        places = [_in_row(make, index, found[:step]) for step, index in enumerate(found)]
        indices = places[0] if len(places) == 1 else make(CONCAT, *places, attributes=ConcatAttributes(axis=a.axis))
        values, unused = root.results
        if values.uses:
            values = make(GATHER_ELEMENTS, x, indices, attributes=IndexAttributes(axis=a.axis))
        return [values, make.cast(indices, a.dtype) if unused.uses else unused]


def _without(make: Maker, x: Value, index: Value, axis: int) -> Value:
    """The rows along ``axis`` without the element at the index, in the same order."""
    size = x.shape[axis]

    def part(first: int, last: Dim) -> Value:
        record = SliceAttributes(starts=(first,), ends=(last,), axes=(axis,), steps=(1,))
        return make(SLICE, x, attributes=record)

    along: list[Dim] = [1] * x.type.rank
    along[axis] = size - 1
    if isinstance(size, int) and size <= _MOST_COUNTED:  # as folding would make it: repairs run after folding
        numbers = make.constant(np.arange(size - 1).reshape(along), i64)
    else:
        numbers = make.reshape(make(IOTA, attributes=IotaAttributes(length=size - 1, dtype=i64)), along)
    before = make(LESS, numbers, index)
    return make(WHERE, before, part(0, size - 1), part(1, size))


def _in_row(make: Maker, index: Value, earlier: Sequence[Value]) -> Value:
    """The index in the whole row of what was found after the ``earlier`` ones were taken out."""
    for gone in reversed(earlier):
        index = make(ADD, index, make.cast(make(GREATER_EQUAL, index, gone), i64))
    return index


# --- how much work


def _top_k(node: Node, size: int) -> _TopKWork:
    """One dispatch, and one for each row, in which it is read and the result is written."""
    a = node.attributes_as(TopKAttributes)
    one, two = [dispatches("TopK", (rows, size), [1]) for rows in (1, 2)]
    assert isinstance(one, int) and isinstance(two, int)
    element = dtype_of(node).numpy.itemsize
    return _TopKWork(2 * one - two, (size + int(str(a.k))) * element + 8 * int(str(a.k)), two - one)


def _searches(node: Node, size: int) -> _TopKWork:
    """Return the work of the nodes that ``build`` makes, one dispatch each; indices have 8 bytes."""
    a, element = node.attributes_as(TopKAttributes), dtype_of(node).numpy.itemsize
    k = int(str(a.k))
    values, indices = [bool(v.uses) for v in node.results]
    count = k + 4 * (k - 1) + 3 * (k * (k - 1) // 2) + (k > 1) + values + (indices and a.dtype is not i64)
    moved = 0
    for step in range(k):
        length = size - step
        moved += length * element + 8
        if step:  # a bool of the row, two slices of it, and the choice between them
            moved += 8 + length * (1 + 4 * element + 1 + 3 * element)
        moved += 34 * step  # a comparison, a cast and an addition for each earlier index
    return _TopKWork(count, moved + k * (16 + 2 * element + 8))


def _no_gain(old: _TopKWork, new: _TopKWork, graph: Graph, rows: Dim) -> Miss | None:
    """The reason against ``new``, unless it is far less work for every number of rows that there may be."""
    low, high = [min(max(bound, 0), _MANY) for bound in graph.dims.interval(rows)]
    for count in (low, high):
        if new.microseconds(count) * _WORTH > old.microseconds(count):
            text = "with {0:.0f} rows top_k would take {1:.0f} us and argmax {2:.0f} us, as far as is estimated"
            return Miss(text, (count, old.microseconds(count), new.microseconds(count)))
    return None
