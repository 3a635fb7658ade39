"""Every diagnostic of a file names the file, in text, JSON, SARIF, GitHub's commands and Python's errors."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from onnx import parser

import dmlc
import dmlc.diagnostics.catalogue  # fills CODES
from dmlc.diagnostics import CODES, Code, Diagnostic, DmlcError, Source, naming, render, to_json
from dmlc.diagnostics.catalogue.syntax import EMPTY
from tests.command_line import Run
from tests.rows import each_row

PROGRAMS = [code for code in CODES.values() if code.program]
NAME = "folder/example.dml"
#: Files that are wrong as a whole, with the code and further arguments.
WHOLE = {
    "empty": (b"", "E0113", ()),
    "comments": (b"# nothing\n\n", "E0113", ()),
    "no model": (b"dim n in 1..4\n", "E0209", ()),
    "another model": (b"model m(x: f32[3]) -> (y) {\n    return x\n}\n", "E0209", ("--model", "n")),
    "binary": (b"\0\1\2", "E0112", ()),
    "utf-16": ("model".encode("utf-16"), "E0112", ()),
    "latin": (b"model m\xe9", "E0112", ()),
    "bytes": (b"model m(x: f32[3]) -> (y) {\n    return x\n}\n", "E0114", ("--limit", "text_bytes=9")),
    "tokens": (b"model m(x: f32[3]) -> (y) {\n    return x\n}\n", "E0116", ("--limit", "tokens=9")),
    "nodes": (b"model m(x: f32[3]) -> (y) {\n    return exp(x) + 1\n}\n", "E0441", ("--limit", "nodes=1")),
    "bind": (b"model m(x: f32[N]) -> (y) {\n    return x\n}\n", "E0555", ("--bind", "Q=3")),
}
OPSET = '<ir_version: 8, opset_import: ["": 17]>'
MODELS = {
    "a program": (b"model", "E01"),
    "no model": (b"\x00model", "E04"),
    "empty": (b"", "E04"),
    "no such value": (f"{OPSET} g (float[4] x) => (float[4] y) {{ y = Exp(z) }}", "E0431"),
    "function": (
        '<ir_version: 8, opset_import: ["": 17, "l": 1]> g (float[4] x) => (float[4] y) { y = l.f(x) }'
        '<domain: "l", opset_import: ["": 17, "l": 1]> f (v) => (w) { w = l.f(v) }',
        "E04",
    ),
    "deep": (f"{OPSET} g (float[{','.join('2' * 9)}] x) => (float[{','.join('2' * 9)}] y) {{ y = Exp(x) }}", "E05"),
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_line: Run) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    return command_line


def check_named(run: Run, verb: str, name: str, *more: str) -> set[str]:
    """Every diagnostic of a command names the file; their codes."""
    _, _, err = run(verb, name, *more)
    heads = [i for i, line in enumerate(err.splitlines()) if line.startswith(("error[", "warning[", "hint["))]
    for i in heads:
        head, below = err.splitlines()[i : i + 2]
        assert f"]: {name}: " in head or below.strip().startswith(f"--> {name}"), err
    found = json.loads(run(verb, name, *more, "--format", "json")[1])["diagnostics"]
    assert [d["file"] for d in found] == [name] * len(heads)
    return {d["code"] for d in found}


@each_row("code", PROGRAMS, ids=str)
def test_examples_of_codes(run: Run, code: Code) -> None:
    Path(NAME).write_text(code.example)
    assert code.id in check_named(run, "check", NAME)
    results = json.loads(run("check", NAME, "--format", "sarif")[1])["runs"][0]["results"]
    places = [r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in results]
    assert places == [NAME] * len(places)
    assert places
    lines = run("check", NAME, "--format", "github")[1].splitlines()
    assert all(f" file={NAME}," in line for line in lines)
    assert len(lines) == len(places)
    try:
        found = str(DmlcError(dmlc.compile(NAME).problems()))
    except DmlcError as error:
        found = str(error)
    assert found.count(f"({NAME}") == len(found.splitlines())


@each_row("verb", ["check", "compile", "explain", "inspect", "run"])
@each_row("case", WHOLE)
def test_what_is_wrong_with_a_file_as_a_whole(run: Run, case: str, verb: str) -> None:
    data, code, more = WHOLE[case]
    Path(NAME).write_bytes(data)
    assert check_named(run, verb, NAME, *more) == {code}


@each_row("case", [case for case, row in WHOLE.items() if "--bind" not in row[2]])
def test_verbs_that_do_not_compile(run: Run, case: str) -> None:
    data, code, more = WHOLE[case]
    Path(NAME).write_bytes(data)
    assert check_named(run, "verify", NAME, NAME, *more) == {code}
    if code[:3] == "E01":
        assert check_named(run, "fmt", NAME, *more) == {code}


@pytest.mark.parametrize("case", MODELS)
def test_models(run: Run, case: str) -> None:
    source, family = MODELS[case]
    name = "folder/model.onnx"
    Path(name).write_bytes(source if isinstance(source, bytes) else parser.parse_model(source).SerializeToString())
    for verb, more in (("check", ()), ("compile", ("-o", "out.onnx")), ("explain", ("--strict",))):
        found = check_named(run, verb, name, *more)
        assert found
        assert all(code.startswith(family) for code in found)


def test_warnings_of_models(run: Run) -> None:
    text = '<ir_version: 8, opset_import: ["": 17, "acme": 1]> g (float[4] x) => (float[4] y) { y = acme.Warp(x) }'
    onnx.save(parser.parse_model(text), "folder/model.onnx")
    for verb, more in (("check", ()), ("compile", ("-o", "out.onnx")), ("explain", ()), ("check", ("--strict",))):
        assert check_named(run, verb, "folder/model.onnx", *more) == {"W0602"}


def test_stdin_has_a_name(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    import io
    from types import SimpleNamespace

    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"")))
    assert " --> <stdin>\n" in run("check", "-")[2]


def test_a_file_is_named_once() -> None:
    with pytest.raises(DmlcError) as caught, naming("outer.dml"), naming("inner.dml"):
        raise DmlcError(Diagnostic(EMPTY, "the program is empty"))
    (found,) = caught.value.diagnostics
    assert (found.file, to_json(found)["file"]) == ("inner.dml", "inner.dml")
    assert render(found).splitlines()[1] == " --> inner.dml"
    bare = Diagnostic(EMPTY, "the program is empty")
    assert to_json(bare)["file"] is None
    assert "-->" not in render(bare)
    assert str(DmlcError(bare)) == "error[E0113]: the program is empty"


def test_a_graph_of_the_builder_has_no_file() -> None:
    g = dmlc.Graph("g")
    g.input("x", "float32", (3,))
    with pytest.raises(DmlcError) as caught:
        dmlc.compile(g)
    assert caught.value.diagnostics[0].file == ""
    with pytest.raises(DmlcError) as caught:
        dmlc.compile(Source("given.dml", ""))
    assert caught.value.diagnostics[0].file == "given.dml"
