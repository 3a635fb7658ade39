"""Lowerings of the operators that a user names to primitive operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dmlc.ir import FOREIGN, Graph, Node, Operation
from dmlc.onnx_schema import domains
from dmlc.ops.node_name import title_of
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of
from dmlc.passes.decompose.parts import OpenSketch
from dmlc.passes.expressions import Term
from dmlc.passes.lowering import Function, NodeRule, lowers
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.rewrite import Miss


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


def operand(operands: Sequence[Term | None], index: int) -> Term | None:
    """The operand of that number; None where it is left out."""
    return operands[index] if index < len(operands) else None


def decomposes(
    *operators: str, roots: Sequence[Operation] = (), gives: str = REASSOCIATES
) -> Callable[[Function], type[NodeRule]]:
    """Make a function the decomposition of nodes of ONNX operators that the user names.

    With ``roots`` it is about nodes of these alone: opaque ones only where ``OPAQUE`` is one of them.
    """
    onnx = operators if not roots or OPAQUE in roots else ()
    facts: dict[str, Any] = {"operators": operators, "may_not_fit": True, "builder": _builder, "describe": _operator}
    return lowers(*roots, onnx=onnx, offered=_named, gives=gives, **facts)


def _named(rule: Any, node: Node, graph: Graph) -> bool | Miss:
    name = operator_of(node)
    if name not in rule.operators or name not in rule.context.options.decompose:
        return False
    used = [value for value in node.results if value.uses]
    if any(v is not None and v.type.dtype is FOREIGN for v in (*node.operands, *used)):
        return Miss("the type of an operand or a result is not known")
    return True


def _builder(rule: NodeRule, graph: Graph) -> OpenSketch:
    return OpenSketch(graph, rule.capabilities, rule)


def _operator(rule: NodeRule, match: Any) -> str:
    return operator_of(match.root)
