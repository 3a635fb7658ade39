"""Modules, classes and functions of source files, each file parsed once for all tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple


class Definition(NamedTuple):
    """A module, class, function or import: facts alone, since the trees of all files together take much memory.

    The name of an import is dotted; of ``from a import b``, which may be a module, it is ``a b``.
    """

    kind: str
    name: str
    lines: int
    docstring: str | None


def definitions_of(text: str) -> Iterator[Definition]:
    """Yield those of a source text."""
    for node in statements(ast.parse(text)):
        if isinstance(node, ast.Module):
            yield Definition("module", "module", text.count("\n"), ast.get_docstring(node))
        elif isinstance(node, ast.ClassDef):
            yield Definition("class", node.name, _lines(node), ast.get_docstring(node))
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield Definition("function", node.name, _lines(node), ast.get_docstring(node))
        elif isinstance(node, ast.Import):
            yield from (Definition("import", alias.name, 0, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (Definition("import", f"{node.module} {alias.name}", 0, None) for alias in node.names)


def statements(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield a tree and the statements in it at any depth, without the expressions, which are most of the nodes."""
    yield tree
    for field in ("body", "orelse", "finalbody", "handlers", "cases"):
        for node in getattr(tree, field, ()):
            yield from statements(node)


def _lines(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno


@cache
def definitions(path: Path) -> tuple[Definition, ...]:
    """Return those of a file."""
    return tuple(definitions_of(path.read_text(encoding="utf-8")))
