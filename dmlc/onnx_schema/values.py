"""Attributes of ONNX operators: what a user wrote, canonical values, and the protos that hold them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import AttributeProto, NodeProto, helper, numpy_helper

from dmlc.diagnostics import suggestion
from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.diagnostics.given import integer_of
from dmlc.ir import DType, OpError, Tensor
from dmlc.onnx_schema.schemas import Schema
from dmlc.onnx_schema.types import ELEMENT_TYPE
from dmlc.ops.attributes import show

#: A canonical attribute value: hashable.
Scalar = int | float | str
AttributeValue = Scalar | tuple[Scalar, ...] | Tensor


def canonical_attributes(schema: Schema, given: dict[str, Any]) -> tuple[tuple[str, AttributeValue], ...]:
    """The attributes checked against the schema, sorted by name; those that are not given stay unset.

    Raises ``OpError`` E0304, E0305 or E0306.
    """
    out = []
    for name, raw in given.items():
        known = (_kind_of(schema, name, raw), False) if schema.is_unchecked else schema.attributes.get(name)
        if known is None:
            takes = "it takes " + ", ".join(schema.attributes) if schema.attributes else "it takes none"
            help = suggestion(name, schema.attributes, then=takes)
            raise OpError(codes.UNKNOWN_ATTRIBUTE, f"{schema.full_name} has no attribute {name}", at=name, help=help)
        value = _canonical(schema, name, known[0], raw)
        _check_words(schema, name, value)
        out.append((name, value))
    for name, (kind, required) in schema.attributes.items():
        if required and kind not in _MEANING:
            raise OpError(
                codes.WRONG_ATTRIBUTE,
                f"{schema.full_name} has a {kind.lower()} as attribute, which no program can write",
            )
        if required and name not in given:
            raise OpError(
                codes.MISSING_ATTRIBUTE,
                f"{schema.full_name} needs {name}",
                help=f"write {name}=..., {_MEANING[kind]}",
            )
    return tuple(sorted(out, key=lambda pair: pair[0]))


def _check_words(schema: Schema, name: str, value: AttributeValue) -> None:
    """Raises ``OpError`` E0304 for a word that the attribute does not take."""
    words = schema.words.get(name)
    if words is None:
        return
    given = [str(item) for item in value] if isinstance(value, tuple) else [str(value)]
    number = words.unknown(given)
    if number is not None:
        word, at = given[number], (name, number) if isinstance(value, tuple) else name
        message = f"{name} of {schema.full_name} {words.refusal(word)}"
        raise OpError(codes.WRONG_ATTRIBUTE, message, at=at, help=suggestion(word, words.known))


def _kind_of(schema: Schema, name: str, raw: Any) -> str:
    """The kind of ONNX attribute that a value is written as. Raises ``OpError`` E0304 where that is not clear."""
    if isinstance(raw, (Tensor, np.ndarray)):
        return "TENSOR"
    items = raw if isinstance(raw, (list, tuple)) else [raw]
    for kind, types in _KINDS.items():
        if items and all(isinstance(item, types) for item in items):
            return f"{kind}S" if items is raw else kind
    what = "an integer, a number, a word or a list of these that is not empty"
    raise OpError(codes.WRONG_ATTRIBUTE, f"{name} of {schema.full_name} must be {what}, not {show(raw)}", at=name)


_KINDS: dict[str, tuple[type, ...]] = {
    "INT": (int, np.integer, DType),
    "FLOAT": (int, float, np.integer, np.floating),
    "STRING": (str,),
}
_MEANING = {
    "INT": "an integer", "FLOAT": "a number", "STRING": "a word", "TENSOR": "a tensor",
    "INTS": "a list of integers", "FLOATS": "a list of numbers", "STRINGS": "a list of words",
}  # fmt: skip


def _canonical(schema: Schema, name: str, kind: str, raw: Any) -> AttributeValue:
    if kind == "TENSOR":
        if isinstance(raw, Tensor):
            return raw
        if isinstance(raw, (np.ndarray, np.generic)):
            return Tensor(raw)
    elif kind.endswith("S") and kind[:-1] in _MEANING:
        items = raw.tolist() if isinstance(raw, np.ndarray) else raw
        if isinstance(items, (list, tuple)):
            found = [_scalar(kind[:-1], item) for item in items]
            if None not in found:
                return tuple([item for item in found if item is not None])
    elif kind in _MEANING:
        value = _scalar(kind, raw)
        if value is not None:
            return value
    else:
        raise OpError(codes.WRONG_ATTRIBUTE, f"{name} of {schema.full_name} cannot be written in a program", at=name)
    written = raw if isinstance(raw, str) else show(raw)
    raise OpError(
        codes.WRONG_ATTRIBUTE, f"{name} of {schema.full_name} must be {_MEANING[kind]}, not {written}", at=name
    )


def _scalar(kind: str, raw: Any) -> Scalar | None:
    """The value as ONNX stores it, None for one that it cannot store."""
    if kind == "STRING":
        return raw if _is_utf8(raw) else None
    if isinstance(raw, DType):
        return ELEMENT_TYPE[raw] if kind == "INT" else None
    if kind == "INT":
        number = int(raw) if isinstance(raw, bool) else integer_of(raw)
        return number if number is not None and -(2**63) <= number < 2**63 else None
    if isinstance(raw, (bool, str, type)) or not hasattr(raw, "__float__"):
        return None
    if isinstance(raw, np.ndarray) and raw.ndim:  # numpy before 2.4 takes one of a single number
        return None
    try:
        return float(raw)
    except (TypeError, ValueError, OverflowError):  # an array of text, or an integer that is too large
        return None


def _is_utf8(raw: Any) -> bool:
    """Return whether the value is a text that ONNX can store: none with half of a surrogate pair."""
    try:
        return isinstance(raw, str) and raw.encode("utf-8") is not None
    except UnicodeEncodeError:
        return False


def attribute_protos(attributes: tuple[tuple[str, AttributeValue], ...], schema: Schema) -> list[AttributeProto]:
    """The attributes as ONNX stores them."""
    out = []
    for name, value in attributes:
        if isinstance(value, Tensor):
            value = numpy_helper.from_array(value.array)
        kind = _kind_of(schema, name, value) if schema.is_unchecked else schema.attributes[name][0]
        proto = helper.make_attribute(name, value, attr_type=getattr(AttributeProto, kind))
        out.append(proto)
    return out


def changed_attributes(
    given: tuple[tuple[str, Any], ...], before: NodeProto, after: NodeProto
) -> tuple[tuple[str, Any], ...]:
    """The attributes of a node after it was converted: those that are ``given``, and the ones that are new."""
    kept, old = dict(given), {a.name: a for a in before.attribute}
    found = {a.name: a for a in after.attribute}
    new = {name: _value(a) for name, a in found.items() if name not in kept or a != old.get(name)}
    out = {name: value for name, value in kept.items() if name in found} | new
    return tuple(sorted(out.items()))


def _value(attribute: AttributeProto) -> Any:
    """The value of a proto; words as text."""
    value = helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        return value.decode("utf-8")
    return tuple(value) if isinstance(value, Sequence) and not isinstance(value, str) else value
