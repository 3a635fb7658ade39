"""Uses of an index that a selection returns: gathers and one-hot masks."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from dmlc.ir import Graph, Node, Value, product
from dmlc.ops.choose import CAST
from dmlc.ops.index import GATHER, GATHER_ELEMENTS, ONE_HOT, IndexAttributes, OneHotAttributes
from dmlc.ops.move import RESHAPE, RESHAPES, SQUEEZE, TRANSPOSE
from dmlc.ops.select import ARGMAX, ARGMIN, EXTREME_OF, ArgAttributes
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.fuse_selection.selections import name_of, through_index_cast, why_no_extreme
from dmlc.passes.layouts import is_unit
from dmlc.passes.lowering import KEEP, Lowered, LoweredNode, simplifies, taken_elsewhere
from dmlc.passes.manager import EXACT, REASSOCIATES, PassContext
from dmlc.passes.patterns import made_by
from dmlc.passes.rewrite import Miss


@simplifies(GATHER_ELEMENTS, GATHER, gives=REASSOCIATES)
def gather_at_arg(e: Sketch, node: Node, other: Term, i: Term) -> Lowered:
    """gather_elements(x) at argmax(x) becomes reduce_max(x), at argmin(x) reduce_min(x).

    Among equal elements it does not matter which is gathered, but for the sign of a zero, which is unspecified. So is
    which value wins where a NaN is among them, but runtimes do choose otherwise there: ``reassociates``, so that
    ``--exact`` keeps the two.
    """
    search = e.made_by(through_index_cast(i.value, e.taken), ARGMAX, ARGMIN)
    if search is None or (node.op is GATHER and other.rank != 1):
        return KEEP
    a, axis, x = search.attributes_as(ArgAttributes), node.attributes_as(IndexAttributes).axis, search.operand("x")
    if x is not other.value:
        return Miss("{0} is gathered, and the index is of {1}", (name_of(other.value), name_of(x)), other.value)
    if a.axes != (axis,):
        return Miss("the index counts along {0}, and axis {1} is gathered", (list(a.axes), axis), search.result)
    reason = taken_elsewhere(e) or why_no_extreme(e.target, EXTREME_OF[search.op], other.dtype)
    return reason or e.reduced(EXTREME_OF[search.op], x, a.axes, keepdims=a.keepdims).with_ones(node.result.shape)


_MOVES = (*RESHAPES, TRANSPOSE)


class _OneHot(Struct, frozen=True):
    """``search`` is the argmax, ``hot`` the one_hot, ``moves`` what stands between it and a cast, first to last.

    ``axis`` is where the searched axes begin, ``place`` where the hot axis stands without what keepdims left.
    """

    root: Node
    search: Node
    hot: Node
    moves: tuple[Node, ...]

    @property
    def a(self) -> ArgAttributes:
        return self.search.attributes_as(ArgAttributes)

    @property
    def axis(self) -> int:
        return self.a.axes[0]

    @property
    def place(self) -> int:
        place = self.hot.attributes_as(OneHotAttributes).axis
        return place - len(self.a.axes) if self.a.keepdims and place > self.axis else place


def _class_of_hot(rule: Any, match: LoweredNode, graph: Graph, context: PassContext) -> str:
    return REASSOCIATES if context.capabilities.emits_nodes else EXACT


@simplifies(ONE_HOT, CAST, rewrite_class=REASSOCIATES, class_of=_class_of_hot)
def hot_argmax(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """one_hot of argmax becomes hardmax, also through a cast or moves (a transpose, a reshape) after the one_hot.

    With a NaN among the elements ONNX Runtime may give all zeros on its CPU, and one_hot has a 1 somewhere. It is the
    same function of numbers, but not of NaN, so ``reassociates``. NumPy code has no such case: there it is ``exact``.
    """
    found = _one_hot(e, node)
    if found is None:
        return KEEP
    reason = taken_elsewhere(e) or _why_other(found, e.graph) or _why_no_gain(e, found)
    if reason is not None:
        return reason
    a, axis, place, x = found.a, found.axis, found.place, e.of(found.search.operand("x"))
    size = product([x.shape[i] for i in a.axes])
    hot = e.hardmax(x.reshape((*x.shape[:axis], size, *x.shape[a.axes[-1] + 1 :])), axes=(axis,))
    hot = hot.transposed(_moving(hot.rank, axis, place))
    if a.keepdims:
        unit = axis if found.hot.attributes_as(OneHotAttributes).axis > axis else axis + 1
        hot = e.unsqueeze(hot, axes=(unit,))
    for move in found.moves:
        (hot,) = e.again(move, hot)
    return hot


def _one_hot(e: Sketch, node: Node) -> _OneHot | None:
    moves: list[Node] = []
    hot: Node | None = node
    if node.op is CAST:
        hot = node.operand("x").producer
        while hot is not None and hot.op in _MOVES:
            moves.insert(0, hot)
            hot = hot.operand("x").producer
    if hot is None or hot.op is not ONE_HOT:
        return None
    between: list[Node] = []
    search = made_by(through_index_cast(hot.operand("indices"), between), ARGMAX)
    if search is None or (node is hot and _is_cast_to(node, search.operand("x"))):
        return None  # the cast is the root of it all
    e.taken += [*reversed(moves), *([] if hot is node else [hot]), *between, search]
    return _OneHot(node, search, hot, tuple(moves))


def _why_other(match: _OneHot, graph: Graph) -> Miss | None:
    """Return the reason why the one_hot is not a hardmax."""
    a, h, x = match.a, match.hot.attributes_as(OneHotAttributes), match.search.operand("x")
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


def _why_no_gain(e: Sketch, match: _OneHot) -> Miss | None:
    """Return the reason why a hardmax costs more on the target than the nodes as they are."""
    x = match.search.operand("x")
    dtype, target = x.type.dtype, e.target
    if match.root is match.hot and not _is_taken_up(match):
        text = "the new axis is at {0}, the reduced one at {1}: a transpose would be needed"
        return Miss(text, (match.hot.attributes_as(OneHotAttributes).axis, match.axis), match.hot.result)
    if not target.emits_nodes:
        return None
    if not target.takes("Hardmax", dtype, inserted=True):
        return Miss("Hardmax of {0} has no kernel", (dtype,), x)
    last = all(is_unit(e.graph, d) for d in x.shape[match.a.axes[-1] + 1 :])
    if not last and target.opset < 13:
        return Miss("below opset 13 Hardmax reduces the last axis: transposes would be needed")
    parts = sum(target.cost_per_element(op_type, dtype) for op_type in ("ArgMax", "OneHot"))
    if not last and target.cost_per_element("Hardmax", dtype) > parts:
        name = target.target.name
        return Miss("off the last axis {0} is slower at Hardmax than at ArgMax and OneHot", (name,), saves=0)
    return None


def _is_cast_to(hot: Node, x: Value) -> bool:
    """Return whether the result of the one_hot is cast to the dtype of ``x``, possibly after layout operations."""
    user = hot
    while user is hot or user.op in _MOVES:
        if not user.result.is_used_once:
            return False
        user = user.result.users[0]
    return user.op is CAST and user.result.type.dtype is x.type.dtype and hot.result.type.dtype is not x.type.dtype


def _is_taken_up(match: _OneHot) -> bool:
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
