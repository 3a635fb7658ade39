"""The base class of the rules of ``legalize``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from dmlc.ir import Graph, Node, Value
from dmlc.passes.node_maker import Maker
from dmlc.passes.rewrite import Match, Rewriter, Rule


class LegalRule(Rule[Match]):
    """A rule whose root alone says whether it fires. A node as an imported model has it is what its user runs.

    ``keeps_promise`` rules see to what the language says and ONNX does not (integers that wrap): imported models have
    what their runtime does.
    """

    optional = False
    keeps_promise: ClassVar[bool] = False

    def match(self, node: Node, graph: Graph) -> Match | None:
        if (node.origin is not None and not _is_lowered(node, graph)) or (self.keeps_promise and graph.dims.least == 0):
            return None
        return Match(node) if self.wants(node, graph) else None

    @abstractmethod
    def wants(self, node: Node, graph: Graph) -> bool:
        """Return whether the node is not legal as it stands."""

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        return [self.make(match.root, Maker(rewriter))]

    def make(self, node: Node, make: Maker) -> Value:
        """Return the replacement of the only result."""
        raise NotImplementedError


#: From here on a lower opset takes what a higher one does, but for types that the language lacks.
_WIDE_OPSET = 20


def _is_lowered(node: Node, graph: Graph) -> bool:
    """Return whether an imported node has an older opset, whose operator may not take its type."""
    return bool(graph.opset < min(node.origin.version, _WIDE_OPSET))
