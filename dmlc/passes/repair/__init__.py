"""``repair``: what the target's execution provider is known to do wrongly, or not at all, is computed otherwise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.ir import Graph
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes
from dmlc.passes.fold_constants.layouts import MOVE_RULES
from dmlc.passes.manager import REASSOCIATES, PassContext
from dmlc.passes.repair import absent, einsum, foreign, norms, operators, quantized, rank, reductions, windows
from dmlc.passes.rewrite import RewritePass, Rule, rewrite, rules_of

#: All rules, in the order in which they are tried at a node.
_FILES = (operators, foreign, einsum, norms, windows, quantized, reductions, rank, absent)
RULES: Sequence[type[Any]] = rules_of(*[vars(file) for file in _FILES])


class Repair(RewritePass, frozen=True):
    """Nodes of imported models too, which ``legalize`` leaves as their users run them.

    A node that no rule repairs stays as it is. The check of the emitted model refuses it, or warns of it.
    """

    name: ClassVar[str] = "repair"
    summary: ClassVar[str] = "Rewrite nodes that the target's execution provider is known to get wrong."
    rewrite_class: ClassVar[str] = REASSOCIATES

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        own = _own(context, empty=True)
        return [*own, *MOVE_RULES] if own else []

    def run(self, graph: Graph, context: PassContext) -> bool:
        empty = _has_empty(graph)
        rules = _own(context, empty=empty)
        opened = bool(rules) and _open_calls(graph)
        changed = rewrite(graph, rules, context)
        if changed and not empty and _has_empty(graph):
            rewrite(graph, _own(context, empty=True), context)
        if changed:  # new reshapes may meet others of the program
            rewrite(graph, MOVE_RULES, context)
        return changed or opened


def _own(context: PassContext, *, empty: bool) -> list[type[Rule[Any]]]:
    if not context.capabilities.has_provider:
        return []
    return [rule for rule in RULES if empty or "empty" not in rule.repairs]


def _open_calls(graph: Graph) -> bool:
    """Make the calls of ONNX operators of a program the nodes that imported models have, which the rules know."""
    calls = [op for op in graph.operations if op.name == "onnx"]
    opened = False
    for node in list(graph.nodes_of(calls)):
        a: Any = node.attributes
        if any(isinstance(value, tuple) and not value for _, value in a.attributes):
            continue  # only the schema has the kind of an empty list
        opened = True
        types = tuple([value.type for value in node.results])
        record = OpaqueAttributes(op_type=a.op_type, domain=a.domain, types=types, attributes=a.attributes)
        made = graph.add(OPAQUE, node.operands, record, spans=node.spans, history=node.history, before=node)
        made.name = node.name
        for old, new in zip(node.results, made.results, strict=True):
            graph.replace_all_uses(old, new)
        graph.erase(node)
    return opened


def _has_empty(graph: Graph) -> bool:
    """Return whether a size is known to be 0. Few graphs have one, and then every node must be checked."""
    if any(0 in value.shape for value in graph.inputs):
        return True
    return any(0 in value.type.shape for node in graph for value in node.results)
