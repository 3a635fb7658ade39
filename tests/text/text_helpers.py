"""Helpers of the tests of ``dmlc.text``: programs in, graphs or the places of errors out."""

from __future__ import annotations

from pathlib import Path

from dmlc import text
from dmlc.diagnostics import Diagnostic, DmlcError, Source
from dmlc.ir import Graph
from dmlc.ir.printer import print_graph


def source(program: str) -> Source:
    return Source("t.dml", program)


def diagnostics(program: str, folder: Path | None = None, model: str | None = None) -> tuple[Diagnostic, ...]:
    """The errors of loading a program; empty where nothing is wrong."""
    try:
        text.load(source(program), folder=folder, model=model)
    except DmlcError as error:
        assert error.exit_code == 1
        return error.diagnostics
    return ()


def errors(program: str, folder: Path | None = None) -> list[tuple[str, int, int]]:
    """(code, line, column) of each error."""
    out = []
    for diagnostic in diagnostics(program, folder):
        span = diagnostic.span
        out.append((diagnostic.code.id, span.line if span else 0, span.column if span else 0))
    return out


def codes(program: str, folder: Path | None = None) -> list[str]:
    return [code for code, _, _ in errors(program, folder)]


def graph_of(program: str, folder: Path | None = None) -> Graph:
    return text.load(source(program), folder=folder)


def in_model(*lines: str, inputs: str = "x: f32[4, 3], n: i32[4, 3]", results: str = "y") -> str:
    """A model with these statements; the first of them stands on line 2, at column 5."""
    body = "\n".join(f"    {line}" for line in lines)
    return f"model m({inputs}) -> ({results}) {{\n{body}\n}}\n"


def types_of(program: str) -> list[str]:
    """The types of the results."""
    return [str(value.type) for _, value in graph_of(program).outputs]


def body_of(program: str) -> list[str]:
    """The lines of the graph's body as the printer writes them, without types."""
    lines = print_graph(graph_of(program)).splitlines()
    start = next(i for i, line in enumerate(lines) if line.endswith(") {"))
    return [line.split("  #")[0].strip() for line in lines[start + 1 : -1]]
