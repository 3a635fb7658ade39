"""Opaque nodes of which an operand is known better than when the model was read."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import ForeignType, Graph, Node, TensorType, Value, dim_names
from dmlc.ops.constant import CONSTANT
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes
from dmlc.passes.rewrite import Match, Rewriter, Rule
from dmlc.records import dataclass


@dataclass(slots=True, eq=False)
class ReadMatch(Match):
    """``inner`` computes the results of the root from ``operands``."""

    inner: Graph | None = None
    operands: Sequence[Value] = ()


class ReadAgain(Rule[ReadMatch]):
    """An opaque node becomes what the importer reads with the constants and types that its operands have by now.

    A Reshape to a shape that folded, a Range to a limit that did, and what follows in the types of their users.
    """

    name = "read-again"
    roots = (OPAQUE,)

    def match(self, node: Node, graph: Graph) -> ReadMatch | None:
        if node not in graph.outdated:
            return None
        del graph.outdated[node]
        if graph.reader is None or node.origin is None:
            return None
        found = graph.reader(node)
        if found is None or not _is_better(found[0], node):
            return None
        return ReadMatch(node, inner=found[0], operands=found[1])

    def describe(self, match: ReadMatch) -> str:
        return f"{match.root.attributes_as(OpaqueAttributes).full_name} with operands that are known by now"

    def build(self, match: ReadMatch, rewriter: Rewriter) -> Sequence[Value]:
        assert match.inner is not None
        mapping = dict(zip(match.inner.inputs, match.operands, strict=True))
        made = dict(zip([n for n, _ in match.inner.outputs], rewriter.inline(match.inner, mapping), strict=True))
        results = [made.get(f"out_{i}", old) for i, old in enumerate(match.root.results)]
        for node in rewriter.made[:]:
            if node.op is CONSTANT and not node.is_used and node.result not in results:  # the importer read its numbers
                rewriter.made.remove(node)
                rewriter.graph.erase(node)
        return results


def _is_better(inner: Graph, node: Node) -> bool:
    """True if the inner graph has an operation where the node is opaque, or knows more of a result."""
    if not any(n.op is OPAQUE for n in inner):
        return True
    found = dict(inner.outputs)
    pairs = [(found.get(f"out_{i}"), old.type) for i, old in enumerate(node.results)]
    around = {name for value in inner.inputs for size in value.shape for name in dim_names(size)}
    return any(new is not None and _open(new.type, around) < _open(old, around) for new, old in pairs)


def _open(type: TensorType, around: set[str]) -> float:
    """A score of the sizes that are not known, those that no operand has twice; more than any for an unknown rank."""
    if isinstance(type, ForeignType):
        return 1000 if type.proto else 1001
    return sum([0 if isinstance(size, int) else 1 if dim_names(size) <= around else 2 for size in type.shape])
