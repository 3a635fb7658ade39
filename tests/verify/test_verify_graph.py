"""Programs: the meaning by the references against what they were compiled to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kernel_faults import is_fault_of_layer_norm
from model_pairs import verify_graph

import dmlc
from dmlc.diagnostics import Source
from dmlc.ir import Graph
from dmlc.text import load
from tests.rows import each_row

pytestmark = pytest.mark.usefixtures("sessions_here")

PROGRAMS = {
    "selections": """
dim N in 2..64
model m(x: f32[N, 4], h: f16[2, 3, 4]) -> (a, b, v, i, o) {
    a = argmax(x, axes=[1], ties=last)
    b = argmin(x, axes=[0, 1])
    v, i = top_k(x, k=3, axis=1)
    o = hardmax(h, axes=[1, 2])
    return a, b, v, i, o
}
""",
    "reductions": """
dim N in 0..8
model m(x: f32[N, 4, 3], i: i32[4, 5]) -> (a, b, c, d, e) {
    a = reduce_sum(reduce_sum(x, axes=[0]), axes=[1])
    b = reduce_max(x, axes=[1, 2])
    c = reduce_mean(i, axes=[0])
    d = reduce_sum(i, axes=[1])
    e = reduce_log_sum_exp(x, axes=[2])
    return a, b, c, d, e
}
""",
    "normalizations": """
model m(x: f32[3, 8], s: f32[8]) -> (a, b, c, d) {
    a = softmax(x, axes=[0, 1])
    b = layer_norm(x, s, s)
    c = rms_norm(x, s)
    d = log_softmax(x)
    return a, b, c, d
}
""",
    "elements": """
