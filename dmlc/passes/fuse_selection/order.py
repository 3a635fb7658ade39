"""Selections of negated values, and of values that a monotone function changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from msgspec.structs import replace

from dmlc.ir import Graph, Node, Operation, Value
from dmlc.ops.choose import CAST
from dmlc.ops.elementwise import NEG, UNARY
from dmlc.ops.node_name import title_of
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX
from dmlc.ops.select import ARGMAX, ARGMIN, TOP_K, TopKAttributes
from dmlc.passes.fuse_selection.selections import (
    OTHER_END,
    OTHER_ORDER,
    is_search,
    negation_of,
    why_kept_alive,
    why_order_may_not_turn,
)
from dmlc.passes.manager import RANGE
from dmlc.passes.patterns import made_by
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule


class NegationMatch(Match, eq=False, kw_only=True):
    """``x`` is what was negated."""

    x: Value


class _OfNegation(Rule[NegationMatch]):
    """Base: rules on what is taken of a negated value."""

    def match(self, node: Node, graph: Graph) -> NegationMatch | None:
        seen: list[Node] = []
        x = negation_of(node.operand("x"), seen)
        return None if x is None else NegationMatch(node, tuple(seen), x=x)


class ArgOfNegation(_OfNegation):
    """argmin(-x) becomes argmax(x), and argmax(-x) argmin(x).

    Exact for floats: negation turns their order around, and -0 equals +0. Of integers the lowest negates to itself.
    """

    name = "arg-of-negation"
    roots: ClassVar[tuple[Operation, ...]] = (ARGMAX, ARGMIN)

    def check(self, match: NegationMatch, graph: Graph) -> Miss | None:
        return why_order_may_not_turn(match.x, graph) or why_kept_alive(match.root.operand("x"))

    def build(self, match: NegationMatch, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        return [rewriter.add(OTHER_END[root.op], [match.x], root.attributes)]


class TopKOfNegation(_OfNegation):
    """top_k(-x) becomes a top_k(x) of the other order, where its values are not used or negated back.

    Exact as argmax(-x) is: in both orders equal values are ordered by ascending index.
    """

    name = "top-k-of-negation"
    roots: ClassVar[tuple[Operation, ...]] = (TOP_K,)

    def check(self, match: NegationMatch, graph: Graph) -> Miss | None:
        values = match.root.results[0]
        if any(user.op is not NEG for user in values.users):
            return Miss("the values are used as they are: they would have to be negated instead", (), values)
        miss = why_order_may_not_turn(match.x, graph)
        if miss is None and any(user is not match.root for user in match.root.operand("x").users):
            miss = why_kept_alive(match.root.operand("x"))
        return miss

    def build(self, match: NegationMatch, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        a = root.attributes_as(TopKAttributes)
        turned = rewriter.add_node(TOP_K, [match.x], replace(a, order=OTHER_ORDER[a.order]))
        values, indices = turned.results
        return [rewriter.add(NEG, [values]) if root.results[0].uses else values, indices]


_GROUPED = (SOFTMAX, LOG_SOFTMAX)
#: Functions that rise everywhere; what rounds to integers has too many ties.
_RISING = tuple([op for op in UNARY if op.rises and op.rounding != "exact"])


class _MonotoneMatch(Match, eq=False, kw_only=True):
    """``inner`` is the node before the search."""

    inner: Node


def _axes(node: Node) -> tuple[int, ...]:
    """The axes that a search goes over."""
    if node.op is TOP_K:
        return (node.attributes_as(TopKAttributes).axis,)
    attributes: Any = node.attributes
    axes: tuple[int, ...] = attributes.axes
    return axes


def _search_anew(match: _MonotoneMatch, rewriter: Rewriter) -> Sequence[Value]:
    """The search in what its operand was made from. Of a top_k only the indices are used."""
    root = match.root
    made = rewriter.add_node(root.op, [match.inner.operand("x")], root.attributes)
    return [root.results[0], made.results[1]] if root.op is TOP_K else made.results


class SearchOfRising(Rule[_MonotoneMatch]):
    """argmax (or top_k indices) of softmax, log_softmax or a rising function (exp, log, tanh, ...) takes x itself.

    Equal only where no two numbers become one by rounding, overflow or saturation (argmax(exp([100, 200])) is 0) and
    none becomes NaN: ``range``. Small results, which underflow first, are not searched: no argmin, no smallest.
    """

    name = "search-of-rising"
    roots: ClassVar[tuple[Operation, ...]] = (ARGMAX, TOP_K)
    rewrite_class = RANGE

    def match(self, node: Node, graph: Graph) -> _MonotoneMatch | None:
        inner = made_by(node.operand("x"), *_GROUPED, *_RISING)
        return None if inner is None or not is_search(node) else _MonotoneMatch(node, (inner,), inner=inner)

    def check(self, match: _MonotoneMatch, graph: Graph) -> Miss | None:
        root, inner = match.root, match.inner
        if root.op is TOP_K and root.attributes_as(TopKAttributes).order == "smallest":
            return Miss("{0} may round its smallest operands to one number", (inner.op.name,))
        if inner.op in _GROUPED and not set(_axes(root)) <= set(_axes(inner)):
            text = "the reduction is over {0}, and {1} keeps the order only along {2}"
            return Miss(text, (list(_axes(root)), inner.op.name, list(_axes(inner))), inner.result)
        return why_kept_alive(inner.result)

    def build(self, match: _MonotoneMatch, rewriter: Rewriter) -> Sequence[Value]:
        return _search_anew(match, rewriter)


class SearchOfWider(Rule[_MonotoneMatch]):
    """argmax, argmin or top_k indices of a cast to a wider type take the operand of the cast.

    Exact: the wider type has every number, in the same order; NaN stays NaN. Where the target compares the narrower
    type as it is, and no slower: ONNX Runtime's CPU provider searches integers slower than floats.
    """

    name = "search-of-wider"
    roots: ClassVar[tuple[Operation, ...]] = (ARGMAX, ARGMIN, TOP_K)

    def match(self, node: Node, graph: Graph) -> _MonotoneMatch | None:
        inner = made_by(node.operand("x"), CAST)
        if inner is None or not is_search(node):
            return None
        narrow = inner.operand("x").type.dtype
        keeps_order = narrow.kind != "bool" and inner.result.type.dtype.holds(narrow)
        return _MonotoneMatch(node, (inner,), inner=inner) if keeps_order else None

    def check(self, match: _MonotoneMatch, graph: Graph) -> Miss | None:
        dtype, wide = match.inner.operand("x").type.dtype, match.inner.result.type.dtype
        op_type, name = title_of(match.root), self.capabilities.target.name
        if not self.capabilities.takes(op_type, dtype):
            return Miss("{1} has no argmax or top-k of {0}", (dtype, name))
        if self.capabilities.cost_per_element(op_type, dtype) > self.capabilities.cost_per_element(op_type, wide):
            return Miss("argmax and top-k of {0} are slower than of {1} on {2}", (dtype, wide, name), saves=0)
        return why_kept_alive(match.inner.result)

    def build(self, match: _MonotoneMatch, rewriter: Rewriter) -> Sequence[Value]:
        return _search_anew(match, rewriter)
