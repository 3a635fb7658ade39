"""Uses of an index that a selection returns: gathers and one-hot masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from dmlc.ir import Graph, Node, Operation, Value, product
from dmlc.ops.choose import CAST
from dmlc.ops.index import GATHER, GATHER_ELEMENTS, ONE_HOT, IndexAttributes, OneHotAttributes
from dmlc.ops.move import (
    RESHAPE,
    RESHAPES,
    SQUEEZE,
    TRANSPOSE,
    UNSQUEEZE,
    NewAxesAttributes,
    ReshapeAttributes,
    TransposeAttributes,
)
from dmlc.ops.reduce import ReduceAttributes
from dmlc.ops.select import ARGMAX, ARGMIN, EXTREME_OF, HARDMAX, ArgAttributes, HardmaxAttributes
from dmlc.passes.fuse_selection.selections import name_of, through_index_cast, why_no_extreme
from dmlc.passes.layouts import is_unit
from dmlc.passes.manager import EXACT, REASSOCIATES, PassContext
from dmlc.passes.patterns import made_by
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere


class _GatheredArgMatch(Match, eq=False, kw_only=True):
    """``search`` is the argmax or argmin."""

    search: Node


class GatherAtArg(Rule[_GatheredArgMatch]):
    """gather_elements(x) at argmax(x) becomes reduce_max(x), at argmin(x) reduce_min(x).

    Among equal elements it does not matter which is gathered, but for the sign of a zero, which is unspecified. So is
    which value wins where a NaN is among them, but runtimes do choose otherwise there: ``reassociates``, so that
    ``--exact`` keeps the two.
    """

    name = "gather-at-arg"
    roots: ClassVar[tuple[Operation, ...]] = (GATHER_ELEMENTS, GATHER)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _GatheredArgMatch | None:
        seen: list[Node] = []
        search = made_by(through_index_cast(node.operand("i"), seen), ARGMAX, ARGMIN)
        if search is None:
            return None
        if node.op is GATHER and node.operand("x").type.rank != 1:
            return None
        return _GatheredArgMatch(node, (*seen, search), search=search)

    def check(self, match: _GatheredArgMatch, graph: Graph) -> Miss | None:
        root, search = match.root, match.search
        a, axis = search.attributes_as(ArgAttributes), root.attributes_as(IndexAttributes).axis
        x, other = search.operand("x"), root.operand("x")
        if x is not other:
            return Miss("{0} is gathered, and the index is of {1}", (name_of(other), name_of(x)), other)
        if a.axes != (axis,):
            return Miss("the index counts along {0}, and axis {1} is gathered", (list(a.axes), axis), search.result)
        for node in match.consumed:
            miss = used_elsewhere(node.result)
            if miss is not None:
                return miss
        return why_no_extreme(self.capabilities, EXTREME_OF[search.op], x.type.dtype)

    def build(self, match: _GatheredArgMatch, rewriter: Rewriter) -> Sequence[Value]:
        root, search = match.root, match.search
        a = search.attributes_as(ArgAttributes)
        record = ReduceAttributes(axes=a.axes, keepdims=a.keepdims)
        found = rewriter.add(EXTREME_OF[search.op], [search.operand("x")], record)
        return [rewriter.with_ones(found, root.result.shape)]


_MOVES = (*RESHAPES, TRANSPOSE)


class _OneHotMatch(Match, eq=False, kw_only=True):
    """``search`` is the argmax, ``hot`` the one_hot, ``moves`` what stands between it and a cast, first to last.

    ``axis`` is where the searched axes begin, ``place`` where the hot axis stands without what keepdims left.
    """

    search: Node
    hot: Node
    moves: tuple[Node, ...]
    axis: int
    place: int


class HotArgmax(Rule[_OneHotMatch]):
    """one_hot of argmax becomes hardmax, also through a cast or moves (a transpose, a reshape) after the one_hot.

    With a NaN among the elements ONNX Runtime may give all zeros on its CPU, and one_hot has a 1 somewhere. It is the
    same function of numbers, but not of NaN, so ``reassociates``. NumPy code has no such case: there it is ``exact``.
    """

    name = "hot-argmax"
    roots: ClassVar[tuple[Operation, ...]] = (ONE_HOT, CAST)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _OneHotMatch | None:
        moves: list[Node] = []
        hot: Node | None = node
        if node.op is CAST:
            hot = node.operand("x").producer
            while hot is not None and hot.op in _MOVES:
                moves.insert(0, hot)
                hot = hot.operand("x").producer
            if hot is None or hot.op is not ONE_HOT:
                return None
        assert hot is not None
        between: list[Node] = []
        search = made_by(through_index_cast(hot.operand("indices"), between), ARGMAX)
        if search is None or (node is hot and _is_cast_to(node, search.operand("x"))):
            return None  # the cast is the root of it all
        a = search.attributes_as(ArgAttributes)
        axis, place = a.axes[0], hot.attributes_as(OneHotAttributes).axis
        if a.keepdims and place > axis:
            place -= len(a.axes)
        inner = [] if hot is node else [hot]
        return _OneHotMatch(
            node,
            (*reversed(moves), *inner, *between, search),
            search=search,
            hot=hot,
            moves=tuple(moves),
            axis=axis,
            place=place,
        )

    def check(self, match: _OneHotMatch, graph: Graph) -> Miss | None:
        for node in match.consumed:
            miss = used_elsewhere(node.result)
            if miss is not None:
                return miss
        return self._why_other(match, graph) or self._why_no_gain(match, graph)

    def _why_other(self, match: _OneHotMatch, graph: Graph) -> Miss | None:
        """Return the reason why the one_hot is not a hardmax."""
        a, h = match.search.attributes_as(ArgAttributes), match.hot.attributes_as(OneHotAttributes)
        x = match.search.operand("x")
        if a.ties != "first":
            return Miss("the last of equal elements is hot: hardmax takes the first", (), match.search.result)
        if (float(h.on), float(h.off)) != (1.0, 0.0):
            return Miss("the values are {0} and {1}: hardmax gives 1 and 0", (h.on, h.off), match.hot.result)
        axes, shape = a.axes, x.shape
        size = product([shape[i] for i in axes])
        if graph.dims.equal(h.depth, size) is not True:
            return Miss("the depth is {0}, and {1} elements are reduced", (h.depth, size), match.hot.result)
        if a.keepdims and len(axes) > 1:
            return Miss("argmax over {0} keeps its axes as size 1", (list(axes),), match.search.result)
        apart = [i for i in range(axes[0], axes[-1]) if i not in axes and not is_unit(graph, shape[i])]
        if apart:
            return Miss("axis {0} is between the reduced ones, {1}", (apart[0], list(axes)))
        if not x.type.dtype.is_float:
            return Miss("hardmax takes floats, and the operand is {0}", (x.type.dtype,), x)
        if match.hot.result.type.dtype is not x.type.dtype and match.root is match.hot:
            return Miss("hardmax of {0} gives {0}, not {1}", (x.type.dtype, h.dtype), match.hot.result)
        if match.root.result.type.dtype is not x.type.dtype:
            return Miss("it is cast to {0}, and hardmax of {1} gives {1}", (match.root.result.type.dtype, x.type.dtype))
        return None

    def _why_no_gain(self, match: _OneHotMatch, graph: Graph) -> Miss | None:
        """Return the reason why a hardmax costs more on the target than the nodes as they are."""
        a, x = match.search.attributes_as(ArgAttributes), match.search.operand("x")
        if match.root is match.hot and not _is_taken_up(match):
            text = "the new axis is at {0}, the reduced one at {1}: a transpose would be needed"
            return Miss(text, (match.hot.attributes_as(OneHotAttributes).axis, match.axis), match.hot.result)
        if not self.capabilities.emits_nodes:
            return None
        if not self.capabilities.takes("Hardmax", x.type.dtype, inserted=True):
            return Miss("Hardmax of {0} has no kernel", (x.type.dtype,), x)
        last = all(is_unit(graph, d) for d in x.shape[a.axes[-1] + 1 :])
        if not last and self.capabilities.opset < 13:
            return Miss("below opset 13 Hardmax reduces the last axis: transposes would be needed")
        dtype = x.type.dtype
        parts = sum(self.capabilities.cost_per_element(op_type, dtype) for op_type in ("ArgMax", "OneHot"))
        if not last and self.capabilities.cost_per_element("Hardmax", dtype) > parts:
            name = self.capabilities.target.name
            return Miss("off the last axis {0} is slower at Hardmax than at ArgMax and OneHot", (name,), saves=0)
        return None

    def class_of(self, match: _OneHotMatch, graph: Graph, context: PassContext) -> str:
        return REASSOCIATES if self.capabilities.emits_nodes else EXACT

    def build(self, match: _OneHotMatch, rewriter: Rewriter) -> Sequence[Value]:
        a, value = match.search.attributes_as(ArgAttributes), match.search.operand("x")
        axis, place = match.axis, match.place
        if len(a.axes) > 1:
            last = a.axes[-1]
            size = product([value.shape[i] for i in a.axes])
            merged = (*value.shape[:axis], size, *value.shape[last + 1 :])
            if merged != value.shape:
                value = rewriter.add(RESHAPE, [value], ReshapeAttributes(shape=merged))
        value = rewriter.add(HARDMAX, [value], HardmaxAttributes(axes=(axis,)))
        if place != axis:
            value = rewriter.add(TRANSPOSE, [value], TransposeAttributes(perm=_moving(value.type.rank, axis, place)))
        if a.keepdims:
            unit = axis if match.hot.attributes_as(OneHotAttributes).axis > axis else axis + 1
            value = rewriter.add(UNSQUEEZE, [value], NewAxesAttributes(axes=(unit,)))
        for move in match.moves:
            value = rewriter.add(move.op, [value], move.attributes)
        return [value]


def _is_cast_to(hot: Node, x: Value) -> bool:
    """Return whether the result of the one_hot is cast to the dtype of ``x``, possibly after layout operations."""
    user = hot
    while user is hot or user.op in _MOVES:
        if not user.result.is_used_once:
            return False
        user = user.result.users[0]
    return user.op is CAST and user.result.type.dtype is x.type.dtype and hot.result.type.dtype is not x.type.dtype


def _is_taken_up(match: _OneHotMatch) -> bool:
    """Return whether the hardmax replaces the one_hot as it is, or its only user absorbs the missing layout
    operation."""
    moved, widened = match.place != match.axis, match.search.attributes_as(ArgAttributes).keepdims
    if not (moved or widened):
        return True
    value = match.root.result
    if (moved and widened) or not value.is_used_once:
        return False
    user = value.users[0]
    if moved or user.op is RESHAPE:
        return user.op is (TRANSPOSE if moved else RESHAPE)
    return user.op is SQUEEZE and user.result.shape == match.search.operand("x").shape


def _moving(rank: int, axis: int, place: int) -> tuple[int, ...]:
    """The permutation that puts an axis at another place."""
    perm = [i for i in range(rank) if i != axis]
    perm.insert(place, axis)
    return tuple(perm)
