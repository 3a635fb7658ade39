"""Attributes of ONNX nodes as text: with the defaults of the model's opset, and axes counted from the start."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any

import numpy as np
from onnx import AttributeProto, NodeProto, TypeProto, defs, helper
from onnx.defs import SchemaError

from dmlc.debugging.constants import Constant, shape_text, type_name
from dmlc.debugging.node_pairs import plain_attributes
from dmlc.onnx_schema.domains import operator_of, plain_domain


def attribute_texts(
    node: NodeProto, versions: Mapping[str, int], others: Mapping[str, int], rank: int | None = None
) -> dict[str, str]:
    """The attributes that are not graphs, with the defaults of a model's ``versions`` by domain.

    A default that is the same at the ``others`` is left out. Where the ``rank`` of the first operand is known, an axis
    that is counted from the end is counted from the start.
    """
    own, other = (_defaults(node, each, rank) for each in (versions, others))
    found = {**own, **{name: _text(entry, rank) for name, entry in plain_attributes(node).items()}}
    is_default = {name for name, text in found.items() if text == own.get(name) == other.get(name, text)}
    return {name: text for name, text in sorted(found.items()) if name not in is_default}


def attribute_details(
    a: NodeProto | None, b: NodeProto | None, versions_a: Mapping[str, int], versions_b: Mapping[str, int]
) -> list[str]:
    """The attributes of two nodes of one operator that differ, with both values; none for other pairs."""
    if a is None or b is None or operator_of(a) != operator_of(b):
        return []
    before, after = attribute_texts(a, versions_a, versions_b), attribute_texts(b, versions_b, versions_a)
    defaults = _defaults(a, versions_a, None) | _defaults(b, versions_b, None)
    pairs = {
        name: [side.get(name, defaults.get(name, "absent")) for side in (before, after)] for name in {**before, **after}
    }
    return [f"{name} {was} -> {now}" for name, (was, now) in pairs.items() if was != now]


def _defaults(node: NodeProto, versions: Mapping[str, int], rank: int | None) -> dict[str, str]:
    domain = plain_domain(node.domain)
    try:
        schema = defs.get_schema(node.op_type, versions.get(domain, 1), domain)
    except SchemaError:
        return {}
    entries = {name: entry.default_value for name, entry in schema.attributes.items()}
    return {name: _text(entry, rank) for name, entry in entries.items() if entry.type}


def _text(entry: AttributeProto, rank: int | None) -> str:
    if entry.ref_attr_name:
        return f"@{entry.ref_attr_name}"
    if entry.type == AttributeProto.TENSOR:
        constant = Constant(entry.name, entry.t, None)
        return f"{constant.type_text} #{constant.digest.hex()[:12]}"
    value = helper.get_attribute_value(entry)
    if entry.type == AttributeProto.FLOAT:
        value = str(np.float32(value))
    elif entry.type == AttributeProto.FLOATS:
        value = shape_text([np.float32(x) for x in value])
    elif entry.type == AttributeProto.TYPE_PROTO:
        value = type_text(value)
    elif rank and entry.name == "axis" and entry.type == AttributeProto.INT:
        value %= rank
    elif rank and entry.name == "axes" and entry.type == AttributeProto.INTS:
        value = [axis % rank for axis in value]
    text = str([_word(x) for x in value] if isinstance(value, (list, tuple)) else _word(value))
    return text if text.isprintable() else repr(text)


def _word(value: Any) -> Any:
    if hasattr(value, "SerializeToString"):  # a sparse tensor, or one of several tensors
        return f"#{sha256(value.SerializeToString(deterministic=True)).hexdigest()[:12]}"
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else value


def type_text(proto: TypeProto) -> str:
    """A type as the language writes it; one that the language lacks in ONNX's words."""
    kind = proto.WhichOneof("value")
    if kind in ("tensor_type", "sparse_tensor_type"):
        tensor = getattr(proto, kind)
        dtype = type_name(tensor.elem_type)
        if not tensor.HasField("shape"):
            return f"{dtype} of any rank"
        sizes = [d.dim_param or (str(d.dim_value) if d.HasField("dim_value") else "?") for d in tensor.shape.dim]
        return f"{'sparse ' if kind == 'sparse_tensor_type' else ''}{dtype}{shape_text(sizes)}"
    if kind == "sequence_type":
        return f"sequence of {type_text(proto.sequence_type.elem_type)}"
    if kind == "optional_type":
        return f"optional {type_text(proto.optional_type.elem_type)}"
    if kind == "map_type":
        return f"map of {type_name(proto.map_type.key_type)} to {type_text(proto.map_type.value_type)}"
    return "no type"
