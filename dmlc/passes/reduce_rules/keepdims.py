"""Normal form of ``keepdims``: whatever says the whole in the fewest nodes.

A squeeze of the reduced axes goes into the reduction as ``keepdims=false``, an unsqueeze that puts them back as
``keepdims=true``. So no reduction is followed by a move of its own axes, and none costs a move that the flag can say.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from dmlc.ir import Graph, Node, Value
from dmlc.ops.move import RESHAPE, SQUEEZE, UNSQUEEZE, AxesAttributes
from dmlc.ops.reduce import REDUCTIONS
from dmlc.ops.rules import reduced_shape
from dmlc.ops.select import ARGMAX, ARGMIN
from dmlc.passes.reduce_rules.moves import is_unit
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere
from dmlc.records import dataclass

_KEEPING = frozenset((*REDUCTIONS, ARGMAX, ARGMIN))


@dataclass(slots=True, eq=False)
class Absorbed(Match):
    axes: tuple[int, ...] = ()
    keepdims: bool = True


class AbsorbMove(Rule[Absorbed]):
    """A squeeze, unsqueeze or reshape after a reduction that ``keepdims`` can say becomes that flag."""

    name = "absorb-move-into-keepdims"
    roots = (SQUEEZE, UNSQUEEZE, RESHAPE)

    def match(self, node: Node, graph: Graph) -> Absorbed | None:
        inner = node.operand(0).producer
        if inner is None or inner.op not in _KEEPING:
            return None
        attributes: Any = inner.attributes
        axes: tuple[int, ...] = attributes.axes
        shape, target = inner.operand(0).shape, node.result.shape
        if reduced_shape(shape, axes, not attributes.keepdims) == target:
            return Absorbed(node, (inner,), axes, not attributes.keepdims)
        if node.op is SQUEEZE:
            wider = _with_squeezed(graph, inner, axes, attributes.keepdims, node.attributes_as(AxesAttributes).axes)
            return None if wider is None else Absorbed(node, (inner,), wider, False)
        return None

    def check(self, match: Absorbed, graph: Graph) -> Miss | None:
        return used_elsewhere(match.consumed[0].result)

    def build(self, match: Absorbed, rewriter: Rewriter) -> Sequence[Value]:
        (inner,) = match.consumed
        attributes: Any = inner.attributes
        record = dataclasses.replace(attributes, axes=match.axes, keepdims=match.keepdims)
        return rewriter.add_node(inner.op, inner.operands, record).results


def _with_squeezed(
    graph: Graph, inner: Node, axes: tuple[int, ...], keepdims: bool, squeezed: tuple[int, ...]
) -> tuple[int, ...] | None:
    """The reduced axes and the squeezed ones together, as axes of the reduction's operand.

    Reducing an axis of size 1 too changes nothing. None where a reduced axis would stay, or size 1 is not proved.
    """
    shape = inner.operand(0).shape
    left = [a for a in range(len(shape)) if keepdims or a not in axes]
    taken = {left[s] for s in squeezed}
    if keepdims and not set(axes) <= taken:
        return None
    if not all(is_unit(graph, shape[a]) for a in taken.difference(axes)):
        return None
    return tuple(sorted(taken.union(axes)))
