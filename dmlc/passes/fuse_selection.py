"""``fuse-selection``: searches for the largest or smallest element, and what is done with their index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from msgspec import Struct
from msgspec.structs import replace

from dmlc.ir import DType, Graph, Node, Operation, OpError, Value, product
from dmlc.ir.dtype import i64, u32, u64
from dmlc.ops.binary import DIV, MUL, SUB
from dmlc.ops.choose import CAST
from dmlc.ops.elementwise import NEG, UNARY
from dmlc.ops.index import GATHER, GATHER_ELEMENTS, ONE_HOT, IndexAttributes, OneHotAttributes
from dmlc.ops.move import RESHAPE, RESHAPES, SQUEEZE, TRANSPOSE
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX
from dmlc.ops.opaque import title_of
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_MIN, Reduction
from dmlc.ops.rules import reduced_shape
from dmlc.ops.select import ARGMAX, ARGMIN, EXTREME_OF, TOP_K, ArgAttributes, TopKAttributes
from dmlc.passes.canonicalize_reduce import axis_groups
from dmlc.passes.canonicalize_reduce.kinds import magnitude
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.fold_constants.arithmetic import double_inverse
from dmlc.passes.fold_constants.layouts import MOVE_RULES
from dmlc.passes.layouts import is_unit
from dmlc.passes.lowering import KEEP, Lowered, simplifies, taken_elsewhere
from dmlc.passes.manager import EXACT, RANGE, REASSOCIATES, PassContext
from dmlc.passes.patterns import Seen, both_ways, made_by, scalar_of
from dmlc.passes.rewrite import Miss, RewritePass, Rule, rules_of, used_elsewhere
from dmlc.targets.capabilities import Capabilities

# --- Selections, what stands around them, and the reasons against making one

#: Searches for the other end.
OTHER_END = {ARGMAX: ARGMIN, ARGMIN: ARGMAX}
OTHER_ORDER = {"largest": "smallest", "smallest": "largest"}


def through_index_cast(value: Value, seen: Seen) -> Value:
    """Return the operand of a cast of an index. It is in range of every index type (32 or 64 bits), so no type loses
    it."""
    node = made_by(value, CAST)
    if node is None:
        return value
    seen.append(node)
    return node.operand("x")


def negation_of(value: Value, seen: Seen) -> Value | None:
    """``x`` where the value is ``-x``, ``0 - x``, ``x * -1`` or ``x / -1``. Of zeros the sign may differ."""
    node = made_by(value, NEG, SUB, MUL, DIV)
    if node is None:
        return None
    x = node.operand("x") if node.op is NEG else _negated(node)
    if x is None or x.type != value.type:  # a constant of many axes would broadcast it
        return None
    seen.append(node)
    return x


def _negated(node: Node) -> Value | None:
    a, b = node.operand("a"), node.operand("b")
    if node.op is SUB:
        return b if scalar_of(a) == 0 else None
    if node.op is DIV:
        return a if scalar_of(b) == -1 else None
    return next((x for x, c in both_ways(node) if scalar_of(c) == -1), None)


def why_order_may_not_turn(x: Value, graph: Graph) -> Miss | None:
    """The reason why negating ``x`` might not turn its order around: the lowest integer negates to itself."""
    dtype = x.type.dtype
    if dtype.is_float or (dtype.kind == "int" and magnitude(x, graph) <= int(dtype.highest)):
        return None
    return Miss("it is not proved that {0} is above {1}, which negates to itself", (name_of(x), dtype.lowest), x)


def is_search(node: Node) -> bool:
    """Return whether the node only selects a position: argmax, argmin, or a top_k whose values nobody uses."""
    return node.op in OTHER_END or (node.op is TOP_K and not node.results[0].uses)


def why_kept_alive(value: Value) -> Miss | None:
    """The reason why a search that no longer reads the value saves nothing: others than searches read it too."""
    if all(is_search(user) for user in value.users):
        return None
    return used_elsewhere(value)


def name_of(value: Value) -> str:
    if value.name:
        return value.name
    return "an input" if value.producer is None else f"the result of {value.producer.op.name}"


def why_no_extreme(capabilities: Capabilities, op: Operation, dtype: DType) -> Miss | None:
    """The reason against a new ``reduce_max`` or ``reduce_min`` (``op``) of the dtype where there was none.

    i64 (and what is computed in it) is compared wrongly by ONNX Runtime's CPU provider. An execution provider has
    it where a kernel takes the dtype and no session fails for it.
    """
    if not capabilities.emits_nodes or capabilities.is_native(op, dtype):
        return None
    if dtype in (i64, u32, u64):
        return Miss("ReduceMax and ReduceMin of {0} need detours: kernels compare large ones wrongly", (dtype,))
    assert isinstance(op, Reduction)
    if capabilities.has_provider and not capabilities.computes(op.onnx, dtype):
        name, opset = capabilities.target.name, capabilities.opset
        return Miss("{0} has no {1} of {2} at opset {3}", (name, op.onnx, dtype, opset))
    return None


# --- Selections over flattened axes, and ``top_k`` of one element


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


# --- Selections of negated values, and of values that a monotone function changed


@simplifies(ARGMAX, ARGMIN)
def arg_of_negation(e: Sketch, node: Node, y: Term) -> Lowered:
    """argmin(-x) becomes argmax(x), and argmax(-x) argmin(x).

    Exact for floats: negation turns their order around, and -0 equals +0. Of integers the lowest negates to itself.
    """
    x = negation_of(y.value, e.taken)
    if x is None:
        return KEEP
    reason = why_order_may_not_turn(x, e.graph) or why_kept_alive(y.value)
    return reason or e(OTHER_END[node.op], x, attributes=node.attributes)


@simplifies(TOP_K)
def top_k_of_negation(e: Sketch, node: Node, y: Term) -> Lowered:
    """top_k(-x) becomes a top_k(x) of the other order, where its values are not used or negated back.

    Exact as argmax(-x) is: in both orders equal values are ordered by ascending index.
    """
    x, values = negation_of(y.value, e.taken), node.results[0]
    if x is None:
        return KEEP
    if any(user.op is not NEG for user in values.users):
        return Miss("the values are used as they are: they would have to be negated instead", (), values)
    others = any(user is not node for user in y.value.users)
    if reason := why_order_may_not_turn(x, e.graph) or (why_kept_alive(y.value) if others else None):
        return reason
    a = node.attributes_as(TopKAttributes)
    found, indices = e.results(TOP_K, x, attributes=replace(a, order=OTHER_ORDER[a.order]))
    return [-found if values.uses else values, indices]


_GROUPED = (SOFTMAX, LOG_SOFTMAX)
#: Functions that rise everywhere; what rounds to integers has too many ties.
_RISING = tuple([op for op in UNARY if op.rises and op.rounding != "exact"])


def _axes(node: Node) -> tuple[int, ...]:
    """The axes that a search goes over."""
    if node.op is TOP_K:
        return (node.attributes_as(TopKAttributes).axis,)
    attributes: Any = node.attributes
    axes: tuple[int, ...] = attributes.axes
    return axes


def _search_anew(e: Sketch, node: Node, inner: Node) -> Lowered:
    """The search in what its operand was made from. Of a top_k only the indices are used."""
    made = e.again(node, inner.operand("x"))
    return why_kept_alive(inner.result) or ([node.results[0], made[1]] if node.op is TOP_K else made)


@simplifies(ARGMAX, ARGMIN, TOP_K, fed_by=(CAST,))
def search_of_wider(e: Sketch, node: Node, y: Term) -> Lowered:
    """argmax, argmin or top_k indices of a cast to a wider type take the operand of the cast.

    Exact: the wider type has every number, in the same order; NaN stays NaN. Where the target compares the narrower
    type as it is, and no slower: ONNX Runtime's CPU provider searches integers slower than floats.
    """
    inner = e.made_by(y, CAST)
    if inner is None or not is_search(node):
        return KEEP
    dtype, wide, op_type, name = inner.operand("x").type.dtype, y.dtype, title_of(node), e.target.target.name
    if dtype.kind == "bool" or not wide.holds(dtype):
        return KEEP
    if not e.target.takes(op_type, dtype):
        return Miss("{1} has no argmax or top-k of {0}", (dtype, name))
    if e.target.cost_per_element(op_type, dtype) > e.target.cost_per_element(op_type, wide):
        return Miss("argmax and top-k of {0} are slower than of {1} on {2}", (dtype, wide, name), saves=0)
    return _search_anew(e, node, inner)


@simplifies(ARGMAX, TOP_K, gives=RANGE)
def search_of_rising(e: Sketch, node: Node, y: Term) -> Lowered:
    """argmax (or top_k indices) of softmax, log_softmax or a rising function (exp, log, tanh, ...) takes x itself.

    Equal only where no two numbers become one by rounding, overflow or saturation (argmax(exp([100, 200])) is 0) and
    none becomes NaN: ``range``. Small results, which underflow first, are not searched: no argmin, no smallest.
    """
    inner = e.made_by(y, *_GROUPED, *_RISING)
    if inner is None or not is_search(node):
        return KEEP
    if node.op is TOP_K and node.attributes_as(TopKAttributes).order == "smallest":
        return Miss("{0} may round its smallest operands to one number", (inner.op.name,))
    if inner.op in _GROUPED and not set(_axes(node)) <= set(_axes(inner)):
        text = "the reduction is over {0}, and {1} keeps the order only along {2}"
        return Miss(text, (list(_axes(node)), inner.op.name, list(_axes(inner))), inner.result)
    return _search_anew(e, node, inner)


# --- Uses of an index that a selection returns: gathers and one-hot masks


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


@simplifies(ONE_HOT, CAST, gives=(REASSOCIATES, EXACT))
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
    e.gives = REASSOCIATES if e.target.emits_nodes else EXACT
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


_RULES = rules_of(globals())


class FuseSelection(RewritePass, frozen=True):
    """Fuse an arg reduction or top_k with the operations on its index.

    The language does not define which element a selection takes if one is NaN. A rewrite is ``exact`` if the same kind
    of operation still selects. If another operation selects, results differ next to a NaN (ONNX Runtime's Hardmax of a
    group that starts with one is all zeros, and one_hot of its ArgMax is not): ``reassociates``. Rewrites that remove a
    rounding or saturating operation before the selection are ``range``.
    """

    name: ClassVar[str] = "fuse-selection"
    summary: ClassVar[str] = "Make one node of argmax or top-k and the operations on its index."
    rewrite_class: ClassVar[str] = RANGE

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return (*_RULES, double_inverse, *MOVE_RULES)
