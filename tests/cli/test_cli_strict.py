"""One rule for exit code 1, in every verb and format: there is a diagnostic of severity ``error``."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from onnx import parser

import dmlc
from dmlc.diagnostics import CODES, Code, Diagnostic, judged, refuses
from dmlc.diagnostics.code import declare
from tests.command_line import Run
from tests.rows import each_row

SHAPES = """
<ir_version: 8, opset_import: ["": 17]>
g (float[N, 4] x) => (float[M, 2] y) <int64[1] two = {2}, int64[1] zero = {0}> {
    s = Shape(x)  n = Gather(s, zero)  m = Mul(n, two)  t = Concat<axis = 0>(m, two)
    e = Exp(x)  y = Reshape(e, t)
}
"""
CUSTOM = '<ir_version: 8, opset_import: ["": 17, "acme": 1]> g (float[4] x) => (float[4] y) { y = acme.Warp(x) }'
MEAN = """
<ir_version: 8, opset_import: ["": 18]>
g (int32[2, 3] x) => (int32[1, 1] y) { y = ReduceMean(x) }
"""
FINE = "model m(x: f32[3]) -> (y) {\n    return exp(x)\n}\n"
#: Sources by name, with the codes that are found at each.
SOURCES = {
    "fine.dml": (FINE, []),
    "wide.dml": ("model m(x: f64[3]) -> (y) {\n    return exp(x) * 2.0\n}\n", ["W0601"]),
    "half.dml": ("model m(x: f16[2, 64]) -> (y) {\n    return reduce_mean(x * x, axes=[1])\n}\n", ["W0604"]),
    "open.dml": ("dim N in 0..8\nmodel m(x: f32[N, 4]) -> (y) {\n    return reduce_sum(x, axes=[0])\n}\n", ["W0605"]),
    "both.dml": (
        "dim N in 0..8\nmodel m(x: f32[N, 4], z: f64[2]) -> (y, u) {\n    return reduce_sum(x, axes=[0]), exp(z)\n}\n",
        ["W0601", "W0605"],
    ),
    "shapes.onnx": (SHAPES, []),
    "custom.onnx": (CUSTOM, ["W0602"]),
}
VERBS = {
    "check": (),
    "compile": ("--dry-run",),
    "explain": (),
    "inspect": (),
    "run": ("--random", "1", "--backend", "cpu"),
    "bench": ("--random", "1", "--provider", "cpu", "--rounds", "1"),
}


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_line: Run) -> Run:
    monkeypatch.chdir(tmp_path)
    for name, (text, _) in SOURCES.items():
        save(name, text)
    save("mean.onnx", MEAN)
    return command_line


def save(name: str, text: str) -> None:
    if name.endswith(".onnx"):
        onnx.save(parser.parse_model(text), name)
    else:
        Path(name).write_text(text)


def levels_of(form: str, out: str, err: str) -> list[tuple[str, str]]:
    """(code, severity) of each diagnostic that was printed, in the words of text and JSON."""
    if form == "json":
        return [(d["code"], d["severity"]) for d in json.loads(out)["diagnostics"]]
    if form == "sarif":
        return [(r["ruleId"], r["level"]) for r in json.loads(out)["runs"][0]["results"]]
    if form == "github":
        lines = [line.removeprefix("::").split("::")[0] for line in out.splitlines()]
        return [(line.rpartition("title=")[2], line.split(" ")[0]) for line in lines]
    heads = [line.split("]")[0].split("[") for line in err.splitlines() if line.startswith(("error[", "warning["))]
    return [(code, severity) for severity, code in heads]


@each_row("form", ["text", "json", "sarif", "github"])
@each_row("source", SOURCES)
def test_check_exits_1_exactly_where_it_prints_an_error(run: Run, source: str, form: str) -> None:
    codes = SOURCES[source][1]
    code, out, err = run("check", source, "--format", form)
    assert code == 0
    assert sorted(set(levels_of(form, out, err))) == [(c, "warning") for c in codes]
    code, out, err = run("check", source, "--strict", "--format", form)
    assert code == (1 if codes else 0)
    assert sorted(set(levels_of(form, out, err))) == [(c, "error") for c in codes]


@each_row("form", ["text", "json"])
@each_row("verb", VERBS)
@each_row("source", SOURCES)
def test_every_verb_has_the_verdict_of_check(run: Run, source: str, verb: str, form: str) -> None:
    if source.endswith(".onnx") and verb == "inspect":  # reads the file alone
        return
    codes = SOURCES[source][1]
    code, out, err = run(verb, source, *VERBS[verb], "--strict", "--format", form)
    assert (code, sorted(set(levels_of(form, out, err)))) == (1 if codes else 0, [(c, "error") for c in codes])


@each_row("source", SOURCES)
def test_the_python_api_has_the_verdict_of_check(run: Run, source: str) -> None:
    codes = SOURCES[source][1]
    assert {d.severity for d in dmlc.compile(source).diagnostics} == ({"warning"} if codes else set())
    try:
        dmlc.compile(source, strict=True)
        found: list[tuple[str, str]] = []
    except dmlc.DmlcError as error:
        found = sorted({(d.code.id, d.severity) for d in error.diagnostics})
        assert str(error).startswith("error[W06")
    assert found == [(c, "error") for c in codes]


@pytest.mark.parametrize("form", ["text", "json", "sarif", "github"])
def test_errors_are_printed_without_strict_and_quietly(run: Run, form: str) -> None:
    for more in ([], ["--strict"], ["-q"]):
        code, out, err = run("check", "mean.onnx", "--format", form, *more)
        assert (code, levels_of(form, out, err)) == (1, [("E0591", "error")])
    code, out, err = run("check", "wide.dml", "--strict", "-q", "--format", form)
    assert (code, set(levels_of(form, out, err))) == (1, {("W0601", "error")})
    assert run("check", "wide.dml", "-q")[2] == ""


@each_row("target", ["cpu", "onnx", "numpy"])
@each_row("form", ["text", "json", "sarif", "github"])
def test_targets_without_a_report_have_every_format(run: Run, target: str, form: str) -> None:
    code, out, err = run("check", "fine.dml", "--target", target, "--format", form, "--strict")
    assert (code, levels_of(form, out, err)) == (0, [])
    Path("bad.dml").write_text("model m(x: f32[3]) -> (y) {\n    return ex(x)\n}\n")
    code, out, err = run("check", "bad.dml", "--target", target, "--format", form)
    assert (code, levels_of(form, out, err)) == (1, [("E0203", "error")])


def test_a_model_that_compile_refuses_is_not_fine(run: Run) -> None:
    wide = ", ".join("2" for _ in range(9))
    text = f'<ir_version: 8, opset_import: ["": 17]> g (float[{wide}] x) => (float[{wide}] y) {{ y = Exp(x) }}'
    save("deep.onnx", text)
    for form in ("text", "json", "sarif", "github"):
        code, out, err = run("check", "deep.onnx", "--format", form)
        assert code == 1
        assert "error" in {severity for _, severity in levels_of(form, out, err)}


@pytest.fixture
def advice(monkeypatch: pytest.MonkeyPatch) -> Code:
    monkeypatch.setattr("dmlc.diagnostics.code.CODES", dict(CODES))
    return declare("W0699", "advice", "Why.", example="a", fixed="b", advice=True)


def test_advice_never_refuses(advice: Code) -> None:
    warning, error = CODES["W0601"], CODES["E0591"]
    found = [Diagnostic(code, "text") for code in (advice, warning, error)]
    assert [d.severity for d in judged(found, strict=False)] == ["error", "advice", "warning"]
    assert [d.severity for d in judged(found, strict=True)] == ["error", "error", "advice"]
    assert not refuses(judged(found[:2], strict=False))
    assert refuses(judged(found[:2], strict=True))
    assert not refuses(judged(found[:1], strict=True))


def test_advice_is_shown_in_every_format(advice: Code, run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = (Diagnostic(advice, "the name z is unused"),)
    monkeypatch.setattr("dmlc.api.program.Program.advice", property(lambda _: notes))
    monkeypatch.setitem(CODES, advice.id, advice)
    for strict in ([], ["--strict"]):
        found = json.loads(run("check", "fine.dml", "--format", "sarif", *strict)[1])
        assert [r["level"] for r in found["runs"][0]["results"]] == ["note"]
        assert run("check", "fine.dml", "--format", "github", *strict)[1].startswith("::notice file=fine.dml,")
        for verb, more in VERBS.items():
            code, out, _ = run(verb, "fine.dml", *more, "--format", "json", *strict)
            assert (code, [d["severity"] for d in json.loads(out)["diagnostics"]]) == (0, ["advice"])
            code, _, err = run(verb, "fine.dml", *more, *strict)
            assert (code, "hint[W0699]: the name z is unused" in err) == (0, True)
        assert dmlc.compile("fine.dml", strict=bool(strict)).diagnostics == (notes[0].in_file("fine.dml"),)


def test_advice_belongs_to_its_family() -> None:
    with pytest.raises(ValueError, match="W06"):
        declare("E0199", "t", "why", example="a", fixed="b", advice=True)
