"""Check one ONNX node against its operator's declaration: operands, results, attributes and element types.

The declarations are those of the installed onnx package (``onnx.defs``); nothing is inferred.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypeAlias

from msgspec import Struct
from onnx import TensorProto, TypeProto, defs

_OPTION = defs.OpSchema.FormalParameterOption
#: ONNX's spelling of the element types in its declarations.
_TYPE_NAMES = {number: name.lower() for name, number in TensorProto.DataType.items() if number}
#: Operators that ONNX Runtime 1.32 was seen to load with whatever attributes: it declares them anew, or folds them.
_OWN_DECLARATIONS = frozenset(("Constant", "LayerNormalization"))
#: The newest version of a domain other than ONNX's own is not known; every version counts as known.
_LARGEST = 2**31 - 1

#: The type of an operand: ONNX's number of a tensor's element type, 0 for an unknown one, the serialized
#: ``TypeProto`` of another type, or None for an operand that is left out.
OperandType: TypeAlias = "int | bytes | None"


class OperatorSignature(Struct, frozen=True):
    """A declared operator at one opset. Formals are (name, type parameter, option, is homogeneous).

    ``has_inference`` is False where ONNX infers no shapes, so that none can be wrong when a model is loaded.
    """

    inputs: tuple[tuple[str, str, Any, bool], ...]
    outputs: tuple[tuple[str, Any], ...]
    least_inputs: int
    most_inputs: int
    least_outputs: int
    most_outputs: int
    types: dict[str, frozenset[str]]
    attributes: frozenset[str]
    needed: frozenset[str]
    has_inference: bool
    takes_any_attribute: bool


@lru_cache(maxsize=1024)
def find_signature(domain: str, op_type: str, version: int) -> OperatorSignature | None:
    """The declaration; None where the installed onnx does not know the operator at that version of its domain.

    Deprecated operators count as unknown: ONNX Runtime loads some of them.
    """
    if version < 1 or version > (defs.onnx_opset_version() if not domain else _LARGEST):
        return None
    if not defs.has(op_type, version, domain):
        return None
    schema = defs.get_schema(op_type, version, domain)
    if schema.deprecated:
        return None
    return OperatorSignature(
        inputs=tuple([(f.name, f.type_str, f.option, f.is_homogeneous) for f in schema.inputs]),
        outputs=tuple([(f.name, f.option) for f in schema.outputs]),
        least_inputs=schema.min_input,
        most_inputs=schema.max_input,
        least_outputs=schema.min_output,
        most_outputs=schema.max_output,
        types={f.type_str: frozenset(f.types) for f in schema.inputs},
        attributes=frozenset(schema.attributes),
        needed=frozenset([name for name, attribute in schema.attributes.items() if attribute.required]),
        has_inference=schema.has_type_and_shape_inference_function,
        takes_any_attribute=schema.name in _OWN_DECLARATIONS,
    )


def mismatch(
    signature: OperatorSignature, operands: Sequence[OperandType], outputs: Sequence[bool], attributes: Sequence[str]
) -> str:
    """The first thing in words that the declaration does not allow; empty for a node that it allows.

    ``outputs`` are False for results that are left out. Types of attributes are not compared.
    """
    return (
        ("" if signature.takes_any_attribute else _wrong_attributes(signature, attributes))
        or _wrong_count("operand", len(operands), signature.least_inputs, signature.most_inputs)
        or _wrong_count("result", len(outputs), signature.least_outputs, signature.most_outputs)
        or _left_out(signature, operands, outputs)
        or _wrong_types(signature, operands)
    )


def _wrong_attributes(signature: OperatorSignature, attributes: Sequence[str]) -> str:
    given = set(attributes)
    if len(given) < len(attributes):
        return "an attribute is given twice"
    for name in sorted(given - signature.attributes):
        if not name.startswith("__"):  # onnx (defs/schema.cc) leaves such names to runtimes
            return f"it has no attribute {name}"
    missing = signature.needed - given
    return f"the attribute {min(missing)} is missing" if missing else ""


def _wrong_count(what: str, count: int, least: int, most: int) -> str:
    if least <= count <= most:
        return ""
    wanted = str(least) if least == most else f"at least {least}" if count < least else f"at most {most}"
    noun = what if least == most == 1 else f"{what}s"
    return f"it takes {wanted} {noun}, not {count}" if what == "operand" else f"it has {wanted} {noun}, not {count}"


def _left_out(signature: OperatorSignature, operands: Sequence[OperandType], outputs: Sequence[bool]) -> str:
    for (name, _, option, _), operand in zip(signature.inputs, operands, strict=False):
        if operand is None and option == _OPTION.Single:
            return f"the operand {name} is left out"
    for (name, option), is_named in zip(signature.outputs, outputs, strict=False):
        if not is_named and option == _OPTION.Single:
            return f"the result {name} has no name"
    return ""


def _wrong_types(signature: OperatorSignature, operands: Sequence[OperandType]) -> str:
    found: dict[str, str] = {}
    for index, operand in enumerate(operands):
        text = "" if operand is None else type_text(operand)
        if not text:
            continue
        name, parameter, option, is_homogeneous = signature.inputs[min(index, len(signature.inputs) - 1)]
        if text not in signature.types[parameter]:
            return f"its operand {name} cannot be {text}"
        if option == _OPTION.Variadic and not is_homogeneous:
            continue
        first = found.setdefault(parameter, text)
        if first != text:
            return f"its operands have different types: {first} and {text}"
    return ""


def type_text(operand: int | bytes) -> str:
    """The type as ONNX's declarations write it; empty where it is unknown or a map."""
    if isinstance(operand, int):
        name = _TYPE_NAMES.get(operand)
        return f"tensor({name})" if name else ""
    return _proto_text(TypeProto.FromString(operand))


def _proto_text(proto: TypeProto) -> str:
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        return type_text(proto.tensor_type.elem_type)
    if kind == "sequence_type":
        return _wrapped("seq", _proto_text(proto.sequence_type.elem_type))
    if kind == "optional_type":
        return _wrapped("optional", _proto_text(proto.optional_type.elem_type))
    return ""


def _wrapped(kind: str, text: str) -> str:
    return f"{kind}({text})" if text else ""