model m(x: f32[3, 4], i: i32[4], u: u8[4], k: u32[3], t: bool[4]) -> (a, b, c, d, e, f) {
    a = where(t, x, 0 - x) |> clip(min=-1, max=2)
    b = onnx.Div(i, i * 2 + 1)
    c = u - 200
    d = gather(x, k, axis=1)
    e = round(x) as i32
    f = i // 3 + i % 4
    return a, b, c, d, e, f
}
""",
}


def graph_of(text: str) -> Graph:
    return load(Source("m.dml", text))


@pytest.mark.parametrize("target", ["directml", "onnx"])
@pytest.mark.parametrize("case", PROGRAMS)
def test_what_is_compiled_is_what_is_meant(case: str, target: str) -> None:
    program = dmlc.compile(Source("m.dml", PROGRAMS[case]), target=target)
    verdict = verify_graph(graph_of(PROGRAMS[case]), program.to_onnx(), inputs=16)
    assert verdict.ok or is_fault_of_layer_norm(verdict, "b"), verdict.to_text()
    assert verdict.ran == 16


@pytest.mark.parametrize("case", PROGRAMS)
def test_generated_code_runs_too(case: str) -> None:
    program = dmlc.compile(Source("m.dml", PROGRAMS[case]), target="numpy")
    verdict = verify_graph(graph_of(PROGRAMS[case]), lambda feeds: program.run(feeds, backend="numpy"))
    assert verdict.ok, verdict.to_text()


@pytest.mark.parametrize(
    ("old", "new", "output"),
    [
        ("ties=last", "ties=first", "a"),
        ("argmin(x, axes=[0, 1])", "argmax(x, axes=[0, 1])", "b"),
        ("k=3, axis=1)", "k=3, axis=1, order=smallest)", "v"),
        ("hardmax(h, axes=[1, 2])", "hardmax(h, axes=[2])", "o"),
    ],
)
def test_what_means_something_else_is_found(old: str, new: str, output: str) -> None:
    text = PROGRAMS["selections"]
    wrong = dmlc.compile(Source("m.dml", text.replace(old, new)), target="onnx").to_onnx()
    verdict = verify_graph(graph_of(text), wrong, inputs=6)
    assert verdict.status == "different"
    assert {o.name for o in verdict.outputs if o.status == "different"} & {output}


def test_code_that_fails_or_lies() -> None:
    graph = graph_of("model m(x: f32[3]) -> (y) {\n    return x + 1\n}\n")

    def fails(feeds: dict[str, Any]) -> dict[str, Any]:
        raise RuntimeError("no")

    verdict = verify_graph(graph, fails, inputs=3)
    assert verdict.status == "different"
    assert "RuntimeError: no" in verdict.reason
    assert verify_graph(graph, lambda feeds: {"y": feeds["x"] + np.float32(1)}).status == "equal"
    assert verify_graph(graph, lambda feeds: {"y": feeds["x"]}).status == "different"


_SIGMOID = "tanh((%s) * 0.5) * 0.5 + 0.5"
#: Operations that kernels compute in ways of their own: dtype, the program, some of the ways, and the reason that the
#: verdict gives for one of them at least. The ways are programs, so that no processor's kernel decides what is tested.
OWN_WAYS: dict[str, tuple[str, str, tuple[str, ...], str]] = {
    "sign of NaN": (
        "f16",
        "sign(x)",
        ("where(x == x, sign(x), 0)", "where(x == x, sign(x), x)"),
        "a NaN reaches sign in both models",
    ),
    "zeros of relu": (
        "f32",
        "10 / relu(x)",
        ("10 / abs(relu(x))", "10 / ((0 - relu(x)) * -1)"),
        "a zero of another sign is divided by",
    ),
    "zeros of max": (
        "f64",
        "1 / max(x, 0)",
        ("1 / abs(max(x, 0))", "1 / ((0 - max(x, 0)) * -1)"),
        "a zero of another sign is divided by",
    ),
    "zeros of reduce_max": (
        "f32",
        "reciprocal(reduce_max(x, axes=[0]))",
        ("reciprocal(reduce_max(x, axes=[0]) + 0)", "reciprocal((0 - reduce_max(x, axes=[0])) * -1)"),
        "a zero of another sign is divided by",
    ),
    "root of -infinity": (
        "f32",
        "x ** 0.5",
        ("sqrt(x)", "where(x * 0.5 == x, sqrt(abs(x)), sqrt(x))"),
        "-infinity is raised to 0.5",
    ),
    "small sigmoid": ("f32", "sigmoid(x - 64)", (_SIGMOID % "x - 64",), "the original moves as far"),
    "small sigmoid of integers": (
        "i32",
        "sigmoid(x as f32 - 64)",
        (_SIGMOID % "x as f32 - 64",),
        "the original moves as far",
    ),
    "logarithm of sigmoids near 0 and 1": (
        "f32",
        "log(sigmoid(x))",
        (f"log({_SIGMOID % 'x'})",),
        "the original moves as far",
    ),
    "f16 kept in f32, then cast": ("f16", "tanh(x) as f64", ("tanh(x as f32) as f64",), ""),
    "f32, then cast": ("f32", "tanh(x) as f64", ("(tanh(x) * 1.000001) as f64",), ""),
    "f16 kept in f32, then searched": (
        "f16",
        "argmin(tanh(x), axes=[1])",
        ("argmin(tanh(x as f32), axes=[1])",),
        "the original moves as far",
    ),
    "searched where it saturates": (
        "f32",
        "argmax(sigmoid(x), axes=[1])",
        (f"argmax({_SIGMOID % 'x'}, axes=[1])",),
        "the original moves as far",
    ),
    "logarithm of what is not a normal number": (
        "f32",
        "log(softmax(x, axes=[1]))",
        (
            "log(where(softmax(x, axes=[1]) < 1.1754944e-38, 0, softmax(x, axes=[1])))",  # subnormals are 0
            "log_softmax(x, axes=[1])",  # they are kept
        ),
        "an inner value of the original underflows",
    ),
    "f16 squares kept in f32": ("f16", "sqrt(x * x + x * x)", ("sqrt(2 * (x as f32) * (x as f32)) as f16",), ""),
}
_ONE_INPUT = "model m(x: {dtype}[N, M]) -> (y) {{\n    return {body}\n}}\n"


@pytest.mark.parametrize("case", OWN_WAYS)
def test_kernels_of_this_machine(case: str) -> None:
    dtype, body, _, _ = OWN_WAYS[case]
    verdict = dmlc.compile(Source("m.dml", _ONE_INPUT.format(dtype=dtype, body=body))).verify(18)
    assert verdict.ok, verdict.to_text()


@pytest.mark.parametrize("case", OWN_WAYS)
def test_kernels_with_ways_of_their_own(case: str) -> None:
    dtype, body, ways, reason = OWN_WAYS[case]
    graph = graph_of(_ONE_INPUT.format(dtype=dtype, body=body))
    texts = []
    for way in ways:
        made = dmlc.compile(Source("m.dml", _ONE_INPUT.format(dtype=dtype, body=way)), target="onnx", only_rules=())
        verdict = verify_graph(graph, made.to_onnx(), inputs=24)
        assert verdict.ok, f"{way}: {verdict.to_text()}"
        texts.append(verdict.to_text())
    assert any(reason in text for text in texts), texts


@each_row(
    ("dtype", "meant", "made"),
    [
        ("f32", "sigmoid(x)", "clip(x * 0.25 + 0.5, min=0, max=1)"),
        ("f16", "argmax(sigmoid(x), axes=[1])", "argmin(x, axes=[1])"),
        ("f16", "argmin(x, axes=[1])", "argmin(x, axes=[1], ties=last)"),
        ("f32", "argmax(sigmoid(x), axes=[1])", "argmax(x, axes=[1])"),
        ("f32", "1 / x", "1 / abs(x)"),
        ("f32", "x ** 0.5", "sqrt(abs(x))"),
        ("f32", "x * 3", "((x as f16) * 3) as f32"),
        ("f64", "x * 3", "((x as f32) * 3) as f64"),
    ],
)
def test_their_ways_excuse_nothing_else(dtype: str, meant: str, made: str) -> None:
    text = f"model m(x: {dtype}[N, M]) -> (y) {{\n    return %s\n}}\n"
    result = dmlc.compile(Source("m.dml", text % made), target="onnx").to_onnx()
    assert verify_graph(graph_of(text % meant), result, inputs=12).status == "different"


def test_indices_from_the_end() -> None:
    text = "model m(x: f32[5, 3], i: i32[N]) -> (y) {\n    return gather(x, %s)\n}\n"
    for index in ("i", "i as i64", "unsqueeze(i, axes=[1])"):
        assert dmlc.compile(Source("m.dml", text % index)).verify(24).status == "equal"
    wrong = dmlc.compile(Source("m.dml", text % "max(i, 0)"), target="onnx").to_onnx()
    assert verify_graph(graph_of(text % "i"), wrong, inputs=24).status == "different"
    # -1 would be far out of range behind this cast
    assert dmlc.compile(Source("m.dml", text % "i as u32")).verify(24).status == "equal"


def test_operators_without_a_reference() -> None:
    noise = graph_of("model m(x: f32[3]) -> (y) {\n    return onnx.RandomUniformLike(x)\n}\n")
    verdict = verify_graph(noise, lambda feeds: {})
    assert verdict.status == "not verified"
    assert "has no reference" in verdict.reason
    carried = PROGRAM = "model m(x: f32[3]) -> (y) {\n    return onnx.ThresholdedRelu(x)\n}\n"
    assert verify_graph(graph_of(carried), dmlc.compile(Source("m.dml", PROGRAM)).to_onnx()).ok


def test_the_verb(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from dmlc.cli.main import main

    monkeypatch.chdir(tmp_path)
    Path("head.dml").write_text(PROGRAMS["selections"])
    Path("other.dml").write_text(PROGRAMS["selections"].replace("ties=last", "ties=first"))
    assert main(["compile", "head.dml", "-q"]) == 0
    assert main(["verify", "head.dml", "head.onnx", "--inputs", "8"]) == 0
    assert "same on 8 inputs: " in capsys.readouterr().out
    assert main(["verify", "head.onnx", "other.dml", "--seed", "3", "--inputs", "3"]) == 1
    assert "different: a on" in capsys.readouterr().out
    assert main(["verify", "head.onnx", "other.dml", "--format", "json", "--inputs", "2"]) == 1
    assert '"status": "different"' in capsys.readouterr().out
    assert main(["verify", "head.onnx", "head.onnx", "--exact", "-q"]) == 0
    assert capsys.readouterr().out.startswith("same on 24 inputs: ")
    assert main(["verify", "none.onnx", "head.onnx"]) == 2
    assert main(["verify", "head.dml", "head.onnx", "--inputs", "0"]) == 2
    assert main(["verify", "head.dml", "head.onnx", "--seed", "-1"]) == 2
    assert main(["verify", "head.dml", "head.onnx", "--allow", "fast"]) == 2
    assert main(["verify", "head.dml", "-"]) == 2
    Path("broken.onnx").write_bytes(b"\xffno model")
    assert main(["verify", "broken.onnx", "head.onnx"]) == 1
    assert "E0430" in capsys.readouterr().err
