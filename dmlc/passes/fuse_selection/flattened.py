"""Selections over flattened axes, and ``top_k`` of one element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from msgspec.structs import replace

from dmlc.ir import Graph, Node, Operation, OpError, Value, product
from dmlc.ops.index import GATHER_ELEMENTS, IndexAttributes
from dmlc.ops.move import RESHAPE, RESHAPES, ReshapeAttributes
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_MIN, ReduceAttributes
from dmlc.ops.rules import reduced_shape
from dmlc.ops.select import ARGMAX, ARGMIN, TOP_K, ArgAttributes, TopKAttributes
from dmlc.passes.canonicalize_reduce.layouts import axis_groups
from dmlc.passes.fuse_selection.selections import why_no_extreme
from dmlc.passes.layouts import is_unit
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere


class _FlattenedArgMatch(Match, eq=False, kw_only=True):
    """``first`` to ``last`` are the axes that were merged."""

    first: int
    last: int

    @property
    def axes(self) -> tuple[int, ...]:
        return tuple(range(self.first, self.last + 1))


class ArgOfFlattened(Rule[_FlattenedArgMatch]):
    """argmax (argmin) along an axis that a reshape merged of neighbours becomes a multi-axis argmax of their tensor.

    Exact: the index is row-major over the axes, as the reshape lays them out. ONNX has no argmax over several axes in
    one node, so ONNX code keeps a reshape and one ArgMax. The reshape copies nothing, and DirectML dispatches nothing
    for it. Text and NumPy code have one operation. It does not fire where ONNX would have to compute a shape for that
    reshape.
    """

    name = "arg-of-flattened"
    roots: ClassVar[tuple[Operation, ...]] = (ARGMAX, ARGMIN)

    def match(self, node: Node, graph: Graph) -> _FlattenedArgMatch | None:
        inner = node.operand("x").producer
        axes = node.attributes_as(ArgAttributes).axes
        if inner is None or inner.op is not RESHAPE or len(axes) != 1:
            return None
        old, new = inner.operand("x").shape, inner.result.shape
        limit = self.capabilities.target.max_rank
        if limit is not None and len(old) > limit:
            return None
        groups = axis_groups(old, new)
        if groups is None:
            return None
        first, end = groups[axes[0]]
        others = [end - start for i, (start, end) in enumerate(groups) if i != axes[0]]
        if first == end or any(size != 1 for size in others):  # an axis that the reshape put in is made of none
            return None
        return _FlattenedArgMatch(node, (inner,), first=first, last=end - 1)

    def check(self, match: _FlattenedArgMatch, graph: Graph) -> Miss | None:
        root, inner = match.root, match.consumed[0]
        x = inner.operand("x")
        if root.attributes_as(ArgAttributes).keepdims and not _is_moved_on(root, x, match.axes):
            return Miss("the result keeps the merged axis as size 1, which would cost a move", (), root.result)
        try:
            graph.infer(root.op, [x], replace(root.attributes_as(ArgAttributes), axes=match.axes))
        except OpError:
            return Miss("an axis of {0} may be empty", (x.type,), x)
        if self.capabilities.emits_nodes and not _is_one_move(graph, x, match.first, match.last):
            return Miss("the merged shape of {0} would have to be computed", (x.type,), x)
        return used_elsewhere(inner.result)

    def build(self, match: _FlattenedArgMatch, rewriter: Rewriter) -> Sequence[Value]:
        root, x = match.root, match.consumed[0].operand("x")
        a = root.attributes_as(ArgAttributes)
        made = rewriter.add(root.op, [x], replace(a, axes=match.axes))
        if made.shape != root.result.shape:
            made = rewriter.add(RESHAPE, [made], ReshapeAttributes(shape=root.result.shape))
        return [made]


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


class _TopOneMatch(Match, eq=False, kw_only=True):
    """A top_k with k = 1, with its used results. ``extreme`` is true if a reduction computes the values."""

    values: bool
    indices: bool
    extreme: bool


class TopOne(Rule[_TopOneMatch]):
    """top_k with k=1 becomes argmax or reduce_max, or both as argmax and gather_elements (argmin, reduce_min).

    Where both results are used two nodes stand for one, so only where top_k is a dispatch per row, of several rows.
    There the values are gathered: so they are those at the indices with a NaN too. The lowest index of equal elements
    wins in all of them, and the sign of a zero maximum is unspecified. So is which value wins where a NaN is among
    them, but runtimes do choose otherwise there: ``reassociates``, so that ``--exact`` keeps the top_k.
    """

    name = "top-one"
    roots: ClassVar[tuple[Operation, ...]] = (TOP_K,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _TopOneMatch | None:
        values, indices = (bool(r.uses) for r in node.results)
        if node.attributes_as(TopKAttributes).k != 1 or not (values or indices):
            return None
        extreme = not indices and self._why_no_extreme(node) is None
        return _TopOneMatch(node, values=values, indices=indices, extreme=extreme)

    def check(self, match: _TopOneMatch, graph: Graph) -> Miss | None:
        if match.extreme or not match.values:
            return None
        x, axis = match.root.operand("x"), match.root.attributes_as(TopKAttributes).axis
        if not self.capabilities.has_provider:
            reason = self._why_no_extreme(match.root) if not match.indices else None
            return reason or Miss("values and indices are both used: argmax and gather_elements are two nodes for one")
        if is_unit(graph, product([d for i, d in enumerate(x.shape) if i != axis])):
            return Miss("values and indices of a single row are both used: top_k dispatches no more than two nodes")
        return None

    def _why_no_extreme(self, node: Node) -> Miss | None:
        largest = node.attributes_as(TopKAttributes).order == "largest"
        return why_no_extreme(self.capabilities, REDUCE_MAX if largest else REDUCE_MIN, node.operand("x").type.dtype)

    def describe(self, match: _TopOneMatch) -> str:
        return "top_k with k=1"

    def build(self, match: _TopOneMatch, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        a, x = root.attributes_as(TopKAttributes), root.operand("x")
        values, indices = root.results
        largest = a.order == "largest"
        if match.extreme:
            record = ReduceAttributes(axes=(a.axis,), keepdims=True)
            return [rewriter.add(REDUCE_MAX if largest else REDUCE_MIN, [x], record), indices]
        search = ArgAttributes(axes=(a.axis,), ties="first", dtype=a.dtype, keepdims=True)
        found = rewriter.add(ARGMAX if largest else ARGMIN, [x], search)
        if match.values:
            values = rewriter.add(GATHER_ELEMENTS, [x, found], IndexAttributes(axis=a.axis))
        return [values, found]
