"""Every code has a page: its example gives the code, its fix compiles."""

from __future__ import annotations

from pathlib import Path

import pytest

import dmlc.diagnostics.catalogue  # noqa: F401  fills CODES
from dmlc import api, text
from dmlc.diagnostics import CODES, Code, Diagnostic, DmlcError, Source, render

PROGRAMS = [code for code in CODES.values() if code.program]


def diagnostics_of(program: str, folder: Path) -> list[Diagnostic]:
    """The errors of loading, else those and the warnings of compiling for the default target."""
    source = Source("example.dml", program)
    try:
        text.load(source, folder=folder)
        path = folder / "example.dml"
        path.write_text(program, encoding="utf-8")
        compiled = api.compile(path)
        compiled.to_onnx()
    except DmlcError as error:
        return list(error.diagnostics)
    return list(compiled.diagnostics)


@pytest.mark.parametrize("code", PROGRAMS, ids=str)
def test_the_example_gives_its_code(code: Code, tmp_path: Path) -> None:
    found = [d.code for d in diagnostics_of(code.example, tmp_path)]
    assert code in found


@pytest.mark.parametrize("code", PROGRAMS, ids=str)
def test_the_example_gives_nothing_else(code: Code, tmp_path: Path) -> None:
    assert {d.code.id for d in diagnostics_of(code.example, tmp_path)} == {code.id}


@pytest.mark.parametrize("code", PROGRAMS, ids=str)
def test_the_example_has_a_place(code: Code, tmp_path: Path) -> None:
    """Every mistake shows where it is, but for what no line can show."""
    if code.id in ("E0113", "E0209"):  # an empty program, a program without a model
        return
    for diagnostic in diagnostics_of(code.example, tmp_path):
        assert diagnostic.span is not None
        assert diagnostic.span.source.line(diagnostic.span.line)
        assert f"--> {diagnostic.span.source.name}:" in render(diagnostic)


@pytest.mark.parametrize("code", PROGRAMS, ids=str)
def test_the_fix_compiles(code: Code, tmp_path: Path) -> None:
    assert [d.code.id for d in diagnostics_of(code.fixed, tmp_path) if d.severity == "error"] == []
    assert code not in [d.code for d in diagnostics_of(code.fixed, tmp_path)]


@pytest.mark.parametrize("code", PROGRAMS, ids=str)
def test_the_fix_is_formatted(code: Code) -> None:
    assert text.format_source(Source("fixed.dml", code.fixed)) == code.fixed


@pytest.mark.parametrize("code", CODES.values(), ids=str)
def test_the_page_is_written(code: Code) -> None:
    assert code.title and not code.title.endswith(".")
    assert len(code.why) > 20 and code.why.endswith(".")
    assert code.example.strip() and code.fixed.strip()
    assert code.example != code.fixed
    assert code.id[0] in "EWI" and len(code.id) == 5
