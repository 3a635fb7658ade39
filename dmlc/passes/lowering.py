"""Lowerings: rules about one node, each a function of an expression builder.

The function gets the builder, the node and its operands. It returns what the node's results become, ``KEEP``, or the
reason why a node of the pattern stays. The first sentence of its docstring is the rule's summary, its name the rule's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

from dmlc.ir import Condition, Graph, Node, Operation, OpError, Value
from dmlc.ops.node_name import title_of
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.intervals import RangedRule
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule

#: The node is not the lowering's business, or good as it is.
KEEP = None
Lowered: TypeAlias = "Term | Sequence[Term | Value] | Miss | None"
#: The builder, the node, and its operands.
Function: TypeAlias = "Callable[..., Lowered]"
#: Return whether a stage of the pipeline offers the node to the lowering, or the reason why it does not.
Guard: TypeAlias = "Callable[[Any, Node, Graph], bool | Miss]"


class LoweredNode(Match, eq=False, kw_only=True):
    """``values`` take the place of the first results of the root; ``steps`` are the nodes that make them."""

    values: Sequence[Value]
    steps: Sequence[tuple[Node, Sequence[Condition]]]


class NodeRule(RangedRule, Rule[LoweredNode]):
    """A rule that is a function, ``lower``. ``offered`` says whether its stage offers it a node; of opaque nodes it
    gets the operators ``onnx``, where some are named."""

    lower: ClassVar[Function]
    offered: ClassVar[Guard | None]
    onnx: ClassVar[tuple[str, ...]]

    def match(self, node: Node, graph: Graph) -> LoweredNode | Miss | None:
        if node.op is OPAQUE and self.onnx and node.attributes_as(OpaqueAttributes).full_name not in self.onnx:
            return None
        if self.offered is not None:
            offered = self.offered(node, graph)
            if offered is not True:
                return offered or None
        try:
            return lowered(self.lower, self.builder(graph), node)
        except OpError as error:
            if not self.may_not_fit and all(v.type.is_static for v in node.operands if v is not None):
                raise  # nothing is open here: the rule is wrong
            return Miss("{0}", (str(error),))

    def builder(self, graph: Graph) -> Sketch:
        return Sketch(graph, self.capabilities, self)

    def describe(self, match: LoweredNode) -> str:
        node = match.root
        first = next((f" of {v.type.dtype}" for v in node.operands if v is not None), "")
        return (title_of(node) if node.op is OPAQUE else node.op.name) + first

    def build(self, match: LoweredNode, rewriter: Rewriter) -> Sequence[Value]:
        for node, conditions in match.steps:
            rewriter.adopt(node, conditions)
        return [*match.values, *match.root.results[len(match.values) :]]


def lowered(lower: Function, e: Sketch, node: Node) -> LoweredNode | Miss | None:
    """Return the match that a function makes of a node."""
    made = lower(e, node, *[None if v is None else Term(e, v) for v in node.operands])
    if made is None or isinstance(made, Miss):
        return made
    values = [made] if isinstance(made, Term) else made
    return LoweredNode(node, values=[v.value if isinstance(v, Term) else v for v in values], steps=e.steps)


def lowers(
    *roots: Operation,
    name: str = "",
    onnx: tuple[str, ...] = (),
    offered: Guard | None = None,
    gives: Any = None,
    **facts: Any,
) -> Callable[[Function], type[NodeRule]]:
    """Make a function the lowering of some operations, and of ``onnx`` operators that the language lacks.

    ``gives`` is its rewrite class, or says it of a lowering, a match, a graph and a context; ``facts`` are the facts
    of a rule.
    """

    def declare(function: Function) -> type[NodeRule]:
        if callable(gives):
            facts["class_of"] = gives
        elif gives is not None:
            facts["rewrite_class"] = gives
        fields = {
            "__doc__": function.__doc__,
            "__module__": function.__module__,
            "name": name or function.__name__.replace("_", "-"),
            "optional": False,
            "roots": tuple(dict.fromkeys((*roots, OPAQUE))) if onnx else roots,
            "onnx": onnx,
            "offered": offered,
            "lower": staticmethod(function),
            **facts,
        }
        return type(function.__name__, (NodeRule,), fields)

    return declare


__all__ = ["KEEP", "Lowered", "Miss", "NodeRule", "Sketch", "Term", "lowers"]
