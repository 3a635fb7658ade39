"""Selections over flattened axes, and ``top_k`` of one element."""

from __future__ import annotations

from msgspec.structs import replace

from dmlc.ir import Graph, Node, OpError, Value, product
from dmlc.ops.move import RESHAPE, RESHAPES
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_MIN
from dmlc.ops.rules import reduced_shape
from dmlc.ops.select import ARGMAX, ARGMIN, TOP_K, ArgAttributes, TopKAttributes
from dmlc.passes.canonicalize_reduce.layouts import axis_groups
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.fuse_selection.selections import why_no_extreme
from dmlc.passes.layouts import is_unit
from dmlc.passes.lowering import KEEP, Lowered, simplifies
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.rewrite import Miss, used_elsewhere


@simplifies(ARGMAX, ARGMIN, fed_by=(RESHAPE,))
def arg_of_flattened(e: Sketch, node: Node, y: Term) -> Lowered:
    """argmax (argmin) along an axis that a reshape merged of neighbours becomes a multi-axis argmax of their tensor.

    Exact: the index is row-major over the axes, as the reshape lays them out. ONNX has no argmax over several axes in
    one node, so ONNX code keeps a reshape and one ArgMax. The reshape copies nothing, and DirectML dispatches nothing
    for it. Text and NumPy code have one operation. It does not fire where ONNX would have to compute a shape for that
    reshape.
    """
    inner, a, limit = e.made_by(y, RESHAPE), node.attributes_as(ArgAttributes), e.target.target.max_rank
    if inner is None or len(a.axes) != 1:
        return KEEP
    x = e.of(inner.operand("x"))
    groups = None if limit is not None and x.rank > limit else axis_groups(x.shape, y.shape)
    if groups is None:
        return KEEP
    first, end = groups[a.axes[0]]
    others = [end - start for i, (start, end) in enumerate(groups) if i != a.axes[0]]
    if first == end or any(size != 1 for size in others):  # an axis that the reshape put in is made of none
        return KEEP
    axes = tuple(range(first, end))
    if a.keepdims and not _is_moved_on(node, x.value, axes):
        return Miss("the result keeps the merged axis as size 1, which would cost a move", (), node.result)
    try:
        made = e(node.op, x, attributes=replace(a, axes=axes))
    except OpError:
        return Miss("an axis of {0} may be empty", (x.type,), x.value)
    if e.target.emits_nodes and not _is_one_move(e.graph, x.value, first, end - 1):
        return Miss("the merged shape of {0} would have to be computed", (x.type,), x.value)
    return used_elsewhere(y.value) or made.reshape(node.result.shape)


def _is_moved_on(root: Node, x: Value, axes: tuple[int, ...]) -> bool:
    """Return whether the only user reshapes the result to the shape of the multi-axis arg reduction."""
    users = root.result.users
    if len(users) != 1 or users[0].op not in RESHAPES:
        return False
    return users[0].result.shape == reduced_shape(x.shape, axes, True)


def _is_one_move(graph: Graph, x: Value, first: int, last: int) -> bool:
    """Return whether one ONNX node merges the axes: sizes before them are copied, and one size may be -1."""
    shape = x.shape
    if last == len(shape) - 1 and first <= 1:
        return True  # Flatten, or a reshape to one axis
    rest = (product(shape[first : last + 1]), *shape[last + 1 :])
    unknown = [d for d in rest if not isinstance(d, int)]
    if len(unknown) > 1:
        return False
    known = product([*shape[:first], *[d for d in rest if isinstance(d, int)]])
    return not unknown or graph.dims.interval(known)[0] >= 1


@simplifies(TOP_K, gives=REASSOCIATES, describe=lambda rule, match: "top_k with k=1")
def top_one(e: Sketch, node: Node, x: Term) -> Lowered:
    """top_k with k=1 becomes argmax or reduce_max, or both as argmax and gather_elements (argmin, reduce_min).

    Where both results are used two nodes stand for one, so only where top_k is a dispatch per row, of several rows.
    There the values are gathered: so they are those at the indices with a NaN too. The lowest index of equal elements
    wins in all of them, and the sign of a zero maximum is unspecified. So is which value wins where a NaN is among
    them, but runtimes do choose otherwise there: ``reassociates``, so that ``--exact`` keeps the top_k.
    """
    (values, indices), a = node.results, node.attributes_as(TopKAttributes)
    if a.k != 1 or not (values.uses or indices.uses):
        return KEEP
    search, extreme = (e.argmax, REDUCE_MAX) if a.order == "largest" else (e.argmin, REDUCE_MIN)
    if not indices.uses:
        reason = why_no_extreme(e.target, extreme, x.dtype)
        if reason is None:
            return [e.reduced(extreme, x, [a.axis]), indices]
        if not e.target.has_provider:
            return reason
    if values.uses and not e.target.has_provider:
        return Miss("values and indices are both used: argmax and gather_elements are two nodes for one")
    if values.uses and is_unit(e.graph, product([d for i, d in enumerate(x.shape) if i != a.axis])):
        return Miss("values and indices of a single row are both used: top_k dispatches no more than two nodes")
    found = search(x, axes=(a.axis,), ties="first", dtype=a.dtype, keepdims=True)
    return [e.gather_elements(x, found, axis=a.axis) if values.uses else values, found]
