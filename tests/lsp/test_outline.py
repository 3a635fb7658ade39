"""Outlines: each name of each program of the repository has its role, and a rename of a thing changes nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlc.api.sources import Choice, model_reader
from dmlc.diagnostics import Source, Span
from dmlc.diagnostics.fix import Edit, edited
from dmlc.diagnostics.limits import DEFAULTS
from dmlc.ir import Graph
from dmlc.lsp.outline import Outline, Role, Symbol
from dmlc.text import LibraryError, parse
from dmlc.text.elaborate import elaborate
from dmlc.text.syntax import tree
from dmlc.text.syntax.parser import lex
from tests.lsp.programs import PROGRAMS, ROOT
from tests.rows import each_row

#: Programs whose ``load`` and ``use`` find their files.
COMPLETE = [path for path in PROGRAMS if "tests" not in path.parts]


def source_of(path: Path) -> Source:
    return Source(str(path), path.read_text(encoding="utf-8"))


def outline_of(source: Source) -> Outline:
    lexed = lex(source)
    return Outline(lexed.tokens, lexed.comments)


def graphs(source: Source) -> list[Graph]:
    """The graphs of the models of a program; none of a library."""
    program, out = parse(source), []
    models = [item.name.text for item in program.items if isinstance(item, tree.Model)]
    for name in models or [None]:
        try:
            folder = Path(source.name).parent
            models = model_reader(folder, Choice(), DEFAULTS)
            out.append(elaborate(program, folder, name, 21, DEFAULTS, name=source.name, models=models))
        except LibraryError:
            pass
    return out


def shape_of(graph: Graph) -> list[object]:
    """A graph without its names."""
    places = {value: i for i, value in enumerate([*graph.inputs, *[v for node in graph for v in node.results]])}
    rows: list[object] = [len(value.shape) for value in graph.inputs]
    for node in graph:
        operands = [None if value is None else places[value] for value in node.operands]
        rows.append((node.op.name, operands, [value.type.dtype for value in node.results]))
    return [*rows, [places[value] for _, value in graph.outputs]]


@each_row("path", PROGRAMS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_name_has_a_role(path: Path) -> None:
    outline = outline_of(source_of(path))
    names = [token for token in outline.tokens if token.type == "NAME"]
    seen = [found.token for found in outline.occurrences]
    assert sorted(map(id, seen)) == sorted(id(token) for token in names if token.text != "_")
    assert [found.token for found in outline.occurrences if found.role is Role.UNKNOWN] == []


@pytest.mark.parametrize("path", COMPLETE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_rename_changes_the_name_alone(path: Path) -> None:
    """Things of a program get a new name: the graph is the same, so that no place is left out or too much. Three of
    each program, which take turns."""
    source = source_of(path)
    before = [shape_of(graph) for graph in graphs(source)]
    outline = outline_of(source)
    things = {id(found.symbol): found.symbol for found in outline.occurrences if found.symbol is not None}
    turn = COMPLETE.index(path)
    for symbol in list(things.values())[turn % max(1, len(things) // 3) :: max(1, len(things) // 3)]:
        renamed = Source(source.name, edited(source, list(edits(outline, symbol))))
        after = [shape_of(graph) for graph in graphs(renamed)]
        assert after == before, symbol.name


def edits(outline: Outline, symbol: Symbol) -> list[Edit]:
    out = []
    for found in outline.of(symbol):
        is_brought = symbol.role is Role.USED and found.token is symbol.token
        has_alias = is_brought and outline.tokens[outline.tokens.index(found.token) - 1].type == "AS"
        text = f"{found.token.text} as `new 😀`" if is_brought and not has_alias else "`new 😀`"
        span = found.token
        out.append(Edit(Span(span.source, span.line, span.column, span.end_line, span.end_column), text))
    return out


def test_names_of_the_language_are_those_of_the_elaboration() -> None:
    """A dim in a type and in an attribute, a value of its name in an expression, and words beside values."""
    text = """\
model m(x: f32[N, W], N: f32[], first: f32[]) -> (y) {
    a = x * N + first
    b = argmax(reshape(a, shape=[N, W]), axes=[1], ties=first)
    c = x[N - 1]
    W = onnx.Relu(a) as f16
    return b, c, W
}
"""
    outline = outline_of(Source("m.dml", text))
    found = {(each.token.line, each.token.column): each.role for each in outline.occurrences}
    lines = text.split("\n")

    def role(line: int, before: str) -> Role:
        return found[line, lines[line - 1].index(before) + len(before) + 1]

    assert role(1, "f32[") is Role.DIM
    assert role(2, "x * ") is Role.INPUT
    assert role(2, "+ ") is Role.INPUT
    assert role(3, "shape=[") is Role.DIM
    assert role(3, "ties=") is Role.WORD
    assert role(4, "x[") is Role.DIM
    assert role(5, "    ") is Role.VALUE
    assert role(5, "= ") is Role.ONNX
    assert role(5, "as ") is Role.DTYPE
    assert role(6, "c, ") is Role.VALUE
