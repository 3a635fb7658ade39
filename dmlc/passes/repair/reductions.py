"""Repairs of reductions and selections: log-sum-exp, narrow integers and top_k."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from dmlc.ir import Dim, Graph, Node, product
from dmlc.ir.dtype import i32, i64
from dmlc.ops.choose import WHERE
from dmlc.ops.index import GATHER_ELEMENTS
from dmlc.ops.opaque import OPAQUE, is_opaque
from dmlc.ops.reduce import EXTREMES, REDUCE_LOG_SUM_EXP, REDUCE_MAX, REDUCE_MEAN, REDUCTIONS, axes_of, reduction_of
from dmlc.ops.select import ARGMAX, TOP_K, TopKAttributes
from dmlc.passes.choose_lowering.plan import judged
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import KEEP, Lowered, lowers
from dmlc.passes.manager import EXACT, REASSOCIATES
from dmlc.passes.primitives import log_sum_exp
from dmlc.passes.rewrite import Match, Miss
from dmlc.targets import dispatch_cost, dispatch_row, dispatches
from dmlc.targets.directml import operator_rows, refusal


@lowers(REDUCE_LOG_SUM_EXP, repairs=("log-sum-exp",), gives=REASSOCIATES)
def shift_log_sum_exp(e: Sketch, node: Node, x: Term) -> Lowered:
    """A ReduceLogSumExp of a model is written out with the maximum taken out, as one of the language always is.

    ``reassociates``: the same function over the reals, whose rounding differs. An infinite maximum is kept from
    inf - inf: the result of -inf alone is -inf, of a +inf among others +inf.
    """
    is_wrong = e.target.has_fault("log-sum-exp", "ReduceLogSumExp", "T", x.dtype)
    axes = axes_of(node)
    return log_sum_exp(e, x, axes).with_ones(node.result.shape) if is_wrong else KEEP


@lowers(*EXTREMES, repairs=("reduce-bytes-18",))
def narrow_extreme(e: Sketch, node: Node, x: Term) -> Lowered:
    """The largest or smallest of 8 or 16 bits is found in i32, at opsets where only wider integers are taken."""
    if not e.target.has_fault("reduce-bytes-18", reduction_of(node).onnx, "T", x.dtype):
        return KEEP
    for axis in axes_of(node):
        if e.graph.dims.promises_empty(x.shape[axis]):
            text = "axis {0} may be empty, and the maximum or minimum of nothing depends on {1}"
            return Miss(text, (axis, x.dtype))
    return e.again(node, x.cast(i32))[0].cast(x.dtype)


@lowers(*REDUCTIONS)
def axes_in_order(e: Sketch, node: Node, x: Term) -> Lowered:
    """A reduction of a model gets its axes in order, where the provider transposes for the last axes in another one."""
    if node.origin is None or not e.target.has_provider:
        return KEEP
    is_costly = dispatch_row(reduction_of(node).onnx, e.target.provider.dispatches).before > 0
    return e.again(node) if is_costly and not _in_order(node, x.rank) else KEEP


def _in_order(node: Node, rank: int) -> bool:
    """Return whether the axes are in order as the model has them."""
    from dmlc.onnx_schema.origin import known_of  # loads onnx, which a model has loaded already

    proto = node.origin.proto
    given = next((list(a.ints) for a in proto.attribute if a.name == "axes"), None)
    if given is None and len(proto.input) > 1:
        array = known_of(node, proto.input).constant(proto.input[1])
        given = None if array is None else array.ravel().tolist()
    axes = [axis % rank for axis in given or ()]
    return axes == sorted(axes)


#: Reductions that poolings over the whole map compute, and DirectML's operators for these poolings.
_POOLS = {"GlobalAveragePool": (REDUCE_MEAN, "AVERAGE_POOLING"), "GlobalMaxPool": (REDUCE_MAX, "MAX_POOLING")}


@lowers(REDUCE_MAX, REDUCE_MEAN, onnx=tuple(_POOLS), optional=True, gives=(REASSOCIATES, EXACT))
def reduce_many_axes(e: Sketch, node: Node, x: Term | None, *_: Term | None) -> Lowered:
    """A pooling over the whole map becomes a reduction if it has more axes than DirectML's pooling takes.

    ``exact`` for the largest element, else ``reassociates``: a mean may be summed in another order.
    """
    pool, level = _pool(node), e.target.target.feature_level
    if pool is None or x is None or level is None or e.target.kernel(pool) is None:
        return KEEP
    op, name = _POOLS[pool]
    row = operator_rows().get(name)
    if row is None or refusal(row, {"InputTensor": (None, x.rank)}, level) is None:
        return KEEP
    e.gives = EXACT if op is REDUCE_MAX else REASSOCIATES
    return e.reduced(op, x, range(2, x.rank))


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


@lowers(TOP_K, optional=True)
def top_k_by_search(e: Sketch, node: Node, x: Term) -> Lowered:
    """top_k of a small k becomes k maxima, each of the elements that are left, where they are far less work.

    A search is an argmax or argmin, whose first winner is top_k's. The element found is removed from its row, and the
    elements behind it move up. No value marks it, so rows of -inf, of the lowest integer or with a NaN give k
    different indices too. Without times, how much work it is comes from ``dispatch.json``.
    """
    a, kernel = node.attributes_as(TopKAttributes), e.target.kernel("TopK")
    if not dispatch_row("TopK", e.target.provider.dispatches).per_row:  # it costs what one search does
        return KEEP
    if kernel is None or x.dtype.name not in kernel.types["T"] or not any(v.uses for v in node.results):
        return KEEP
    if not isinstance(a.k, int) or a.k > _MOST:
        return KEEP
    reason = _why_not_searched(e, node, x, a)
    if reason is not None:
        return reason
    find = e.argmax if a.order == "largest" else e.argmin
    found: list[Term] = []
    left = x
    for step in range(a.k):
        if step:
            left = _without(e, left, found[-1], a.axis)
        found.append(find(left, axes=(a.axis,), ties="first", dtype=i64, keepdims=True))
    places = [_in_row(index, found[:step]) for step, index in enumerate(found)]
    indices = places[0] if len(places) == 1 else e.concat(*places, axis=a.axis)
    values, unused = node.results
    chosen = e.gather_elements(x, indices, axis=a.axis) if values.uses else values
    return [chosen, indices.cast(a.dtype) if unused.uses else unused]


def _why_not_searched(e: Sketch, node: Node, x: Term, a: TopKAttributes) -> Miss | None:
    needed = (ARGMAX, GATHER_ELEMENTS, WHERE) if a.k != 1 else (ARGMAX, GATHER_ELEMENTS)
    if not all(e.target.has_kernel(op, x.dtype) for op in needed):
        return Miss("argmax and top-k of {0} need casts", (x.dtype,), x.value)
    size = x.shape[a.axis]
    if not isinstance(size, int):
        text = "axis {0} has a dynamic size: the cost of an argmax over it is not known"
        return Miss(text, (a.axis,), x.value)
    rows = product([d for i, d in enumerate(x.shape) if i != a.axis])
    estimated = _no_gain(_top_k(node, size), _searches(node, size), e.graph, rows)
    return judged(e.rule, Match(node), e.graph, estimated)


def _without(e: Sketch, x: Term, index: Term, axis: int) -> Term:
    """The rows along ``axis`` without the element at the index, in the same order."""
    size = x.shape[axis]
    along: list[Dim] = [1] * x.rank
    along[axis] = size - 1
    if isinstance(size, int) and size <= _MOST_COUNTED:  # as folding would make it: repairs run after folding
        numbers = e.number(np.arange(size - 1).reshape(along), i64)
    else:
        numbers = e.iota(length=size - 1, dtype=i64).reshape(along)
    before = numbers < index
    first, second = (
        e.slice(x, starts=(start,), ends=(end,), axes=(axis,), steps=(1,)) for start, end in ((0, size - 1), (1, size))
    )
    return e.where(before, first, second)


def _in_row(index: Term, earlier: Sequence[Term]) -> Term:
    """The index in the whole row of what was found after the ``earlier`` ones were taken out."""
    for gone in reversed(earlier):
        index = index + (index >= gone).cast(i64)
    return index


# --- how much work


def _top_k(node: Node, size: int) -> _TopKWork:
    """One dispatch, and one for each row, in which it is read and the result is written."""
    a = node.attributes_as(TopKAttributes)
    one, two = [dispatches("TopK", (rows, size), [1]) for rows in (1, 2)]
    assert isinstance(one, int) and isinstance(two, int)
    element = node.operand(0).type.dtype.numpy.itemsize
    return _TopKWork(2 * one - two, (size + int(str(a.k))) * element + 8 * int(str(a.k)), two - one)


def _searches(node: Node, size: int) -> _TopKWork:
    """Return the work of the nodes that ``build`` makes, one dispatch each; indices have 8 bytes."""
    a, element = node.attributes_as(TopKAttributes), node.operand(0).type.dtype.numpy.itemsize
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
