"""The language reference, held to its words: its program, and its error character for character."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from text_helpers import diagnostics, graph_of, in_model, types_of

from dmlc import text
from dmlc.diagnostics import DmlcError, Source, render

PROGRAM = """dml 1                                        # optional header: language version

dim batch   in 1..64                         # bounds are inclusive; undeclared dims are 1 or more
dim anchors in 8..8400

const scale: f32[]   = 0.125
const prior: f32[80] = load("prior.npy")     # .npy or .npz ("file.npz", "key"), relative to the .dml file

def centred(x, *, axes) {                    # reusable block, inlined
    return x - reduce_mean(x, axes=axes)
}

model detection_head(
    logits: f32[batch, anchors, 80],
    image:  f16[batch, 3, H, W],
) -> (
    cls:   u32[batch, anchors, 1],           # a written result type is checked; it may be left out
    peak:  u32[batch, 1, 1, 1],
    top_p: f32[batch, 5, 80],
    top_i: u32[batch, 5, 80],
    focus: f16[batch, 3, H, W],
    spread,
) {
    p = (logits + prior) * scale |> softmax(axes=[-1])            # x |> f(a) is f(x, a)
    cls  = argmax(p, axes=[2], ties=first)
    peak = argmax(image, axes=[1, 2, 3], axis_direction=decreasing)  # row-major index over C,H,W; last of equals
    top_p, top_i = top_k(p, k=5, axis=1, order=largest)           # 5 <= anchors is proved from the dim line
    focus = hardmax(image, axes=[2, 3])
    spread = sqrt(reduce_mean(centred(p, axes=[1, 2]) ** 2, axes=[1, 2]) + 1e-6)
    return cls, peak, top_p, top_i, focus, spread
}
"""

FORMATTED = """dml 1  # optional header: language version

dim batch in 1..64  # bounds are inclusive; undeclared dims are 1 or more
dim anchors in 8..8400

const scale: f32[] = 0.125
const prior: f32[80] = load("prior.npy")  # .npy or .npz ("file.npz", "key"), relative to the .dml file

def centred(x, *, axes) {  # reusable block, inlined
    return x - reduce_mean(x, axes=axes)
}

model detection_head(
    logits: f32[batch, anchors, 80],
    image: f16[batch, 3, H, W],
) -> (
    cls: u32[batch, anchors, 1],  # a written result type is checked; it may be left out
    peak: u32[batch, 1, 1, 1],
    top_p: f32[batch, 5, 80],
    top_i: u32[batch, 5, 80],
    focus: f16[batch, 3, H, W],
    spread,
) {
    p = (logits + prior) * scale |> softmax(axes=[-1])  # x |> f(a) is f(x, a)
    cls = argmax(p, axes=[2], ties=first)
    peak = argmax(image, axes=[1, 2, 3], axis_direction=decreasing)  # row-major index over C,H,W; last of equals
    top_p, top_i = top_k(p, k=5, axis=1, order=largest)  # 5 <= anchors is proved from the dim line
    focus = hardmax(image, axes=[2, 3])
    spread = sqrt(reduce_mean(centred(p, axes=[1, 2]) ** 2, axes=[1, 2]) + 1e-6)
    return cls, peak, top_p, top_i, focus, spread
}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    np.save(tmp_path / "prior.npy", np.zeros(80, np.float32))
    return tmp_path


def test_the_program(folder: Path) -> None:
    graph = graph_of(PROGRAM, folder)
    assert graph.name == "detection_head"
    assert [f"{value.name}: {value.type}" for value in graph.inputs] == [
        "logits: f32[batch, anchors, 80]",
        "image: f16[batch, 3, H, W]",
    ]
    assert [name for name, _ in graph.outputs] == ["cls", "peak", "top_p", "top_i", "focus", "spread"]
    assert str(graph.outputs[-1][1].type) == "f32[batch, 1, 1]"
    assert not graph.conditions, "5 <= anchors is proved from the dim line"


