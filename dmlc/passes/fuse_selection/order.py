"""Selections of negated values, and of values that a monotone function changed."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dmlc.ir import Node
from dmlc.ops.choose import CAST
from dmlc.ops.elementwise import NEG, UNARY
from dmlc.ops.node_name import title_of
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX
from dmlc.ops.select import ARGMAX, ARGMIN, TOP_K, TopKAttributes
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.fuse_selection.selections import (
    OTHER_END,
    OTHER_ORDER,
    is_search,
    negation_of,
    why_kept_alive,
    why_order_may_not_turn,
)
from dmlc.passes.lowering import KEEP, Lowered, simplifies
from dmlc.passes.manager import RANGE
from dmlc.passes.rewrite import Miss


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
