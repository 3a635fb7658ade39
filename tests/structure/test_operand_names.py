"""Operands are asked for by the names that operations declare."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from dmlc.ops import ALL_OPERATIONS

PACKAGE = Path(__file__).parents[2] / "dmlc"


def asked_names(text: str) -> Iterator[tuple[int, str]]:
    """The line of each ``.operand("NAME")``, and the name."""
    for node in ast.walk(ast.parse(text)) if ".operand(" in text else ():
        match node:
            case ast.Call(func=ast.Attribute(attr="operand"), args=[ast.Constant(value=str(name))]):
                yield node.lineno, name


def test_names_are_declared() -> None:
    declared = {operand.name for op in ALL_OPERATIONS for operand in op.operands}
    asked = [(path.name, *found) for path in PACKAGE.rglob("*.py") for found in asked_names(path.read_text("utf-8"))]
    assert len(asked) > 200
    assert [where for where in asked if where[2] not in declared] == []


def test_a_wrong_name_is_found() -> None:
    assert list(asked_names('x = node.operand("data").type\ny = node.operand(1)')) == [(1, "data")]
