"""An expand that broadcasting makes needless."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Graph, Node, OpError, Value
from dmlc.ops.binary import BINARY
from dmlc.ops.choose import WHERE
from dmlc.ops.move import EXPAND
from dmlc.passes.rewrite import Match, Rewriter, Rule
from dmlc.records import dataclass


@dataclass(slots=True, eq=False)
class _ExpandMatch(Match):
    index: int = 0


class DropExpand(Rule[_ExpandMatch]):
    """The expand of an operand that the operation broadcasts anyway goes away.

    ``exact``. Only where the result keeps its shape without it; the expand stays for others that use it.
    """

    name = "drop-expand"
    roots = (*BINARY, WHERE)
    fed_by = (EXPAND,)

    def match(self, node: Node, graph: Graph) -> _ExpandMatch | None:
        for index, value in enumerate(node.operands):
            producer = None if value is None else value.producer
            if producer is not None and producer.op is EXPAND and _stands_without(node, index, producer, graph):
                return _ExpandMatch(node, (producer,), index)
        return None

    def build(self, match: _ExpandMatch, rewriter: Rewriter) -> Sequence[Value]:
        node = match.root
        operands = list(node.operands)
        operands[match.index] = match.consumed[0].operand(0)
        return rewriter.add_node(node.op, operands, node.attributes).results


def _stands_without(node: Node, index: int, expand: Node, graph: Graph) -> bool:
    operands = list(node.operands)
    operands[index] = expand.operand(0)
    try:
        types, _ = graph.infer(node.op, operands, node.attributes)
    except OpError:
        return False
    return types[0] == node.result.type
