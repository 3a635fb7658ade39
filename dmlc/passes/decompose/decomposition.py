"""Base of the rules that write one operator in primitive operations."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.ir import FOREIGN, Graph, Node, Value
from dmlc.onnx_schema import domains
from dmlc.ops.node_name import title_of
from dmlc.ops.opaque import OpaqueAttributes, attribute_of
from dmlc.passes.decompose.parts import PartMaker
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.node_maker import Maker
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule


def operator_of(node: Node) -> str:
    """The ONNX operator of a node, with its domain if that is not ONNX's own: ``com.microsoft.Gelu``."""
    if node.origin is not None:
        return domains.operator_of(node.origin.proto)
    a = node.attributes
    return a.full_name if isinstance(a, OpaqueAttributes) else title_of(node)


def given(node: Node, name: str, default: Any) -> Any:
    """The attribute of an imported node of an operator that the language lacks."""
    value = attribute_of(node, name, default)
    return value.decode() if isinstance(value, bytes) else value


def operand(node: Node, index: int) -> Value | None:
    """The operand of that number; None where it is left out."""
    return node.operands[index] if index < len(node.operands) else None


class Decomposition(Rule[Match]):
    """Base: nodes of the operators that the user names, whose ``parts`` take their place."""

    rewrite_class = REASSOCIATES
    may_not_fit = True
    #: The operators that the rule decomposes.
    operators: ClassVar[tuple[str, ...]]

    def match(self, node: Node, graph: Graph) -> Match | None:
        name = operator_of(node)
        return Match(node) if name in self.operators and name in self.context.options.decompose else None

    def check(self, match: Match, graph: Graph) -> Miss | None:
        node = match.root
        used = [value for value in node.results if value.uses]
        if any(v is not None and v.type.dtype is FOREIGN for v in (*node.operands, *used)):
            return Miss("the type of an operand or a result is not known")
        return self.why_not(node)

    def why_not(self, node: Node) -> Miss | None:
        """Return the reason why this node cannot be decomposed."""
        return None

    def describe(self, match: Match) -> str:
        return operator_of(match.root)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        node = match.root
        made = list(self.parts(node, PartMaker(rewriter)))
        return [*made, *node.results[len(made) :]]

    @abstractmethod
    def parts(self, node: Node, make: Maker) -> Sequence[Value]:
        """Make the results of the node; the last ones may be missing if they are not used."""
