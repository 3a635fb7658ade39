"""Modules, classes and functions of source files, each file parsed once for all tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple


class Definition(NamedTuple):
    """A module, class or function: facts alone, since the trees of all files together take much memory."""

    kind: str
    name: str
    lines: int
    docstring: str | None


def definitions_of(text: str) -> Iterator[Definition]:
    """Yield those of a source text."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module):
            yield Definition("module", "module", text.count("\n"), ast.get_docstring(node))
        elif isinstance(node, ast.ClassDef):
            yield Definition("class", node.name, _lines(node), ast.get_docstring(node))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield Definition("function", node.name, _lines(node), ast.get_docstring(node))


def _lines(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno


@cache
def definitions(path: Path) -> tuple[Definition, ...]:
    """Return those of a file."""
    return tuple(definitions_of(path.read_text(encoding="utf-8")))
