"""The registry holds what the language reference names, and each declaration is complete."""

from __future__ import annotations

import re
from pathlib import Path

from dmlc.ir import Operation
from dmlc.ops import ALL_OPERATIONS, FAMILIES, INFIX, OPERATIONS, PREFIX
from dmlc.ops.attributes import attribute_specs
from dmlc.ops.constant import CONSTANT
from dmlc.ops.derived import DerivedOperation
from tests.rows import each_row

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "language.md"


def test_call_forms() -> None:
    """The table of operations of the language reference names each of them, and nothing else."""
    table = REFERENCE.read_text(encoding="utf-8").partition("| operations | results |")[2].partition("\n\n")[0]
    first = [row.split("|")[1] for row in table.splitlines() if row.startswith("| `")]
    heads = [re.sub(r"\([^)]*\)", "", code) for cell in first for code in re.findall(r"`([^`]*)`", cell)]
    names = {name for head in heads for name in head.split() if not name.startswith("onnx.")}
    assert names == set(OPERATIONS)
    assert all(op.name == name for name, op in OPERATIONS.items())


def test_signs() -> None:
    assert set(INFIX) == {"+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">=", "&", "|", "^"}
    assert {sign: op.name for sign, op in PREFIX.items()} == {"-": "neg", "!": "not"}
    assert INFIX["**"] is OPERATIONS["pow"]
    assert PREFIX["-"] is OPERATIONS["neg"]
    assert all(op.symbol == sign for sign, op in (*INFIX.items(), *PREFIX.items()))


def test_all_operations_hold_each_once() -> None:
    derived = {op for op in OPERATIONS.values() if isinstance(op, DerivedOperation)}
    assert {*ALL_OPERATIONS, *derived} == {CONSTANT, *OPERATIONS.values(), *INFIX.values(), *PREFIX.values()}
    assert derived.isdisjoint(ALL_OPERATIONS)
    assert len(set(ALL_OPERATIONS)) == len(ALL_OPERATIONS) == len({op.name for op in ALL_OPERATIONS})
    assert sum(map(len, FAMILIES.values())) == len(ALL_OPERATIONS) - 1 + len(derived)


@each_row("op", ALL_OPERATIONS[1:], ids=lambda op: op.name)
def test_declarations_are_complete(op: Operation) -> None:
    assert op.reference is not None
    assert op.summary.endswith(".")
    assert op.source
    assert len({o.name for o in op.operands}) == len(op.operands)
    for operand in op.operands:
        assert operand.dtypes
        assert not (operand.variadic and operand is not op.operands[-1])
    for spec in attribute_specs(op.attributes):
        assert spec.doc
        assert spec.kind.spelling != "value"
        assert spec.kind.hint != "object"
    assert all(key and text for key, text in op.notes.items())


@each_row("op", ALL_OPERATIONS[1:], ids=lambda op: op.name)
def test_what_floats_do_with_nan_is_said(op: Operation) -> None:
    """Operations that compute on floats say so in their notes; tests for NaN and bitwise ones have none."""
    floats = any(d.is_float for o in op.operands for d in o.dtypes)
    if floats and op.name not in ("is_nan", "is_inf"):
        assert "nan" in op.notes
