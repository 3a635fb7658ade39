"""Rows of nodes that ran on a device, which ``dmlc doctor --probe`` wrote: they count before the tables.

A row holds no name of a model: an operator, its attributes and the types of its operands.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cached_property
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace
from onnx import AttributeProto, NodeProto, TensorProto, defs, helper

from dmlc.inference.fact import INTEGERS, Fact
from dmlc.onnx_schema.domains import operator_of, plain_domain
from dmlc.placement.node import CPU, FOLDED, PROVIDER, Finding, Looked

#: An operator, its version, its attributes, and the types of its operands.
NodeKey = tuple[str, int, str, tuple[str, ...]]
#: Integers of an operand that are part of its type: axes, sizes.
_MOST_NUMBERS = 16
_FAILURES = {
    "refused": "ONNX Runtime refuses it",
    "crashed": "ONNX Runtime ended its process",
    "late": "it took too long",
}


class ProbedNode(Struct, frozen=True, omit_defaults=True):
    """A node on the device: it ``runs`` there, is left to the ``cpu``, is ``refused``, has ``crashed`` or was too
    ``late``. ``right`` is null if there is nothing to compare with."""

    operator: str
    version: int
    attributes: str
    types: tuple[str, ...]
    state: Literal["runs", "cpu", "refused", "crashed", "late"]
    right: bool | None = None
    microseconds: float | None = None

    @property
    def key(self) -> NodeKey:
        return self.operator, self.version, self.attributes, self.types


class Probe(Struct, frozen=True, kw_only=True, dict=True):
    """The rows of one device."""

    schema: int = 1
    provider: str
    device: str
    onnxruntime: str
    dmlc: str
    nodes: tuple[ProbedNode, ...]

    @cached_property
    def _by_key(self) -> dict[NodeKey, ProbedNode]:
        return {row.key: row for row in self.nodes}

    def over(self, node: NodeProto, opset: int, facts: Mapping[str, Fact], looked: Looked) -> Looked:
        """Return the row of a node in the place of ``looked``, the answer of the tables, if there is a row."""
        key = node_key(node, opset, facts)
        row = None if key is None or looked.where == FOLDED else self._by_key.get(key)
        if row is None:
            return looked
        said = f"measured on {self.device}"
        findings = [f for f in looked.findings if f.effect not in ("fails", "wrong", "cpu", "unknown")]
        if row.state in _FAILURES:
            findings.append(Finding("fails", row.operator, f"{said}: {_FAILURES[row.state]}", None))
        elif row.right is False:
            findings.append(Finding("wrong", row.operator, f"{said}: other numbers than the reference", None))
        where = CPU if row.state == "cpu" else PROVIDER
        why = f"{said}: left to the CPU" if where == CPU else said
        return replace(looked, where=where, why=why, findings=findings, depends_on=(said,), is_of_kind=False)


def node_key(node: NodeProto, opset: int, facts: Mapping[str, Fact]) -> NodeKey | None:
    """The key of a node; None where sizes are open, and for nodes that hold graphs."""
    attributes = []
    for one in sorted(node.attribute, key=lambda attribute: attribute.name):
        if one.type in (AttributeProto.GRAPH, AttributeProto.GRAPHS):
            return None
        value = helper.get_attribute_value(one)
        if isinstance(value, TensorProto):
            value = f"tensor {hashlib.sha256(value.SerializeToString(deterministic=True)).hexdigest()[:16]}"
        attributes.append(f"{one.name}={value.decode('utf-8', 'replace') if isinstance(value, bytes) else value}")
    types = [type_text(facts.get(name)) if name else "" for name in node.input]
    known = [text for text in types if text is not None]
    if len(known) < len(types):
        return None
    domain = plain_domain(node.domain)
    is_declared = defs.has(node.op_type, opset, domain)
    version = defs.get_schema(node.op_type, opset, domain).since_version if is_declared else opset
    return operator_of(node), version, ", ".join(attributes), tuple(known)


def type_text(fact: Fact | None) -> str | None:
    """The element type, the sizes, and a few integers that are known; None where a size is open."""
    if fact is None or not fact.element or fact.shape is None or not all(isinstance(d, int) for d in fact.shape):
        return None
    text = f"{TensorProto.DataType.Name(fact.element).lower()}{[*fact.shape]}"
    numbers = known_numbers(fact)
    return text if numbers is None else f"{text} = {numbers}"


def known_numbers(fact: Fact) -> list[int] | None:
    """The integers of an operand, if they are few and known."""
    if fact.elements is None or fact.element not in INTEGERS or fact.elements.size > _MOST_NUMBERS:
        return None
    found = fact.elements.reshape(-1).tolist()
    return found if all(isinstance(number, int) for number in found) else None
