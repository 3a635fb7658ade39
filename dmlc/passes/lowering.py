"""Lowerings: rules about one node, each a function of an expression builder.

The function gets the builder, the node and its operands. It returns what the node's results become, ``KEEP``, or the
reason why a node of the pattern stays. The first sentence of its docstring is the rule's summary, its name the rule's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

from msgspec.structs import replace

from dmlc.ir import Condition, Graph, Node, Operation, OpError, Value
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, title_of
from dmlc.passes.expressions import Sketch, Term, plain
from dmlc.passes.intervals import RangedRule
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere

#: The node is not the lowering's business, or good as it is.
KEEP = None
Lowered: TypeAlias = "Term | Value | Sequence[Term | Value] | Miss | None"
#: The builder, the node, and its operands.
Function: TypeAlias = "Callable[..., Lowered]"
#: Return whether a stage of the pipeline offers the node to the lowering, or the reason why it does not.
Guard: TypeAlias = "Callable[[Any, Node, Graph], bool | Miss]"


class LoweredNode(Match, eq=False, kw_only=True):
    """``values`` take the place of the first results of the root; ``steps`` are the nodes that make them."""

    values: Sequence[Value]
    gives: str | None
    promised: tuple[str, ...]
    steps: Sequence[tuple[Node, Sequence[Condition]]]


class NodeRule(RangedRule, Rule[LoweredNode]):
    """A rule that is a function, ``lower``. ``offered`` says whether its stage offers it a node; of opaque nodes it
    gets the operators ``onnx``, where some are named."""

    optional = False
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

    def relies_on(self, match: LoweredNode, graph: Graph) -> tuple[str, ...]:
        return match.promised

    def build(self, match: LoweredNode, rewriter: Rewriter) -> Sequence[Value]:
        for node, conditions in match.steps:
            rewriter.adopt(node, conditions)
        return [*match.values, *match.root.results[len(match.values) :]]


class Simplification(NodeRule):
    """A function that looks at the nodes before its root too, and takes over the work of those that it names by
    ``e.made_by``. Users can leave it out."""

    optional = True

    def describe(self, match: LoweredNode) -> str:
        return Rule.describe(self, match)


def lowered(lower: Function, e: Sketch, node: Node) -> LoweredNode | Miss | None:
    """Return the match that a function makes of a node."""
    made = lower(e, node, *[None if v is None else Term(e, v) for v in node.operands])
    taken = tuple(dict.fromkeys(e.taken))
    if made is None or isinstance(made, Miss):
        return replace(made, match=Match(node, taken)) if made is not None and taken else made
    values = [made] if isinstance(made, (Term, Value)) else made
    return LoweredNode(
        node, taken, values=[plain(v) for v in values], gives=e.gives, promised=e.promised, steps=e.steps
    )


def lowers(
    *roots: Operation,
    name: str = "",
    onnx: tuple[str, ...] = (),
    offered: Guard | None = None,
    gives: str | tuple[str, ...] | None = None,
    base: type[NodeRule] | None = None,
    **facts: Any,
) -> Callable[[Function], type[NodeRule]]:
    """Make a function the lowering of some operations, and of ``onnx`` operators that the language lacks.

    ``gives`` is its rewrite class; of several, it is the first unless the function says another one. ``base`` is the
    kind of rule that it becomes, ``facts`` are its facts.
    """

    def declare(function: Function) -> type[NodeRule]:
        if gives is not None:
            facts["rewrite_class"] = gives if isinstance(gives, str) else gives[0]
        if isinstance(gives, tuple):
            facts["class_of"] = _said
        fields = {
            "__doc__": function.__doc__,
            "__module__": function.__module__,
            "name": name or function.__name__.replace("_", "-"),
            "roots": tuple(dict.fromkeys((*roots, OPAQUE))) if onnx else roots,
            "onnx": onnx,
            "offered": offered,
            "lower": staticmethod(function),
            **facts,
        }
        return type(function.__name__, (base or NodeRule,), fields)

    return declare


def _said(rule: Any, match: LoweredNode, graph: Graph, context: Any) -> str:
    return match.gives or rule.rewrite_class


def taken_elsewhere(e: Sketch) -> Miss | None:
    """The reason against taking over the work of nodes that others need too: of the first."""
    return next(filter(None, [used_elsewhere(node.result) for node in dict.fromkeys(e.taken)]), None)


def simplifies(*roots: Operation, **facts: Any) -> Callable[[Function], type[NodeRule]]:
    """Make a function a simplification, as ``lowers`` makes it a lowering."""
    return lowers(*roots, base=Simplification, **facts)


__all__ = ["KEEP", "Lowered", "Miss", "NodeRule", "Sketch", "Term", "lowers", "simplifies", "taken_elsewhere"]
