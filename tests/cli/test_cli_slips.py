"""Slips on the command line, several files at once, widths and colours."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

from dmlc.cli.layout import table
from dmlc.cli.main import VERBS
from tests.command_line import Run
from tests.rows import each_row

PROGRAM = """model m(x: f32[N, 3], d: f64[N]) -> (y, z, w) {
    y = softmax(x, axes=[1])
    z = reduce_max(exp(reduce_max(x, axes=[1])), axes=[0])
    w = sin(d)
    return y, z, w
}
"""
MODEL = '<ir_version: 8, opset_import: ["": 17]> g (float[N, 3] x) => (float[N, 3] y) { y = Exp(x) }'


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_line: Run) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("a.dml").write_text("model m(x: f32[N, 3]) -> (y) {\n    return exp(x)\n}\n")
    Path("broken.dml").write_text("model m(x: f32[N, 3]) -> (y) {\n    return exp(z)\n}\n")
    Path("odd.dml").write_text("model m( x: f32[N, 3]) -> (y) {\n    return exp(x)\n}\n")
    onnx.save(parser.parse_model(MODEL), "m.onnx")
    return command_line


@each_row(
    ("argv", "says"),
    [
        ("compile a.dml --traget cpu", "dmlc compile: there is no option --traget; did you mean --target?"),
        ("compile --traget=cpu a.dml", "dmlc compile: there is no option --traget; did you mean --target?"),
        ("check --bnd N=4 a.dml", "dmlc check: there is no option --bnd; did you mean --bind?"),
        ("run a.dml --inputs x=x.npy", "dmlc run: there is no option --inputs; did you mean --input?"),
        ("explain a.dml --mised", "dmlc explain: there is no option --mised; did you mean --missed?"),
        ("fmt a.dml --chek", "dmlc fmt: there is no option --chek; did you mean --check?"),
        ("verify a.dml m.onnx --sed 3", "dmlc verify: there is no option --sed; did you mean --seed?"),
        ("compile a.dml --emit onx", "'onx' is not one of onnx, numpy, dxdispatch, dml; did you mean onnx?"),
        ("check a.dml --format jsn", "did you mean json?"),
        (
            "compile a.dml --allow rnage",
            "'rnage' is not one of exact, reassociates, range; did you mean range?",
        ),
        ("compile a.dml --opset x", "dmlc compile: --opset: 'x' is not an integer"),
        ("compile a.dml -o", "dmlc compile: -o/--output needs a value"),
        ("compile a.dml --zzzz", "dmlc compile --help-all lists the options"),
        ("compile a.dml -Z", "there is no option -Z"),
        ("compile a.dml b.dml", "unexpected argument b.dml"),
        ("bisect a.onnx b.onnx", "unexpected argument b.onnx; did you mean --against b.onnx?"),
        ("check", "dmlc check: SRC is needed"),
        ("compil", "dmlc: there is no command compil; did you mean compile?"),
        ("help chek", "dmlc: there is no command chek; did you mean check?"),
        ("--versin", "did you mean --version?"),
        ("build a.dml", "dmlc: there is no command build; did you mean compile?"),
        ("frobnicate", "dmlc: there is no command frobnicate; dmlc --help lists the commands"),
        ("compile a.dml --dtype f16", "there is no option --dtype; dmlc compile --help-all lists the options"),
        ("check a.dml --dry-run", "there is no option --dry-run; dmlc check --help lists the options"),
        ("compile a.dml --opset-version 17", "there is no option --opset-version; did you mean --opset?"),
        ("", "dmlc: a command is needed"),
    ],
)
def test_a_slip_is_one_line_with_a_suggestion(run: Run, argv: str, says: str) -> None:
    code, out, err = run(*argv.split())
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


@each_row("verb", VERBS)
def test_every_option_of_every_verb_is_suggested(run: Run, verb: str) -> None:
    code, usage, _ = run("help", verb)
    assert code == 0
    assert usage == run(verb, "--help")[1]
    for option in set(re.findall(r"--[a-z0-9]{2}[a-z0-9-]*", usage.partition("\n\n")[0])) - {"--f64"}:
        slip = option[:-2] + option[-1] + option[-2] if option[-1] != option[-2] else option + "x"
        _, _, err = run(verb, slip)
        if f"no option {slip}" in err:  # else the slip is an option itself
            assert f"did you mean {option}?" in err or "did you mean" in err
            assert err.count("\n") == 1


def test_an_option_behind_two_dashes_is_a_file(run: Run) -> None:
    assert "--x.dml" in run("check", "--", "--x.dml")[2]


@pytest.mark.parametrize("verb", ["check", "inspect"])
def test_several_files_have_one_document(run: Run, verb: str) -> None:
    names = ["a.dml", "broken.dml", "m.onnx", "missing.dml", "x.npy"]
    code, out, _ = run(verb, *names, "--format", "json")
    found = json.loads(out)
    assert code == 2
    assert set(found) == {"schema", "files"}
    assert [document["source"] for document in found["files"]] == names
    assert [document["ok"] for document in found["files"]] == [True, False, True, False, False]
    assert found["files"][0] == json.loads(run(verb, "a.dml", "--format", "json")[1])
    code, out, err = run(verb, *names[:3])
    assert code == 1
    assert "m" in out
    assert "E02" in err
    assert run(verb, "a.dml", "m.onnx")[0] == 0


@pytest.mark.parametrize("form", ["sarif", "github"])
def test_several_files_have_one_list_of_findings(run: Run, form: str) -> None:
    code, out, _ = run("check", "a.dml", "broken.dml", "missing.dml", "--format", form)
    assert code == 2
    if form == "sarif":
        (found,) = json.loads(out)["runs"]
        places = [r["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for r in found["results"]]
        assert places == ["broken.dml", "missing.dml"]
    else:
        assert re.findall(r"^::error file=([^,]+),", out, re.MULTILINE) == ["broken.dml", "missing.dml"]


def test_fmt_reports_every_file(run: Run) -> None:
    code, out, _ = run("fmt", "--check", "a.dml", "odd.dml", "missing.dml", "--format", "json")
    found = json.loads(out)
    assert code == 2
    assert found["files"] == [
        {"source": "a.dml", "changed": False},
        {"source": "odd.dml", "changed": True},
        {"source": "missing.dml", "exit_code": 2},
    ]
    assert found["changed"] == ["odd.dml"]


PRINTED = (
    "check p.dml", "check p.dml -v", "ops", "ops top_k", "targets", "targets directml", "explain p.dml", "doctor",
    "compile --list-rules", "explain E0301",
)  # fmt: skip


@pytest.mark.parametrize("columns", [50, 80, 120])
def test_output_fits_the_terminal(run: Run, monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    Path("p.dml").write_text(PROGRAM)
    monkeypatch.setenv("COLUMNS", str(columns))
    printed = {command: run(*command.split())[1] for command in PRINTED}
    assert all(printed.values())
    widths = {command: max(map(len, out.splitlines())) for command, out in printed.items()}
    assert {command: width for command, width in widths.items() if width > columns} == {}


@pytest.mark.parametrize("width", [20, 40, 79, 300])
def test_no_word_of_a_table_is_lost(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    rows = [["name", "a description of several words", "x" * 70], ["n", "", "short"], ["long name of it", "b", "y z"]]
    monkeypatch.setenv("COLUMNS", "1000")
    whole = table(rows, "  ")
    assert max(map(len, whole.splitlines())) > 100
    monkeypatch.setenv("COLUMNS", str(width))
    text = table(rows, "  ")
    assert sorted("".join(text.split())) == sorted("".join(whole.split()))
    if width >= 40:
        assert max(map(len, text.splitlines())) <= width
    assert width < 300 or text == whole


def test_check_groups_by_verdict_with_counts_first(run: Run) -> None:
    Path("p.dml").write_text(PROGRAM)
    out = run("check", "p.dml")[1]
    groups = re.findall(r"^ +(\d+)   (\S[^\n]*)$", out, re.MULTILINE)
    report = json.loads(run("check", "p.dml", "--format", "json")[1])
    shown = [node for node in report["nodes"] if node["where"] != "folded"]
    assert sum(int(number) for number, _ in groups) == len(shown)
    assert groups[0][1].startswith("CPU "), "the worst first"
    verbose = run("check", "p.dml", "-v")[1]
    assert all(node["name"] in verbose for node in shown)


@pytest.mark.parametrize(
    ("environment", "is_coloured"),
    [
        ({}, False),
        ({"FORCE_COLOR": "1"}, True),
        ({"FORCE_COLOR": ""}, False),
        ({"FORCE_COLOR": "1", "NO_COLOR": ""}, True),
        ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
        ({"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        ({"NO_COLOR": ""}, False),
    ],
)
def test_colour_is_asked_for_by_the_environment(
    run: Run, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], is_coloured: bool
) -> None:
    for name in ("FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in run("check", "broken.dml")[2]) is is_coloured


def test_an_empty_no_color_leaves_a_terminal_its_colours(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dmlc.cli.console.is_terminal", lambda stream: True)
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    for value, expected in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", value)
        assert ("\x1b[" in run("check", "broken.dml")[2]) is expected


def test_explain_lists_the_passes_only_when_asked(run: Run) -> None:
    Path("p.dml").write_text(PROGRAM)
    page: Any = run("explain", "p.dml")[1]
    assert "passes" not in page
    assert "rewritten" in page
    page = run("explain", "p.dml", "-v")[1]
    listed = json.loads(run("explain", "p.dml", "--format", "json")[1])["passes"]
    changed = [row["pass"] for row in listed if row["changed"]]
    assert re.findall(r"^ +[\d.]+ ms  (\S+)$", page, re.MULTILINE) == changed
    assert f"ms  {len(listed) - len(changed)} other passes" in page


def test_the_operation_that_numpy_names_otherwise(run: Run) -> None:
    code, _, err = run("ops", "mean")
    assert code == 2
    assert 'did you mean "reduce_mean"?' in err


def test_an_input_that_does_not_exist_is_named_before_its_file(run: Run) -> None:
    """The file has two arrays, and says nothing about which one is meant; an input that exists has that error."""
    np.savez("two.npz", a=np.zeros((4, 3), np.float32), b=np.zeros(3, np.float32))
    code, _, err = run("run", "a.dml", "--input", "xs=two.npz")
    assert (code, "error[E0423]: the model has no input xs" in err) == (1, True)
    assert "E0422" not in err
    assert "error[E0422]: two.npz has several arrays: a, b" in run("run", "a.dml", "--input", "x=two.npz")[2]
