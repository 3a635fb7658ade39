"""Every verb on good and bad inputs: one JSON document on stdout, which keeps to its schema, an error with a code
wherever the exit code is 1, and text in plain words."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from itertools import cycle
from pathlib import Path

import numpy as np
import onnx
import pytest
from jsonschema import Draft202012Validator
from onnx import parser

from dmlc.cli.main import main
from dmlc.cli.schemas import schema_of
from tests.cli.plain_words import assert_plain
from tests.rows import each_row

GOOD = "model m(x: f32[N, 3]) -> (y) {\n    return reduce_sum(x, axes=[1])\n}\n"
OPSET = '<ir_version: 8, opset_import: ["": 17]>'
TEXTS = {
    "good.dml": GOOD,
    "cpu.dml": "model m(x: f64[3]) -> (y) {\n    return exp(x)\n}\n",
    "unformatted.dml": "model m( x:f32[3] )->(y){\n  return x\n}",
    "two.dml": GOOD + GOOD.replace("model m", "model k"),
    "syntax.dml": "model m(x: f32[3]) -> (y) {\n    y = (x +\n",
    "types.dml": "model m(x: f32[3]) -> (y) {\n    return x + z\n}\n",
    "empty.dml": "",
    "library.dml": "def f(x) {\n    return x\n}\n",
    "load.dml": 'const w: f32[3] = load("w.npy")\n' + GOOD,
    "nine.dml": f"model m(x: f32[{', '.join('2' * 9)}]) -> (y) {{\n    return exp(x)\n}}\n",
    "good.onnx": f"{OPSET} g (float[N, 3] x) => (float[N, 1] y) {{ y = ReduceMax<axes = [1]>(x) }}",
    "other.onnx": f"{OPSET} g (float[N, 3] x) => (float[N, 1] y) {{ y = ReduceMin<axes = [1]>(x) }}",
    "ints.onnx": f"{OPSET} g (int32[2, 3] x) => (int32[1, 1] y) {{ y = ReduceMean(x) }}",
    "custom.onnx": '<ir_version: 8, opset_import: ["": 17, "a": 1]> g (float[4] x) => (float[4] y) { y = a.A(x) }',
    "broken.onnx": f"{OPSET} g (float[4] x) => (float[4] y) {{ y = Exp(z) }}",
    "sizes.onnx": f"{OPSET} g (float[4] x, float[3] z) => (float[4] y) {{ y = Add(x, z) }}",
}
BYTES = {"noise.onnx": b"\x08\x07noise", "empty.onnx": b"", "latin.dml": b"model m\xe9", "zero.dml": b"\0\0"}
INPUTS = [*TEXTS, *BYTES, "missing.dml", "missing.onnx", "folder", "folder.dml"]
#: Verbs with arguments that go behind SRC; those that run code of a model are tried with the CPU.
VERBS = {
    "compile": ("--dry-run",),
    "compile -o": ("-o", "out.onnx", "--verify", "2"),
    "compile .py": ("-o", "out.py"),
    "compile .dml": ("-o", "out.dml"),
    "check": (),
    "check --strict": ("--strict",),
    "check --target cpu": ("--target", "cpu"),
    "explain": (),
    "inspect": (),
    "report": ("-o", "r.html"),
    "graph": ("-o", "g.svg"),
    "graph --stage": ("-o", "g.dot", "--stage", "source"),
    "run": ("--random", "1", "--backend", "cpu"),
    "run reference": ("--random", "1", "--backend", "reference"),
    "run --input": ("--input", "x=x.npy", "--backend", "cpu"),
    "bench": ("--random", "1", "--provider", "cpu", "--rounds", "1"),
    "fmt": ("--check",),
    "verify": ("good.onnx", "--inputs", "2"),
    "bisect": ("--backend", "cpu", "--inputs", "2"),
    "repro": ("--backend", "cpu", "--inputs", "2", "-o", "out.zip"),
    "diff": ("good.onnx",),
    "decompose": ("-o", "out.onnx"),
}
_HEAD = re.compile(r"^(error|warning|hint)\[([EWI]\d{4})\]: ", re.MULTILINE)
_OF_VERDICT = re.compile(r"^  help: dmlc explain (E\d{4})$", re.MULTILINE)
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    monkeypatch.chdir(tmp_path)
    for name, text in TEXTS.items():
        if name.endswith(".dml"):
            Path(name).write_text(text)
        else:
            onnx.save(parser.parse_model(text), name)
    for name, data in BYTES.items():
        Path(name).write_bytes(data)
    Path("folder.dml").mkdir()
    Path("folder").mkdir()
    np.save("x.npy", np.zeros((5, 3), np.float32))

    def call(*argv: str) -> tuple[int, str, str]:
        capfd.readouterr()
        code = main(list(argv))
        out, err = capfd.readouterr()
        return code, out, err

    return call


@cache
def validator(command: str) -> Draft202012Validator:
    return Draft202012Validator(schema_of(command))


def codes_in(text: str) -> list[tuple[str, str]]:
    """The severities and codes; a verdict names its code at its end."""
    heads = [("advice" if severity == "hint" else severity, code) for severity, code in _HEAD.findall(text)]
    return [*heads, *(("error", code) for code in _OF_VERDICT.findall(text))]


@pytest.mark.usefixtures("sessions_here")
@pytest.mark.parametrize("verb", VERBS)
def test_one_document_and_a_code(run: Run, verb: str) -> None:
    """On the good sources, and on every third of the others, which take turns."""
    turn = list(VERBS).index(verb)
    for number, source in enumerate(INPUTS):
        if source.startswith("good.") or (number + turn) % 3 == 0:
            _one_document_and_a_code(run, verb, source)


def _one_document_and_a_code(run: Run, verb: str, source: str) -> None:
    argv = (verb.split(" ")[0], source, *VERBS[verb])
    code, out, err = run(*argv, "--format", "json")
    assert code in (0, 1, 2), (out, err)
    assert "Traceback" not in out + err
    found: list[tuple[str, str]] = []
    if out or code != 2:  # wrong usage prints none
        document = json.loads(out)
        assert (document["schema"], document["ok"]) == (1, code == 0)
        assert [str(error) for error in validator(document["command"]).iter_errors(document)] == []
        found = [(d["severity"], d["code"]) for d in document["diagnostics"]]
        assert not any(code[0] == "I" for _, code in found)
        assert ("error" in {severity for severity, _ in found}) is (code != 0)
    text_code, text_out, text_err = run(*argv)
    assert text_code == code
    assert "Traceback" not in text_out + text_err
    assert_plain(text_out + text_err, " ".join(argv))
    if found or code == 1:
        assert sorted(codes_in(text_out + text_err)) == sorted(found)
    if code == 1 and text_out.startswith(("different: ", "not comparable: ")):
        assert run(*argv, "-q")[1:] == (text_out.splitlines(keepends=True)[0], "")
    elif code == 1:
        quiet = _HEAD.findall(run(*argv, "-q")[2])
        assert sorted(quiet) == sorted(row for row in found if row[0] == "error")


@each_row(("source", "target"), zip(INPUTS, cycle(["directml", "onnx", "numpy"]), strict=False))
def test_formats_of_check_agree(run: Run, source: str, target: str) -> None:
    argv = ("check", source, "--target", target)
    code, out, _ = run(*argv, "--format", "json")
    found = [(d["severity"].replace("advice", "note"), d["code"]) for d in json.loads(out)["diagnostics"]]
    again, out, err = run(*argv, "--format", "sarif")
    results = json.loads(out)["runs"][0]["results"]
    assert (again, err, [(r["level"], r["ruleId"]) for r in results]) == (code, "", found)
    again, out, err = run(*argv, "--format", "github")
    lines = [re.match(r"::(\w+) .*title=(\w+)::", line) for line in out.splitlines()]
    rows = [(m[1].replace("notice", "note"), m[2]) for m in lines if m]
    assert (again, err, rows) == (code, "", found)
    assert len(lines) == len(rows)


def test_source_of_an_operator_without_a_table_is_null(run: Run) -> None:
    found = json.loads(run("check", "custom.onnx", "--format", "json")[1])
    (node,) = found["nodes"]
    assert (node["source"], node["findings"][0]["source"]) == (None, None)
    assert [d["notes"] for d in found["diagnostics"] if d["code"] == "W0602"] == [[]]


def test_warnings_have_no_errors(run: Run) -> None:
    found = json.loads(run("check", "cpu.dml", "--format", "json")[1])
    assert {group["severity"] for group in found["warnings"]} == {"warning"}
    found = json.loads(run("check", "cpu.dml", "--strict", "--format", "json")[1])
    assert {d["severity"] for d in found["diagnostics"]} == {"error"}
    assert found["warnings"] == []
    found = json.loads(run("verify", "good.onnx", "other.onnx", "--inputs", "1", "--format", "json")[1])
    assert [d["code"] for d in found["diagnostics"]] == ["E0562"]
    assert found["warnings"] == []


@pytest.mark.parametrize(
    ("a", "b"), [("noise.onnx", "good.onnx"), ("good.onnx", "missing.onnx"), ("types.dml", "good.onnx")]
)
def test_verdict_of_a_failure_is_not_comparable(a: str, b: str, run: Run) -> None:
    found = json.loads(run("verify", a, b, "--format", "json")[1])
    assert (found["ok"], found["verdict"]) == (False, "not comparable")
    assert found["diagnostics"]
