"""Every code has a page: its example gives the code, its fix compiles."""

from __future__ import annotations

from pathlib import Path

import dmlc.diagnostics.catalogue  # noqa: F401  fills CODES
from dmlc import api, text
from dmlc.diagnostics import CODES, Code, Diagnostic, DmlcError, Source, render
from tests.rows import each_row

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


@each_row("code", PROGRAMS, ids=str)
def test_the_example_gives_its_code_alone(code: Code, tmp_path: Path) -> None:
    """Every mistake shows where it is, but for an empty program and a program without a model: no line can show it."""
    found = diagnostics_of(code.example, tmp_path)
    assert {d.code.id for d in found} == {code.id}
    for diagnostic in found if code.id not in ("E0113", "E0209") else ():
        assert diagnostic.span is not None
        assert diagnostic.span.source.line(diagnostic.span.line)
        assert f"--> {diagnostic.span.source.name}:" in render(diagnostic)


@each_row("code", PROGRAMS, ids=str)
def test_the_fix_compiles_and_is_formatted(code: Code, tmp_path: Path) -> None:
    found = diagnostics_of(code.fixed, tmp_path)
    assert [d.code.id for d in found if d.severity == "error" or d.code == code] == []
    assert text.format_source(Source("fixed.dml", code.fixed)) == code.fixed


def test_the_pages_are_written() -> None:
    for code in CODES.values():
        assert code.title and not code.title.endswith("."), code
        assert len(code.why) > 20 and code.why.endswith("."), code
        assert code.example.strip() and code.fixed.strip(), code
        assert code.example != code.fixed, code
        assert code.id[0] in "EWI" and len(code.id) == 5, code
