"""The declarations as pages: what ``dmlc ops NAME`` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from dmlc.ir import DTYPES, FLOATS, INDEX, INTEGERS, NUMERIC, DType, Operand, Operation
from dmlc.ir.answers import Answer
from dmlc.ops import FAMILIES, INFIX, OPERATIONS, PREFIX
from dmlc.ops.attributes import ALL, AttributeSpec, AxesKind, DTypeKind, WordKind, attribute_specs, show

#: A signature lists the choices of an attribute up to this many.
_FEW = 4

_SETS: dict[tuple[DType, ...], str] = {
    DTYPES: "all dtypes",
    NUMERIC: "numbers (floats and integers)",
    FLOATS: "floats",
    INTEGERS: "integers",
}


class OperandLine(Struct, frozen=True):
    """One operand of a page. ``kind`` is empty, ``may be left out`` or ``one or more``."""

    name: str
    dtypes: str
    kind: str


class AttributeLine(Struct, frozen=True):
    """One attribute of a page. ``default`` is empty where the attribute must be written."""

    name: str
    values: str
    default: str
    doc: str


class OperationPage(Struct, frozen=True):
    """Documentation of an operation, as text."""

    name: str
    family: str
    signature: str
    summary: str
    operands: tuple[OperandLine, ...]
    attributes: tuple[AttributeLine, ...]
    results: tuple[str, ...]
    notes: dict[str, str]
    source: str


class StandardBlock(Answer, frozen=True):
    """A block of the standard library: its name, how it is called, and the comment at the head of its file."""

    name: str
    signature: str
    summary: str


def describe(op: Operation) -> OperationPage:
    """The page of an operation of the language."""
    family = next((title for title, members in FAMILIES.items() if op in members), "")
    return OperationPage(
        name=op.name,
        family=family,
        signature=" or ".join(_spellings(op)),
        summary=op.summary,
        operands=tuple([OperandLine(o.name, _dtypes(o.dtypes), _kind(o)) for o in op.operands]),
        attributes=tuple([_attribute(spec) for spec in attribute_specs(op.attributes)]),
        results=op.results,
        notes=dict(op.notes),
        source=op.source,
    )


# --- signatures, spelled as on the language reference


def _spellings(op: Operation) -> list[str]:
    names = [o.name for o in op.operands]
    out = []
    if OPERATIONS.get(op.name) is op:
        out.append(_call(op, names))
    out += [f"{names[0]} {sign} {names[1]}" for sign, infix in INFIX.items() if infix is op]
    if op.symbol_dtypes:
        out.append(f"onnx.{op.onnx_title}({', '.join(names)})")
    out += [f"{sign}{names[0]}" for sign, prefix in PREFIX.items() if prefix is op]
    return out


def _call(op: Operation, names: Sequence[str]) -> str:
    parts = list(names)
    if op.operands and op.operands[-1].variadic:
        parts.append("...")
    specs = attribute_specs(op.attributes)
    if specs:
        parts += ["*", *map(_keyword, specs)]
    return f"{op.name}({', '.join(parts)})"


def _keyword(spec: AttributeSpec) -> str:
    if spec.required or spec.default is ALL or spec.default is None:
        return spec.name
    choices = _choices(spec)
    if 0 < len(choices) <= _FEW:
        first = _text(spec.default)
        return f"{spec.name}={'|'.join([first, *[c for c in choices if c != first]])}"
    listed = isinstance(spec.kind, AxesKind)
    return f"{spec.name}={f'[{spec.default}]' if listed else _text(spec.default)}"


def _choices(spec: AttributeSpec) -> tuple[str, ...]:
    if isinstance(spec.kind, WordKind):
        return spec.kind.words
    if isinstance(spec.kind, DTypeKind):
        return tuple([d.name for d in spec.kind.allowed])
    return ()


def _text(value: Any) -> str:
    """A default as the language writes it."""
    if isinstance(value, DType):
        return value.name
    if isinstance(value, float):
        mantissa, _, exponent = repr(value).partition("e")
        return f"{mantissa}e{int(exponent)}" if exponent else mantissa
    return value if isinstance(value, str) else show(value)


# --- operands and attributes


def _dtypes(dtypes: tuple[DType, ...]) -> str:
    if dtypes in _SETS:
        return _SETS[dtypes]
    if set(dtypes) == set(INDEX):
        return "indices (" + ", ".join(d.name for d in dtypes) + ")"
    return ", ".join(d.name for d in dtypes)


def _kind(operand: Operand) -> str:
    if operand.variadic:
        return "one or more"
    return "may be left out" if operand.optional else ""


def _attribute(spec: AttributeSpec) -> AttributeLine:
    if spec.required:
        default = ""
    elif spec.default is ALL:
        default = spec.kind.all_means
    else:
        default = "none" if spec.default is None else _text(spec.default)
    doc = spec.doc
    if spec.synonym:
        words = "|".join(spec.synonym.words)
        doc += f"; {spec.synonym.name}={words} says the same as {'|'.join(spec.synonym.words.values())}"
    values = _dtypes(spec.kind.allowed) if isinstance(spec.kind, DTypeKind) else spec.kind.spelling
    return AttributeLine(spec.name, values, default, doc)
