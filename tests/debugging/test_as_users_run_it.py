"""``verify`` runs models with ONNX Runtime's default optimizations too, and names what only a look inside shows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import dmlc
from tests.command_line import Run

#: ONNX Runtime takes the power of four for a square, and makes a LayerNormalization of it.
POWER = """<ir_version: 8, opset_import: ["" : 17]> g (float[5, 8] x, float[8] w, float[8] b) => (float[5, 8] y)
<float four = {4}, float eps = {0.00001}> {
    m = ReduceMean<axes = [1]>(x)
    c = Sub(x, m)
    p = Pow(c, four)
    v = ReduceMean<axes = [1]>(p)
    a = Add(v, eps)
    r = Sqrt(a)
    d = Div(c, r)
    s = Mul(d, w)
    y = Add(s, b)
}"""
GATED = """<ir_version: 8, opset_import: ["" : 17]> g (float[4, 8] x) => (float[4, 8] y) {
    a = Abs(x)
    n = Neg(a)
    s = Mul(n, w)
    [bent] p = Elu<alpha = 1.0>(s)
    y = Max(p, low)
}"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_model_that_the_optimizer_changes_is_different_from_itself(command_line: Run) -> None:
    onnx.save(parser.parse_model(POWER), "a.onnx")
    code, out, _ = command_line("verify", "a.onnx", "a.onnx")
    assert code == 1
    assert out.startswith("different: y on ")
    assert "ONNX Runtime's own LayerNormFusion changes the numbers of B" in out
    assert "help: dmlc explain E0562" in out


def test_what_is_compiled_is_the_same_as_the_original_without_optimizations(command_line: Run) -> None:
    onnx.save(parser.parse_model(POWER), "a.onnx")
    assert command_line("compile", "a.onnx", "-o", "b.onnx", "--target", "onnx")[0] == 0
    code, out, _ = command_line("verify", "a.onnx", "b.onnx")
    assert code == 0
    assert out.startswith("same on 24 inputs: ")
    assert "note: the original gives other numbers in y with ONNX Runtime's default optimizations" in out


def bent(*, weight: float = 1.0, alpha: float = 1.0) -> onnx.ModelProto:
    model = parser.parse_model(GATED.replace("alpha = 1.0", f"alpha = {alpha}"))
    w, low = np.linspace(0.5, weight, 8, dtype=np.float32), np.full((1, 8), 2, np.float32)
    model.graph.initializer.extend([numpy_helper.from_array(w, "w"), numpy_helper.from_array(low, "low")])
    return model


def test_parts_that_no_input_reaches_are_named(command_line: Run) -> None:
    """A maximum with 2 hides what is at most 0."""
    onnx.save(bent(), "a.onnx")
    onnx.save(bent(weight=0.9), "weight.onnx")
    onnx.save(bent(alpha=0.5), "alpha.onnx")
    code, out, _ = command_line("verify", "a.onnx", "weight.onnx")
    assert (code, out.splitlines()[0]) == (0, "same on 24 inputs: every number is equal")
    assert "note: 1 weight differs: w, by up to 0.1; see: dmlc diff a.onnx weight.onnx" in out
    code, out, _ = command_line("verify", "a.onnx", "alpha.onnx")
    assert code == 0
    assert "note: 1 node has other attributes: bent (alpha 1.0 -> 0.5); see: dmlc diff a.onnx alpha.onnx" in out
    assert "note" not in command_line("verify", "a.onnx", "a.onnx")[1]


def test_parts_with_other_names_are_paired_by_position() -> None:
    """A weight and a node that exporters call otherwise each time."""
    other = bent(weight=0.9, alpha=0.5)
    weight, node = next(each for each in other.graph.initializer if each.name == "w"), other.graph.node[3]
    weight.name = other.graph.node[2].input[1] = "val_91"
    node.name = "node_7"
    notes = [note.partition(";")[0] for note in dmlc.verify(bent(), other, inputs=1).notes]
    assert notes == ["1 weight differs: w, by up to 0.1", "1 node has other attributes: bent (alpha 1.0 -> 0.5)"]


def test_operator_counts_that_differ_are_named(command_line: Run) -> None:
    onnx.save(bent(), "a.onnx")
    model = bent()
    model.graph.node.add(op_type="Neg", input=[model.graph.node[0].output[0]], output=["unused"])
    onnx.save(model, "more.onnx")
    out = command_line("verify", "a.onnx", "more.onnx")[1]
    assert "  note: operator counts differ: Neg 1 -> 2; see: dmlc diff a.onnx more.onnx\n" in out
    assert any("Neg 1 -> 2; see: dmlc.diff(a, b)" in note for note in dmlc.verify(bent(), model).notes)


def test_a_command_in_a_note_stays_on_one_line(command_line: Run) -> None:
    name = "a_model_with_a_name_that_is_longer_than_most_names_of_models.onnx"
    onnx.save(bent(), name)
    onnx.save(bent(weight=0.9), "weight.onnx")
    lines = command_line("verify", name, "weight.onnx")[1].splitlines()
    assert f"dmlc diff {name} weight.onnx" in [line.strip() for line in lines]


def test_the_fourth_turn_of_a_loop_counts() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (int64 n, float[4] x) => (float[4] y)
    <bool on = {1}, int64 last = {2}, float one = {1}, float other = {OTHER}> { y = Loop(n, on, x) <body = b
    (int64 i, bool k, float[4] v) => (bool k2, float[4] w)
    { k2 = Identity(k) late = Greater(i, last) s = Where(late, other, one) w = Add(v, s) }> }"""
    models = [parser.parse_model(text.replace("OTHER", other)) for other in ("1", "3")]
    assert dmlc.verify(*models, inputs=2).answer == "different"


def test_a_shape_that_differs_is_excused_by_no_nan() -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[3, 4] x) => (float[N] y) <int64[1] s = {12}> {'
    one = parser.parse_model(text.replace("float[N] y", "float[3, 4] y") + "y = Relu(x) }")
    other = parser.parse_model(text + "r = Relu(x) y = Reshape(r, s) }")
    assert dmlc.verify(one, other, inputs={"x": np.full((3, 4), np.nan, np.float32)}).answer == "different"


def test_what_a_compilation_changes_on_purpose_is_no_note(command_line: Run) -> None:
    onnx.save(bent(), "a.onnx")
    assert command_line("compile", "a.onnx", "-o", "b.onnx")[0] == 0
    out = command_line("verify", "a.onnx", "b.onnx")[1]
    assert "weight" not in out and "attributes" not in out
    assert "note" not in command_line("verify", "a.onnx")[1].replace("note: a.onnx was compared with", "")


def test_likeness_in_numbers() -> None:
    one, other = bent(), bent(weight=0.9)
    for model in (one, other):
        del model.graph.node[4:]
        model.graph.node[3].output[0] = "y"
    (found,) = dmlc.verify(one, other).to_json()["outputs"]
    assert 10 < found["signal_to_noise"] < 120
    assert 0.9 < found["cosine"] < 1
    (same,) = dmlc.verify(one, one).to_json()["outputs"]
    assert (same["signal_to_noise"], same["cosine"]) == (None, None)
