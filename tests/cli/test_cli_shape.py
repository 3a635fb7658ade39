"""``--shape`` in every verb that compiles."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

from dmlc.cli.main import main
from tests.command_line import Run
from tests.rows import each_row

PROGRAM = """model m(x: f32[N, 3]) -> (y) {
    y = softmax(x, axes=[1])
    return y
}
"""
#: An input with a name for a size, one without, and one of open rank.
MODEL = """<ir_version: 8, opset_import: ["": 17]> g (float[N, 3] x, float[?, 2] v, float[] u)
=> (float[] y, float[] w, float[] z)
{ y = Softmax(x) w = Neg(v) z = Exp(u) }"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("m.dml").write_text(PROGRAM, encoding="utf-8")
    model = parser.parse_model(MODEL)
    model.graph.input[2].type.tensor_type.ClearField("shape")
    onnx.save(model, "m.onnx")
    return tmp_path


ALL = ["--shape", "x=2,3", "--shape", "v=4,2", "--shape", "u=5,6"]


def sizes(name: str) -> list[list[Any]]:
    graph = onnx.load(name).graph
    shapes = [info.type.tensor_type.shape for info in (*graph.input, *graph.output)]
    return [[d.dim_value for d in shape.dim] for shape in shapes]


def test_compile(folder: Path, command_line: Run) -> None:
    assert command_line("compile", "m.onnx", "-o", "out.onnx", *ALL)[0] == 0
    assert sizes("out.onnx") == [[2, 3], [4, 2], [5, 6]] * 2
    assert command_line("compile", "m.dml", "-o", "out.onnx", "--shape", "x=2,3")[0] == 0
    assert sizes("out.onnx") == [[2, 3], [2, 3]]


def test_every_size_of_one_input_may_come_from_several_options(folder: Path, command_line: Run) -> None:
    words = ["--shape", "x=2,_", "--shape", "x=_,3", "--bind", "N=2", "--shape", "u=", "--shape", "v= 4, 2"]
    assert command_line("compile", "m.onnx", "-o", "out.onnx", *words)[0] == 0
    assert sizes("out.onnx") == [[2, 3], [4, 2], []] * 2


