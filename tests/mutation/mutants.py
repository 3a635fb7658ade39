"""Guards of rewrites, and the sources without one of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mutant:
    """A file without one guard. ``place`` is its path below the root and the line, ``text`` the guard as written."""

    path: str
    line: int
    text: str
    source: str

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"


def mutants(root: Path, folder: str = "dmlc/passes") -> Iterator[Mutant]:
    """All mutants of the rules, file after file."""
    for path in sorted((root / folder).rglob("*.py")):
        source = path.read_text("utf-8")
        for line, start, end, new in _changes(ast.parse(source)):
            lines = source.splitlines(keepends=True)
            before, after = _offset(lines, start), _offset(lines, end)
            text = " ".join(source[before:after].split())
            yield Mutant(str(path.relative_to(root)), line, text, source[:before] + new + source[after:])


def _changes(tree: ast.AST) -> Iterator[tuple[int, tuple[int, int], tuple[int, int], str]]:
    """(line, start, end, replacement) of each guard."""
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and _is_refusal(node.body):
            # the condition never holds, so that the guard lets all through
            yield node.lineno, _start(node.test), _end(node.test), "False"
        elif isinstance(node, ast.FunctionDef) and _gives_miss(node):
            yield from _alternatives(node)


def _is_refusal(body: list[ast.stmt]) -> bool:
    """Whether it does nothing but ``return Miss(...)``."""
    statement = body[0]
    if len(body) != 1 or not isinstance(statement, ast.Return) or not isinstance(statement.value, ast.Call):
        return False
    return isinstance(statement.value.func, ast.Name) and statement.value.func.id == "Miss"


def _gives_miss(node: ast.FunctionDef) -> bool:
    return node.returns is not None and "Miss" in ast.unparse(node.returns) and "None" in ast.unparse(node.returns)


def _alternatives(function: ast.FunctionDef) -> Iterator[tuple[int, tuple[int, int], tuple[int, int], str]]:
    """``return a or b``, or ``return a(...)`` in a check: each part gives no miss any more."""
    for node in ast.walk(function):
        if isinstance(node, ast.Return) and node.value is not None:
            parts = node.value.values if isinstance(node.value, ast.BoolOp) else [node.value]
            for part in parts:
                called = isinstance(part, ast.Call) and isinstance(part.func, (ast.Name, ast.Attribute))
                if called and not (isinstance(part.func, ast.Name) and part.func.id == "Miss"):
                    yield part.lineno, _start(part), _end(part), "None"


def _start(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _end(node: ast.expr) -> tuple[int, int]:
    assert node.end_lineno is not None and node.end_col_offset is not None
    return node.end_lineno, node.end_col_offset


def _offset(lines: list[str], place: tuple[int, int]) -> int:
    line, column = place
    return sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())
