"""Nodes that the language has no operation for: their attributes, and the types of their results."""

from __future__ import annotations

from functools import lru_cache

from onnx import AttributeProto, NodeProto, TensorProto, defs

from dmlc.diagnostics import DmlcError, fail
from dmlc.diagnostics.catalogue import models as codes
from dmlc.importers.order import Listed
from dmlc.importers.weights import attribute_data
from dmlc.ir import Tensor, TensorType
from dmlc.onnx_schema.nested import holds_graphs
from dmlc.onnx_schema.types import DTYPE_OF
from dmlc.ops.opaque import Held, OpaqueAttributes, Plain

# --- Attributes of the types that ONNX declares: a reader that looks for a number would take a text for 0

_TYPE_NAMES: dict[int, str] = {number: name.lower() for name, number in AttributeProto.AttributeType.items()}


def check_attributes(node: Listed, domain: str, version: int) -> None:
    """Raises ``DmlcError`` E0431 for an attribute of another type than the operator has it."""
    declared = _declared(domain, node.op_type, version)[0]
    if node.has_twins:
        for attribute in node.proto.attribute:
            _check(node.proto, node.op_type, attribute, declared)
    if not node.kinds.items() <= declared.items():
        for attribute in node.attributes.values():
            _check(node.proto, node.op_type, attribute, declared)


def _check(node: NodeProto, op_type: str, attribute: AttributeProto, declared: dict[str, int]) -> None:
    if not isinstance(attribute.name, str):
        raise _broken(node, op_type, f"has an attribute whose name is not UTF-8 text: {attribute.name!r}")
    wanted = declared.get(attribute.name, attribute.type)
    if attribute.type != wanted and not attribute.ref_attr_name and attribute.type != AttributeProto.UNDEFINED:
        have, want = (_TYPE_NAMES.get(t, f"type {t}") for t in (attribute.type, wanted))
        raise _broken(node, op_type, f"has the attribute {attribute.name} as {have}; it is {want}")


def check_complete(node: NodeProto, op_type: str, domain: str, version: int) -> None:
    """Raises ``DmlcError`` E0431 for a node without an operator, or without an attribute that the operator needs."""
    if not op_type or not isinstance(op_type, str):
        raise _broken(node, op_type, "names no operator that is a text")
    needed = _declared(domain, op_type, version)[1]
    if needed:
        missing = needed.difference([attribute.name for attribute in node.attribute])
        if missing:
            raise _broken(node, op_type, f"lacks the attribute {min(missing)}")
    if op_type == "If" and not domain:
        _check_branches(node)


def _check_branches(node: NodeProto) -> None:
    """A branch of an If takes nothing, for it sees all that is around it, and gives what the node does."""
    for branch in node.attribute:
        if len(branch.g.output) != len(node.output):
            counts = f"{len(branch.g.output)} results in its {branch.name}, but names {len(node.output)}"
            raise _broken(node, "If", f"has {counts}")
        own = {tensor.name for tensor in branch.g.initializer}
        if any(info.name not in own for info in branch.g.input):
            raise _broken(node, "If", f"has inputs in its {branch.name}")


def _broken(node: NodeProto, op_type: str, what: str) -> DmlcError:
    return fail(codes.BROKEN_MODEL, f"node {node.name or op_type or 'without a name'} {what}", help="export it anew")


@lru_cache(maxsize=1024)
def _declared(domain: str, op_type: str, version: int) -> tuple[dict[str, int], frozenset[str]]:
    """The types of an operator's attributes by name, and those that it needs; empty where it is not known."""
    try:
        schema = defs.get_schema(op_type, min(version, 2**31 - 1), domain)
    except defs.SchemaError:
        return {}, frozenset()
    types = {name: int(attribute.type.value) for name, attribute in schema.attributes.items()}
    return types, frozenset(name for name, attribute in schema.attributes.items() if attribute.required)


def opaque_attributes(proto: NodeProto, domain: str, types: tuple[TensorType, ...]) -> OpaqueAttributes:
    """The record of an opaque node; graphs are regions, not attributes."""
    plain: list[tuple[str, Plain]] = []
    unplain: list[Held] = []
    for attribute in proto.attribute[:]:
        if holds_graphs(attribute):
            continue
        value = _plain(attribute, proto.op_type)
        if value is None:
            unplain.append(Held(attribute, attribute.name))
        else:
            plain.append((attribute.name, value))
    plain.sort(key=lambda pair: pair[0])
    return OpaqueAttributes(
        op_type=proto.op_type, domain=domain, types=types, attributes=tuple(plain), unplain=tuple(unplain)
    )


def _plain(a: AttributeProto, op_type: str) -> Plain | None:
    kind = a.type
    if a.ref_attr_name:
        return None
    if kind == AttributeProto.INT:
        return int(a.i)
    if kind == AttributeProto.FLOAT:
        return float(a.f)
    if kind == AttributeProto.STRING:
        return _text(a.s)
    if kind == AttributeProto.INTS:
        return tuple(a.ints[:])
    if kind == AttributeProto.FLOATS:
        return tuple(a.floats[:])
    if kind == AttributeProto.STRINGS:
        return tuple([_text(s) for s in a.strings])
    if kind == AttributeProto.TENSOR and a.t.data_location != TensorProto.EXTERNAL:
        data = attribute_data(a, op_type)
        return Tensor(data) if a.t.data_type in DTYPE_OF else None
    return None


def _text(data: bytes) -> str | bytes:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data
