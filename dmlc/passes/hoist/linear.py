"""Rules of ``hoist`` for sums and means: scales, shifts and sums of sums."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from dmlc.ir import Graph, Node, Operation, Value, product
from dmlc.ir.dtype import f16
from dmlc.ops.binary import ADD, DIV, MUL, SUB
from dmlc.ops.elementwise import ERF, NEG, TANH
from dmlc.ops.reduce import (
    REDUCE_LOG_SUM_EXP,
    REDUCE_MEAN,
    REDUCE_SUM,
    REDUCTIONS,
    ReduceAttributes,
)
from dmlc.passes.fuse_selection.selections import name_of
from dmlc.passes.hoist.split import (
    SplitMatch,
    again,
    reduced,
    split_one,
    split_two,
    why_not_hoisted,
    with_fixed,
)
from dmlc.passes.manager import EXACT, REASSOCIATES, PassContext
from dmlc.passes.repair.gelu import find_gelu
from dmlc.passes.rewrite import Miss, Rewriter, Rule

_Numbers = np.ndarray[Any, Any]
#: Nodes between the last factor of a GELU and its erf or tanh, at most.
_MOST_STEPS = 8
_TOTALS = tuple([op for op in REDUCTIONS if op.base is REDUCE_SUM and op.after != "log"])


class ScaleAfterSum(Rule[SplitMatch]):
    """reduce_sum(x * c) becomes reduce_sum(x) * c, and so on for means, norms, quotients and negations.

    ``c`` is the same for all elements of a group. For norms and sums of squares it is a constant, which becomes its
    magnitude or its square. ``exact`` for the negation of a sum or mean, else ``reassociates``: each element is
    rounded once less. Partial sums are as much larger or smaller as ``c`` says. Floats only; a sum of f16 never
    becomes larger than it was, for it might overflow.
    """

    name = "scale-after-sum"
    roots: ClassVar[tuple[Operation, ...]] = (*_TOTALS, REDUCE_MEAN)

    def match(self, node: Node, graph: Graph) -> SplitMatch | None:
        inner = node.operand("x").producer
        if inner is None or not node.result.type.dtype.is_float:
            return None
        if inner.op is NEG and (node.op is REDUCE_SUM or node.op is REDUCE_MEAN):
            return split_one(node, inner)
        return split_two(node, inner, graph) if inner.op is MUL or inner.op is DIV else None

    def check(self, match: SplitMatch, graph: Graph) -> Miss | None:
        if match.fixed is None:
            return why_not_hoisted(match)
        return why_not_hoisted(match) or _why_no_scale(match) or _why_in_gelu(match)

    def class_of(self, match: SplitMatch, graph: Graph, context: PassContext) -> str:
        return EXACT if match.node.op is NEG else REASSOCIATES

    def build(self, match: SplitMatch, rewriter: Rewriter) -> Sequence[Value]:
        total = reduced(match, rewriter, match.root.op)
        numbers = match.number
        if numbers is None or match.root.op not in _POWER:
            return [again(match, rewriter, total)]
        return [with_fixed(match, rewriter, total, _POWER[match.root.op](numbers))]


def _why_in_gelu(match: SplitMatch) -> Miss | None:
    """The reason against taking the half out of a GELU, which is one operator where it is whole."""
    assert match.fixed is not None
    pending = [match.operand]
    for _ in range(_MOST_STEPS):
        node = pending.pop(0).producer if pending else None
        if node is not None and (node.op is ERF or node.op is TANH):
            found = find_gelu(node)
            if found is not None and found.root is match.node and found.factor == 1:
                return Miss("{0} is the half of a GELU", (name_of(match.fixed),), match.fixed)
        elif node is not None and node.op in (ADD, SUB, MUL, DIV):
            pending += [value for value in node.operands if value is not None]
    return None


def _square(numbers: _Numbers) -> _Numbers:
    with np.errstate(all="ignore"):
        return np.asarray(numbers * numbers)


def _magnitude(numbers: _Numbers) -> _Numbers:
    return np.asarray(np.abs(numbers))


#: The factor outside by the one inside.
_POWER: dict[Operation, Callable[[_Numbers], _Numbers]] = {
    op: _square if op.before == "square" and not op.after else _magnitude for op in _TOTALS if op.before
}


def _why_no_scale(match: SplitMatch) -> Miss | None:
    assert match.fixed is not None
    numbers, name = match.number, name_of(match.fixed)
    if match.node.op is DIV and not match.first:
        return Miss("{0} is divided by the summed value", (name,), match.fixed)
    if numbers is None:
        if match.root.op in _POWER:
            return Miss("{0} is not a constant, and its magnitude would take a node more", (name,), match.fixed)
        if match.root.op in _TOTALS and match.root.result.type.dtype is f16:
            return Miss("without {0} the sum of f16 might overflow", (name,), match.fixed)
        return None
    kept = _POWER[match.root.op](numbers) if match.root.op in _POWER else numbers
    if not np.isfinite(kept).all() or not kept.all():
        return Miss(
            "the factors, as {0} takes them, are not all finite and other than 0", (match.root.op.name,), match.fixed
        )
    if match.root.op in _TOTALS and match.root.result.type.dtype is f16:
        grows = numbers if match.node.op is MUL else 1 / numbers.astype(np.float64)
        if (np.abs(grows) < 1).any():
            return Miss("the sum of f16 might overflow before it is scaled by less than 1")
    return None


class ShiftAfterMean(Rule[SplitMatch]):
    """reduce_mean(x + c) becomes reduce_mean(x) + c, a sum adds c times the number of elements, a log-sum-exp c.

    ``reassociates``. ``c`` is a constant that is the same for all elements of a group; floats only, and no sums of
    f16. Where ``x`` and ``c`` nearly cancel, what is lost is what changing ``x`` in its last place changes too.
    """

    name = "shift-after-mean"
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_MEAN, REDUCE_SUM, REDUCE_LOG_SUM_EXP)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> SplitMatch | None:
        inner = node.operand("x").producer
        if inner is None or (inner.op is not ADD and inner.op is not SUB) or not node.result.type.dtype.is_float:
            return None
        match = split_two(node, inner, graph)
        return None if match is None or match.number is None else match

    def check(self, match: SplitMatch, graph: Graph) -> Miss | None:
        return why_not_hoisted(match) or _why_no_shift(match)

    def build(self, match: SplitMatch, rewriter: Rewriter) -> Sequence[Value]:
        total = reduced(match, rewriter, match.root.op)
        if match.root.op is not REDUCE_SUM:
            return [again(match, rewriter, total)]
        return [with_fixed(match, rewriter, total, _shift(match))]


def _why_no_shift(match: SplitMatch) -> Miss | None:
    root = match.root
    if root.op is REDUCE_LOG_SUM_EXP and match.node.op is SUB and not match.first:
        return Miss("the exponentials of what is subtracted do not add up")
    if root.op is REDUCE_SUM and root.result.type.dtype is f16:
        return Miss("a sum of f16 might overflow without the shift, or by it")
    numbers = _shift(match)
    if numbers is None:
        return Miss("how often the number is added is not known while compiling")
    return None if np.isfinite(numbers).all() else Miss("the sum of the added numbers is not finite")


def _shift(match: SplitMatch) -> _Numbers | None:
    """Return the term to add after the reduction; None if it depends on unknown sizes."""
    numbers = match.number
    assert numbers is not None
    if match.root.op is not REDUCE_SUM:
        return numbers
    axes = match.root.attributes_as(ReduceAttributes).axes
    count = product([match.node.result.shape[a] for a in axes])
    if not isinstance(count, int):
        return None
    with np.errstate(all="ignore"):
        return np.asarray(numbers.astype(np.float64) * count).astype(numbers.dtype)
