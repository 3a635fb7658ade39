"""The declarations as pages: what ``dmlc ops NAME`` prints, and ``docs/semantics.md``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from dmlc.ir import DTYPES, FLOATS, INDEX, INTEGERS, NUMERIC, DType, Operand, Operation
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
    notes: Mapping[str, str]
    source: str


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
        notes=op.notes,
        source=op.source,
    )


# --- signatures, spelled as on the language reference


def _spellings(op: Operation) -> list[str]:
    names = [o.name for o in op.operands]
    out = []
    if OPERATIONS.get(op.name) is op:
        out.append(_call(op, names))
    out += [f"{names[0]} {sign} {names[1]}" for sign, infix in INFIX.items() if infix is op]
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


# --- docs/semantics.md

_INTRODUCTION = """# Meaning of the operations

This page is written from the declarations in `dmlc/ops` by `dmlc.ops.pages.semantics_markdown()`; a test compares
the two. Each operation has the dtypes it takes, the results of its NumPy reference in the corners (NaN, overflow,
nothing to work on, ties), the targets that differ, and the page that the rule comes from. The reference is
the measure: generated code agrees with it exactly for integers, indices and bools, and within rounding for floats.

- **One dtype.** The operands of an operation have one dtype (a condition or an index apart); numbers in the program
  take it and must fit it. Nothing is promoted.
- **f16** is computed in f32 and rounded once at the end of an operation. A square that is written out before a mean is
  an operation, and may overflow though the mean does not: `--accumulate f32` computes such parts in f32 throughout.
- **f64** is f64, wherever it runs (DirectML has none). `--f64 f32` computes it in f32; the interface keeps its types.
- **Integers** wrap modulo 2^n in `+ - *`, sums and products.
- **NaN** propagates through arithmetic. Where the language leaves open which value wins among NaN, the reference
  does as NumPy and the rows "on DirectML" and "on ONNX Runtime CPU" give the observations there (DirectML 1.15.4;
  ONNX Runtime 1.24 and 1.31). An explicit `is_nan` with `where` gives one meaning everywhere.
- **-0** equals +0; the sign of a zero that is a maximum or minimum is unspecified.
- **Target `cpu`** computes in the types that the installed ONNX Runtime has kernels for, so its nodes depend on what is
  installed; their results do not. Other targets' nodes depend on the program alone.
- **Sizes** that are not proved to fit become conditions that run time checks before it computes.
"""


def semantics_markdown() -> str:
    """The whole of ``docs/semantics.md``."""
    parts = [_INTRODUCTION]
    for title, members in FAMILIES.items():
        parts.append(f"## {title}\n")
        parts += [_section(describe(op)) for op in members]
    return "\n".join(parts)


def _section(page: OperationPage) -> str:
    lines = [f"### {page.name}\n", f"`{page.signature}`\n", f"{page.summary}\n", "| | |", "| --- | --- |"]
    lines += [_row(f"`{o.name}`", f"{o.dtypes}; {o.kind}" if o.kind else o.dtypes) for o in page.operands]
    lines += [_row(f"`{a.name}`", _attribute_text(a)) for a in page.attributes]
    if page.results != ("result",):
        lines.append(_row("results", ", ".join(page.results)))
    lines += [_row(key, text) for key, text in page.notes.items()]
    lines.append(_row("source", page.source))
    return "\n".join(lines) + "\n"


def _attribute_text(line: AttributeLine) -> str:
    default = f"default {line.default}" if line.default else "must be written"
    return f"{line.doc} ({line.values}; {default})"


def _row(key: str, text: str) -> str:
    escaped = text.replace("|", "\\|")
    return f"| {key} | {escaped} |"