@each_row("source", ["m.onnx", "m.dml"])
@each_row(
    "verb",
    [
        ["compile", "-o", "-"],
        ["check"],
        ["check", "--format", "json"],
        ["check", "--format", "sarif"],
        ["check", "--target", "cpu"],
        ["explain"],
        ["inspect"],
        ["run", "--random", "1"],
        ["run", "--random", "1", "--backend", "numpy"],
        ["bench", "--random", "1", "--rounds", "1", "--provider", "cpu"],
        ["compile", "-o", "out.dxdispatch.json"],
    ],
    ids=" ".join,
)
def test_every_verb_that_compiles(
    source: str, verb: list[str], folder: Path, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    shapes = ALL if source == "m.onnx" else ALL[:2]
    if source == "m.onnx" and "numpy" in verb:
        shapes = [*shapes, "-q"]
    assert main([verb[0], source, *verb[1:], *shapes]) == 0
    wrong = ["--shape", "x=2,4"]
    expected = 0 if [verb[0], source] == ["inspect", "m.onnx"] else 1  # it shows the file as it stands
    assert main([verb[0], source, *verb[1:], *wrong]) == expected


def test_check_places_the_model_with_the_shapes(folder: Path, command_line: Run) -> None:
    document = json.loads(command_line("check", "m.onnx", "--format", "json")[1])
    assert document["open_inputs"] == ["v", "u"]
    assert "--shape v=... --shape u=... fixes them" in command_line("check", "m.onnx", "-v")[1]
    fixed = json.loads(command_line("check", "m.onnx", *ALL, "--format", "json")[1])
    assert (fixed["open_inputs"], fixed["open_dims"]) == ([], [])
    assert fixed["partitions"] == 3


def test_the_fix_that_check_gives_keeps_the_shapes(folder: Path, command_line: Run) -> None:
    text = '<ir_version: 8, opset_import: ["": 18]> g (int32[?, 3] x) => (int32[] y) { y = ReduceMean (x) }'
    onnx.save(parser.parse_model(text), "mean.onnx")
    _, _, err = command_line("check", "mean.onnx", "--shape", "x=2,3")
    assert "--shape x=2,3" in err


def test_bench_fixes_the_shapes_that_are_fed(folder: Path, command_line: Run) -> None:
    np.savez("in.npz", x=np.zeros((2, 3), "f4"), v=np.zeros((4, 2), "f4"), u=np.zeros((5, 6), "f4"))
    feeds = [word for name in "xvu" for word in ("--input", f"{name}=in.npz:{name}")]
    code, out, _ = command_line("bench", "m.onnx", *feeds, "--rounds", "1", "--provider", "cpu")
    assert code == 0
    assert "shape: v=4,2" in out
    assert "shape: u=5,6" in out


def test_verify_feeds_the_shapes_that_the_result_has(folder: Path, command_line: Run) -> None:
    assert command_line("compile", "m.onnx", "-o", "out.onnx", *ALL)[0] == 0
    code, out, _ = command_line("verify", "m.onnx", "out.onnx")
    assert (code, out.startswith("same on 24 inputs: ")) == (0, True)


def test_dxdispatch_names_the_shapes_that_are_missing(folder: Path, command_line: Run) -> None:
    words = ["compile", "m.onnx", "-o", "out.dxdispatch.json"]
    assert "fix it: --shape u=..." in command_line(*words)[2]
    assert "fix them: --bind N=1 --shape v=1,2" in command_line(*words, "--shape", "u=1")[2]


@each_row("source", ["m.onnx", "m.dml"])
@each_row(
    ("words", "text"),
    [
        (["--shape", "x=2,4"], "x=2,4 gives axis 1 the size 4, and x has 3 there"),
        (["--shape", "x=2"], "x=2 has 1 size, and x has 2 axes: [N, 3]"),
        (["--shape", "x=2,3", "--bind", "N=4"], "N is 4 by N=4, and 2 by axis 0 of x=2,3"),
        (["--shape", "x=2,3", "--shape", "x=4,3"], "x is given two shapes: x=2,3 and x=4,3"),
        (["--shape", "q=2,3"], "the model has no input q"),
    ],
)
def test_contradictions_are_errors_of_the_program(
    words: list[str], text: str, source: str, folder: Path, command_line: Run
) -> None:
    code, _, err = command_line("check", source, *words)
    assert code == 1
    assert f"error[E0337]: {text}" in err
    assert "= help: " in err


@each_row("text", ["x", "=1,2", "x=1,,2", "x=1,-1", "x=1,N", "x=?,3", "x=1.5", "x=1_0", "x=٣", "x=[1,3]"])
def test_another_spelling_is_wrong_usage(text: str, folder: Path, command_line: Run) -> None:
    code, _, err = command_line("check", "m.dml", "--shape", text)
    assert code == 2
    assert "is not NAME=SIZE,SIZE,...; write _ for a size that stays open" in err


def test_sizes_beyond_any_model_are_wrong_usage(folder: Path, command_line: Run) -> None:
    assert command_line("check", "m.onnx", "--shape", f"x={2**63},3")[0] == 2


def test_check_names_what_keeps_a_model_from_being_one_fused_graph(folder: Path, command_line: Run) -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[2, 3] x, float[2, 3] v) => (float[] y, int64[] n)
    { a = Exp(x) b = Neg(a) n = NonZero(b) c = Neg(v) y = Add(c, x) }"""
    model = parser.parse_model(text)
    for info in model.graph.output:
        info.type.tensor_type.ClearField("shape")
    onnx.save(model, "alone.onnx")
    document = json.loads(command_line("check", "alone.onnx", "--format", "json")[1])
    assert document["obstacles"] == ["NonZero n: not fused: NonZero has no graph support"]
    out = command_line("check", "alone.onnx", "-v")[1]
    assert "not one fused graph: NonZero n: not fused: NonZero has no graph support\n" in out
    out = command_line("check", "m.onnx", "-v", *ALL)[1]
    assert "not one fused graph: 3 fused graphs that no value connects begin at Softmax y, Neg w, Exp z\n" in out
    assert "not one fused graph" not in command_line("check", "m.dml", "-v", "--shape", "x=2,3")[1]


def test_what_turns_fusion_off_is_named_and_not_all_that_it_keeps_apart(folder: Path, command_line: Run) -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[2, 3] x, bool c) => (float[2, 3] y)
    { a = Exp(x) b = If (c) <then_branch = t () => (float[2, 3] r) { r = Neg(a) },
    else_branch = e () => (float[2, 3] q) { q = Abs(a) }> y = Relu(b) }"""
    onnx.save(parser.parse_model(text), "if.onnx")
    document = json.loads(command_line("check", "if.onnx", "--format", "json")[1])
    assert document["obstacles"] == ["If b: it turns fusion off"]