def test_what_is_not_proved_is_a_condition(folder: Path) -> None:
    graph = graph_of(PROGRAM.replace("dim anchors in 8..8400\n", ""), folder)
    assert [str(condition) for condition in graph.conditions] == ["5 <= anchors"]
    (span,) = graph.conditions.values()
    assert span is not None
    assert span.line == 26


def test_the_program_formatted() -> None:
    assert text.format_source(Source("head.dml", PROGRAM)) == FORMATTED


def test_the_error_of_the_page() -> None:
    lines = [""] * 32
    lines[14] = "model detection_head("
    lines[15] = "    logits: f32[batch, anchors, 80],"
    lines[16] = "    image:  f16[batch, 3, H, W],"
    lines[17] = ") -> (peak) {"
    lines[29] = "    peak = argmax(image, axes=[1, 2, 4])"
    lines[30] = "    return peak"
    lines[31] = "}"
    with pytest.raises(DmlcError) as error:
        text.load(Source("head.dml", "\n".join(lines)))
    (diagnostic,) = error.value.diagnostics
    assert (
        render(diagnostic)
        == """error[E0301]: axis 4 does not exist: image has 4 axes, 0 to 3
  --> head.dml:30:38
   |
17 |     image:  f16[batch, 3, H, W],
   |             ------------------- image has this type
30 |     peak = argmax(image, axes=[1, 2, 4])
   |                                      ^ no such axis
   = help: the last axis is 3, or -1; see: dmlc explain E0301
"""
    )


def test_places_within_calls() -> None:
    """Errors stand at the operand, keyword, value or element that is wrong."""
    for statement, column in {
        "y = argmax(x, axes=[0, 7])": 28,
        "y = argmax(x, axes=7)": 24,
        "y = argmax(x, axis=1)": 19,
        "y = argmax(x, ties=frist)": 24,
        "y = x + (n)": 13,
        "y = x * x + n": 17,
        "y = x |> argmax(axes=9)": 26,
        "y, _ = top_k(x, k=2, order=first)": 32,
        "y = top_k(x)": 9,
    }.items():
        (found,) = diagnostics(in_model(statement, "return x"))
        assert found.span is not None
        assert (found.span.line, found.span.column) == (2, column), statement


def test_carried_onnx_operators() -> None:
    assert types_of(in_model('y = onnx.Gelu(x, approximate="tanh")', "return y")) == ["f32[4, 3]"]
    assert types_of(in_model("y = onnx.Gelu(x, approximate=tanh)", "return y")) == ["f32[4, 3]"]
    assert types_of(in_model("y = onnx.Cast(x, to=f16)", "return y")) == ["f16[4, 3]"]
    assert types_of(in_model("y = onnx.Concat(x, x, axis=0)", "return y")) == ["f32[8, 3]"]
    assert types_of(in_model("y = onnx.Clip(x, none, 6)", "return y")) == ["f32[4, 3]"]
    assert types_of(in_model("y = x |> onnx.Relu()", "return y")) == ["f32[4, 3]"]
    two = in_model("a, b = onnx.TopK(x, k, axis=1)", "return b", inputs="x: f32[4, 3]")
    assert types_of("const k: i64[1] = [2]\n" + two) == ["i64[4, 2]"]
    assert types_of(in_model("y = onnx.com.microsoft.FastGelu(x)", "return y")) == ["f32[4, 3]"]


def test_an_onnx_attribute_may_be_a_const() -> None:
    program = "const p: i64[2] = [1, 0]\n" + in_model("y = onnx.Transpose(x, perm=p)", "return y")
    assert types_of(program) == ["f32[3, 4]"]


def test_errors_of_carried_operators_have_places() -> None:
    for statement, code, column in [
        ("y = onnx.Gellu(x)", "E0504", 9),
        ("y = onnx.Gelu(x, approximat=tanh)", "E0305", 22),
        ("y = onnx.Gelu(x, approximate=N)", "E0331", 34),
        ("y = onnx.Gelu(q)", "E0202", 19),
    ]:
        found = diagnostics(in_model(statement, "return x", inputs="x: f32[N]"))[0]
        assert found.span is not None
        assert (found.code.id, found.span.column) == (code, column), statement
