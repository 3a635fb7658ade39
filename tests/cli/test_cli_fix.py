"""``dmlc check --fix``: files, stdin, models, the forms of a report; and the fixes of SARIF."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys
from email.message import Message
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

from dmlc.cli import findings
from dmlc.cli.findings import sarif_text
from dmlc.diagnostics import CODES, Code, Diagnostic, DmlcError, Source
from dmlc.text import load
from tests.command_line import Run
from tests.rows import each_row

WRONG = """model m(x: float32[4, 3]) -> y {
    let s = x.sum(axis=1)
    s += 1
    y = softmx(s, axis=0)  # \U0001f600
    return y
}
"""
RIGHT = """model m(x: f32[4, 3]) -> (y) {
    s = reduce_sum(x, axes=[1], keepdims=false)
    s_2 = s + 1
    y = softmax(s_2, axes=0)  # \U0001f600
    return y
}
"""
#: One mistake with a safe fix, one with another, one with none.
PARTLY = "model m(x: f32[4, 3], n: i32[4, 3]) -> (y) {\n    y = softmx(x) + n\n    return y + nothing\n}\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_line: Run) -> Run:
    monkeypatch.chdir(tmp_path)

    def call(*argv: str, stdin: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode("utf-8"))))
        return command_line(*argv)

    return call


def test_a_program_is_fixed_in_place_and_checked(run: Run) -> None:
    Path("a.dml").write_text(WRONG, encoding="utf-8")
    code, out, err = run("check", "a.dml", "--fix")
    assert code == 0
    assert Path("a.dml").read_text(encoding="utf-8") == RIGHT
    assert "a.dml on directml: runs, " in out
    lines = err.splitlines()
    assert "a.dml:1:12: fixed E0211: replace `float32` with `f32`" in lines
    assert "a.dml:4:9: fixed E0203: replace `softmx` with `softmax`" in lines
    assert all(re.match(r"a\.dml:\d+:\d+: fixed E0\d{3}: ", line) for line in lines)
    assert run("check", "a.dml", "--fix")[2] == ""


def test_what_is_not_safe_stays_and_is_reported(run: Run) -> None:
    Path("a.dml").write_text(PARTLY)
    code, out, err = run("check", "a.dml", "--fix")
    assert (code, out) == (1, "")
    assert Path("a.dml").read_text() == PARTLY.replace("softmx", "softmax")
    assert err.count(": fixed ") == 1
    assert "error[E0310]" in err
    assert "error[E0202]" in err
    assert run("check", "a.dml", "--fix", "-q")[2].count("error[") == 2


def test_a_program_without_fixes_is_not_written(run: Run) -> None:
    Path("a.dml").write_text(RIGHT, encoding="utf-8")
    os.utime("a.dml", ns=(1, 1))
    before = Path("a.dml").stat()
    assert run("check", "a.dml", "--fix")[0] == 0
    after = Path("a.dml").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    Path("b.dml").write_text(WRONG, encoding="utf-8")
    run("check", "b.dml")
    assert Path("b.dml").read_text(encoding="utf-8") == WRONG


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_a_byte_order_mark_stay(run: Run, mark: bytes) -> None:
    Path("a.dml").write_bytes(mark + WRONG.replace("\n", "\r\n").encode("utf-8"))
    assert run("check", "a.dml", "--fix")[0] == 0
    assert Path("a.dml").read_bytes() == mark + RIGHT.replace("\n", "\r\n").encode("utf-8")


def test_a_program_behind_a_link_is_written_where_it_lies(run: Run) -> None:
    Path("a.dml").write_text(WRONG, encoding="utf-8")
    Path("link.dml").symlink_to("a.dml")
    assert run("check", "link.dml", "--fix")[0] == 0
    assert Path("link.dml").is_symlink()
    assert Path("a.dml").read_text(encoding="utf-8") == RIGHT


def test_a_program_that_cannot_be_written_stays_whole(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.dml").write_text(WRONG, encoding="utf-8")

    def refuse(path: Path, target: Path) -> Path:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "replace", refuse)
    code, _, err = run("check", "a.dml", "--fix")
    assert code == 2
    assert "error[E0421]" in err
    assert [path.name for path in Path().iterdir()] == ["a.dml"]
    assert Path("a.dml").read_text(encoding="utf-8") == WRONG


def test_stdin_is_printed_fixed_and_all_else_goes_to_stderr(run: Run) -> None:
    code, out, err = run("check", "-", "--fix", stdin=WRONG)
    assert (code, out) == (0, RIGHT)
    assert "<stdin>:4:9: fixed E0203" in err
    assert " on directml: runs, " in err
    code, out, err = run("check", "-", "--fix", "-q", stdin=PARTLY)
    assert (code, out) == (1, PARTLY.replace("softmx", "softmax"))
    assert ": fixed " not in err
    code, out, err = run("check", "-", "--fix", "-q", stdin=RIGHT)
    assert (code, out, err) == (0, RIGHT, "")


@pytest.mark.parametrize("form", ["sarif", "github"])
def test_stdout_is_not_asked_for_two_things(run: Run, form: str) -> None:
    code, out, err = run("check", "-", "--fix", "--format", form, stdin=WRONG)
    assert (code, out, err.count("\n")) == (2, "", 1)


def test_several_files_are_fixed_and_the_broken_one_stops_none(run: Run) -> None:
    for name in ("a.dml", "b.dml"):
        Path(name).write_text(WRONG, encoding="utf-8")
    Path("bytes.dml").write_bytes(b"\xff")
    code, out, err = run("check", "a.dml", "bytes.dml", "missing.dml", "b.dml", "--fix")
    assert code == 2
    assert [Path(name).read_text(encoding="utf-8") for name in ("a.dml", "b.dml")] == [RIGHT, RIGHT]
    assert out.count(" on directml: runs, ") == 2
    assert Path("bytes.dml").read_bytes() == b"\xff"
    assert err.count("error[") == 2


def test_a_library_is_fixed(run: Run) -> None:
    Path("blocks.dml").write_text("def scaled(x) {\n    return softmx(x)\n}\n")
    code, out, _ = run("check", "blocks.dml", "--fix")
    assert code == 0
    assert "softmax" in Path("blocks.dml").read_text()
    assert "scaled" in out


def test_json_has_what_was_fixed_and_the_fixes_that_are_left(run: Run) -> None:
    Path("a.dml").write_text(PARTLY)
    code, out, _ = run("check", "a.dml", "--fix", "--format", "json")
    found = json.loads(out)
    assert (code, found["ok"]) == (1, False)
    edit = {"file": "a.dml", "line": 2, "column": 9, "end_line": 2, "end_column": 15, "text": "softmax"}
    title = "replace `softmx` with `softmax`"
    assert found["fixed"] == [{"code": "E0203", "title": title, "safe": True, "edits": [edit]}]
    fixes = {d["code"]: d["fix"] for d in found["diagnostics"]}
    assert fixes["E0202"] is None
    assert (fixes["E0310"]["safe"], fixes["E0310"]["edits"][0]["text"]) == (False, "(n as f32)")
    found = json.loads(run("check", "-", "--fix", "--format", "json", stdin=WRONG)[1])
    assert (found["ok"], found["text"], len(found["fixed"])) == (True, RIGHT, 7)


# --- models


@pytest.fixture
def model(run: Run) -> Path:
    """A model of a node that the target refuses at its opset, and has at another."""
    x = helper.make_tensor_value_info("x", TensorProto.INT32, [2, 3])
    y = helper.make_tensor_value_info("y", TensorProto.INT32, [1, 1])
    graph = helper.make_graph([helper.make_node("ReduceMean", ["x"], ["y"], name="avg")], "g", [x], [y])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), "mean.onnx")
    return Path("mean.onnx")


def test_fix_of_a_model_writes_what_the_command_in_the_help_writes(run: Run, model: Path) -> None:
    before = model.read_bytes()
    (command,) = re.findall(r"this does: (dmlc compile .*?)(?:;|$)", run("check", "mean.onnx")[2], re.MULTILINE)
    assert run(*shlex.split(command)[1:])[0] == 0
    typed = Path("mean.fixed.onnx").read_bytes()
    Path("mean.fixed.onnx").unlink()
    code, out, err = run("check", "mean.onnx", "--fix")
    assert code == 0
    assert Path("mean.fixed.onnx").read_bytes() == typed
    assert "mean.onnx: fixed in mean.fixed.onnx" in err
    assert "mean.fixed.onnx on directml: runs, " in out
    assert model.read_bytes() == before
    found = json.loads(run("check", "mean.onnx", "--fix", "--format", "json")[1])
    assert (found["ok"], found["output"]) == (True, "mean.fixed.onnx")


def test_fix_of_a_fine_model_writes_nothing(run: Run, model: Path) -> None:
    run("check", "mean.onnx", "--fix")
    assert run("check", "mean.fixed.onnx", "--fix")[0] == 0
    assert sorted(path.name for path in Path().iterdir()) == ["mean.fixed.onnx", "mean.onnx"]


# --- SARIF


def sarif(program: str, name: str = "p.dml") -> dict[str, Any]:
    try:
        load(Source(name, program))
        found = ()
    except DmlcError as error:
        found = error.diagnostics
    (only,) = json.loads(sarif_text(name, found))["runs"]
    return dict(only)


def made(text: str, run_of_sarif: dict[str, Any]) -> str:
    """The text with all fixes made, by the columns of SARIF: characters, the end exclusive."""
    lines = text.split("\n")
    replacements = [
        (r["deletedRegion"], r["insertedContent"]["text"])
        for result in run_of_sarif["results"]
        for fix in result.get("fixes", ())
        for change in fix["artifactChanges"]
        for r in change["replacements"]
    ]
    for region, new in sorted(replacements, key=lambda r: (r[0]["startLine"], r[0]["startColumn"]), reverse=True):
        first, last = region["startLine"] - 1, region["endLine"] - 1
        joined = lines[first][: region["startColumn"] - 1] + new + lines[last][region["endColumn"] - 1 :]
        lines[first : last + 1] = joined.split("\n")
    return "\n".join(lines)


def test_columns_of_sarif_are_characters_as_it_says(run: Run) -> None:
    program = (
        "model m(`\U0001f600`: f32[4]) -> (y) {\n    y = exp(`\U0001f600`) + softmx(`\U0001f600`)\n    return y\n}\n"
    )
    found = sarif(program)
    assert found["columnKind"] == "unicodeCodePoints"
    (result,) = found["results"]
    region = result["locations"][0]["physicalLocation"]["region"]
    line = program.split("\n")[region["startLine"] - 1]
    assert line[region["startColumn"] - 1 : region["endColumn"] - 1] == "softmx"
    assert made(program, found) == program.replace("softmx", "softmax")


@each_row("id", ["E0101", "E0203", "E0211", "E0310", "E0318", "E0333"])
def test_fixes_of_sarif_are_those_of_the_page(run: Run, id: str) -> None:
    code = CODES[id]
    assert made(code.example, sarif(code.example)) == code.fixed


@each_row("code", [code for code in CODES.values() if code.id[0] != "I"], ids=str)
def test_a_rule_of_sarif_has_the_page_of_its_code(code: Code) -> None:
    (only,) = json.loads(sarif_text("p.dml", [Diagnostic(code, "m")]))["runs"]
    (rule,) = only["tool"]["driver"]["rules"]
    assert rule["id"] == code.id
    assert rule["shortDescription"]["text"] == code.title
    assert rule["fullDescription"]["text"] == code.why
    assert code.example in rule["help"]["text"]
    assert code.fixed in rule["help"]["markdown"]
    assert rule["help"]["markdown"].count("```") == 4
    assert re.match(r"[a-z]+:", rule["helpUri"])
    assert rule["defaultConfiguration"]["level"] in ("error", "warning", "note")


def test_the_page_of_a_code_is_on_the_site_that_the_project_names(monkeypatch: pytest.MonkeyPatch) -> None:
    urls = Message()
    urls["Project-URL"] = "Source, https://x.example/dmlc"
    monkeypatch.setattr(findings, "metadata", lambda name: urls)
    on_site = "https://y.example/reference/codes/E0301/"
    for address, page in (("", "urn:dmlc:explain:E0301"), ("https://y.example/", on_site)):
        if address:
            urls["Project-URL"] = f"Documentation, {address}"
        findings.site_address.cache_clear()
        (run,) = json.loads(sarif_text("p.dml", [Diagnostic(CODES["E0301"], "m")]))["runs"]
        assert run["tool"]["driver"]["rules"][0]["helpUri"] == page
    findings.site_address.cache_clear()


def test_other_labels_are_related_locations(run: Run) -> None:
    (result,) = sarif(CODES["E0301"].example)["results"]
    (related,) = result["relatedLocations"]
    assert related["message"]["text"] == "image has this type"
    assert related["physicalLocation"]["region"]["startLine"] == 1
    assert result["fixes"][0]["properties"] == {"safe": False}
