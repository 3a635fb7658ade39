"""``dmlc diff``: each kind of difference is found and named, and nothing else is."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, numpy_helper, parser

import dmlc
from dmlc.debugging import constants
from tests.command_line import Run
from tests.rows import each_row

HEAD = '<ir_version: 10, opset_import: ["": 21]>'
LAYER = f"""{HEAD} g (float[N, 8] x) => (float[N, 8] y) <float[8, 8] w, float[8] s, float[8] b> {{
    m = MatMul(x, w)
    n = LayerNormalization<axis = -1, epsilon = 0.00001>(m, s, b)
    r = Relu(n)
    y = Add(r, x)
}}"""
WEIGHTS = {"w": np.eye(8, dtype=np.float32), "s": np.ones(8, np.float32), "b": np.zeros(8, np.float32)}


def layer() -> ModelProto:
    model = parser.parse_model(LAYER)
    del model.graph.initializer[:]
    model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in WEIGHTS.items())
    return model


def node(model: ModelProto, operator: str) -> onnx.NodeProto:
    return next(found for found in model.graph.node if found.op_type == operator)


def rename_values(model: ModelProto) -> None:
    kept = {"x", "y", "", *WEIGHTS}
    for found in model.graph.node:
        for names in (found.input, found.output):
            names[:] = [name if name in kept else f"other_{name}" for name in names]


# --- equal


@each_row("change", ["nothing", "names", "node names", "Constant node", "default", "domain"])
def test_equal_models_are_equal(change: str) -> None:
    a, b = layer(), layer()
    if change == "names":
        rename_values(b)
    elif change == "node names":
        for number, found in enumerate(b.graph.node):
            found.name = f"n{number}"
    elif change == "Constant node":
        tensor = b.graph.initializer.pop(0)
        b.graph.node.insert(0, onnx.helper.make_node("Constant", [], [tensor.name], value=tensor))
    elif change == "default":
        del node(b, "LayerNormalization").attribute[:]
    elif change == "domain":
        node(b, "Relu").domain = "ai.onnx"
    found = dmlc.diff(a, b)
    assert found.equal, found.to_text()
    assert (found.renamed > 0) is (change == "names")


def test_default_of_another_opset_is_a_difference() -> None:
    """The axis of Softmax is 1 up to opset 12, then -1."""
    text = '<ir_version: 7, opset_import: ["": %d]> g (float[2, 3, 4] x) => (float[2, 3, 4] y) { y = Softmax%s(x) }'
    models = [parser.parse_model(text % pair) for pair in ((11, ""), (13, "<axis = 1>"), (13, ""))]
    assert "Softmax" not in changed(dmlc.diff(models[0], models[1]))
    assert "Softmax" in changed(dmlc.diff(models[1], models[2]))


# --- one difference each


def changed(found: dmlc.ModelDiff) -> str:
    """The lines that one of the two texts lacks."""
    return "\n".join(line for line in found.text[2:] if line[0] in "-+")


@pytest.mark.parametrize("place", [(0, 0), (3, 5), (7, 7)])
def test_changed_weight_is_measured(place: tuple[int, int]) -> None:
    a, b = layer(), layer()
    array = WEIGHTS["w"].copy()
    array[place] += np.float32(1e-2)
    b.graph.initializer[0].CopyFrom(numpy_helper.from_array(array, "w"))
    found = dmlc.diff(a, b)
    assert not found.text
    (change,) = found.initializers
    assert (change.name, change.status) == ("w", "changed")
    assert change.worst is not None
    assert (change.worst.index, change.worst.count, change.worst.size) == (place, 1, 64)
    assert change.worst.absolute == pytest.approx(1e-2, rel=1e-4)
    assert change.worst.scaled == pytest.approx(1e-2, rel=1e-4)


@each_row(
    ("dtype", "a", "b", "absolute"),
    [
        (np.float32, [1.0, np.inf], [1.0, 2.0], None),
        (np.float32, [np.nan, 1.0], [np.nan, 1.5], 0.5),
        (np.float16, [1.0, 2.0], [1.0, 4.0], 2.0),
        (np.float64, [0.0, 0.0], [0.0, 1e-300], 1e-300),
        (np.int64, [2**62, 1], [2**62 + 1, 1], 1.0),
        (np.int8, [-128, 0], [127, 0], 255.0),
        (np.uint8, [0, 1], [255, 1], 255.0),
        (np.bool_, [True, False], [True, True], None),
    ],
)
def test_worst_element_of_each_dtype(dtype: type, a: list[float], b: list[float], absolute: float | None) -> None:
    text = HEAD + " g (float[2] x) => (float[2] y) { y = Relu(x) }"
    models = [parser.parse_model(text) for _ in range(2)]
    for model, values in zip(models, (a, b), strict=True):
        model.graph.initializer.append(numpy_helper.from_array(np.array(values, dtype), "c"))
    (change,) = dmlc.diff(*models).initializers
    assert change.worst is not None
    assert change.worst.absolute == absolute
    assert change.worst.count == 1
    json.dumps(change.to_json())


def test_zero_of_another_sign_is_a_change_of_bits() -> None:
    a, b = layer(), layer()
    b.graph.initializer[2].CopyFrom(numpy_helper.from_array(-WEIGHTS["b"], "b"))
    (change,) = dmlc.diff(a, b).initializers
    assert change.worst is None
    assert "other bits of equal numbers" in str(change)


def test_weights_outside_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read in blocks; whole if they differ."""
    paths = []
    for number in range(2):
        model = layer()
        array = WEIGHTS["w"] + np.float32(number)
        model.graph.initializer[0].CopyFrom(numpy_helper.from_array(array, "w"))
        folder = tmp_path / str(number)
        folder.mkdir()
        onnx.save(model, folder / "m.onnx", save_as_external_data=True, size_threshold=0, location="w.bin")
        paths.append(folder / "m.onnx")
    with monkeypatch.context() as patched:
        patched.setattr(constants, "read_external", None)
        assert dmlc.diff(paths[0], paths[0]).equal
        assert dmlc.diff(paths[0], onnx.load(paths[0])).equal
    (change,) = dmlc.diff(*paths).initializers
    assert change.worst is not None
    assert change.worst.count == 64


def test_one_initializer_in_place_of_two_equal_ones_changes_no_operator() -> None:
    text = """<ir_version: 8, opset_import: ["": 17]> m (float[2] x) => (float[2] y) <float[2] b = {1, 2}%s>
    { a = Add(x, b) y = Mul(a, %s) }"""
    before, after = (parser.parse_model(text % part) for part in ((", float[2] c = {1, 2}", "c"), ("", "b")))
    found = dmlc.diff(before, after)
    assert not found.text
    assert [str(change) for change in found.initializers] == ["removed c: f32[2], as b"]
    assert found.headline() == "different: 1 initializer"


@each_row(("axis", "same"), [("<axis = 1>", True), ("", True), ("<axis = 0>", False), ("<axis = -2>", False)])
def test_axis_from_the_end_is_the_axis_it_counts_to(axis: str, same: bool) -> None:
    text = '<ir_version: 8, opset_import: ["": 17]> m (float[2, 3] x) => (float[2, 3] y) { y = Softmax %s (x) }'
    assert dmlc.diff(parser.parse_model(text % "<axis = -1>"), parser.parse_model(text % axis)).equal is same


def test_changed_attribute_shows_both_values() -> None:
    a, b = layer(), layer()
    node(b, "LayerNormalization").attribute[1].f = 1e-3
    found = dmlc.diff(a, b)
    lines = "-n = LayerNormalization(m, s, b)\n+n = LayerNormalization<epsilon=0.001>(m, s, b)"
    assert (changed(found), found.removed, found.added, found.initializers) == (lines, 1, 1, ())
    assert found.headline() == "different: 1 node removed, 1 node added"


@pytest.mark.parametrize("value", ["one\ntwo", [numpy_helper.from_array(np.ones(2, np.float32))]])
def test_an_attribute_of_any_type_is_one_line(value: Any) -> None:
    a, b = layer(), layer()
    node(b, "Relu").attribute.append(onnx.helper.make_attribute("own", value))
    removed, added = changed(dmlc.diff(a, b)).split("\n")
    assert (removed, added[:14], added[-3:]) == ("-r = Relu(n)", "+r = Relu<own=", "(n)")


def test_changed_operand() -> None:
    a, b = layer(), layer()
    node(b, "Add").input[0] = "n"
    assert changed(dmlc.diff(a, b)) == "-y = Add(r, x)\n+y = Add(n, x)"


def test_other_operator_of_a_renamed_model_is_one_line() -> None:
    a, b = layer(), layer()
    rename_values(b)
    node(b, "Relu").op_type = "Sigmoid"
    assert changed(dmlc.diff(a, b)) == "-r = Relu(n)\n+r = Sigmoid(n)"


def test_order_of_nodes_is_no_difference() -> None:
    text = HEAD + " g (float[2] x) => (float[2] y) {{ {} y = Add(a, b) }}"
    a, b = (parser.parse_model(text.format(nodes)) for nodes in ("a = Exp(x) b = Abs(x)", "b = Abs(x) a = Exp(x)"))
    assert dmlc.diff(a, b).equal


def test_removed_and_added_operators() -> None:
    a, b = layer(), layer()
    b.graph.node.remove(node(b, "Relu"))
    node(b, "Add").input[0] = "n"
    one, other = dmlc.diff(a, b), dmlc.diff(b, a)
    assert (one.removed, one.added) == (other.added, other.removed) == (2, 1)


def test_value_that_stands_for_another_keeps_apart_from_its_name() -> None:
    """B has a value of the name of A that is another one."""
    text = HEAD + " g (float[2] x) => (float[2] y) {{ {} }}"
    a = parser.parse_model(text.format("r = Relu(x) y = Exp(r)"))
    b = parser.parse_model(text.format("q = Relu(x) r = Neg(q) y = Exp(r)"))
    assert changed(dmlc.diff(a, b)) in (
        "-y = Exp(r)\n+r' = Neg(r)\n+y = Exp(r')",
        "-r = Relu(x)\n+q = Relu(x)\n+r = Neg(q)",
    )


def test_types_opset_and_metadata() -> None:
    a, b = layer(), layer()
    b.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "batch"
    b.opset_import[0].version = 22
    b.metadata_props.add(key="author", value="me")
    b.producer_name = "other"
    lines = set(changed(dmlc.diff(a, b)).split("\n"))
    assert lines == {
        *("-input x: f32[N, 8]", "+input x: f32[batch, 8]", "-opset ai.onnx: 21", "+opset ai.onnx: 22"),
        *("+producer_name: other", "+author: me"),
    }


def test_long_entries_are_cut_and_compared_whole() -> None:
    a, b = layer(), layer()
    for model, end in ((a, "1"), (b, "2")):
        model.doc_string = "x" * 200 + end
    assert changed(dmlc.diff(a, b)).count("doc_string: xxx") == 2
    assert dmlc.diff(a, a).equal


def test_graphs_inside_nodes_are_compared() -> None:
    text = (
        HEAD
        + """ g (bool c, float[2] x) => (float[2] y) {
        y = If (c) <then_branch = t () => (float[2] p) { p = Relu(x) },
                    else_branch = e () => (float[2] q) { q = LeakyRelu<alpha = %s>(x) }>
    }"""
    )
    a, b = parser.parse_model(text % "0.1"), parser.parse_model(text % "0.2")
    assert dmlc.diff(a, parser.parse_model(text % "0.1")).equal
    assert changed(dmlc.diff(a, b)) == "-    q = LeakyRelu<alpha=0.1>(x)\n+    q = LeakyRelu<alpha=0.2>(x)"


def test_functions_are_compared() -> None:
    text = """<ir_version: 10, opset_import: ["": 21, "f": 1]> g (float[2] x) => (float[2] y) { y = f.half(x) }
    <domain: "f", opset_import: ["": 21]> half (x) => (y) { c = Constant<value = float {%s}>() y = Mul(x, c) }"""
    found = dmlc.diff(parser.parse_model(text % "0.5"), parser.parse_model(text % "0.25"))
    assert not found.text
    assert found.initializers[0].name == "f.half/c"


# --- what compilation did


def test_compiled_model_names_the_rules() -> None:
    text = (
        HEAD
        + """ g (float[4, 8] x) => (float[4, 8] y) <int64[1] axes = {-1}, float[1] e = {0.00001}> {
        m = ReduceMean(x, axes)
        d = Sub(x, m)
        q = Mul(d, d)
        v = ReduceMean(q, axes)
        ve = Add(v, e)
        r = Sqrt(ve)
        y = Div(d, r)
    }"""
    )
    model = parser.parse_model(text)
    for number, found in enumerate(model.graph.node):
        found.name = f"n{number}"
    compiled = dmlc.compile(model, target="directml").to_onnx()
    for found, made in ((dmlc.diff(model, compiled), "+"), (dmlc.diff(compiled, model), "-")):
        nodes = [line for line in changed(found).split("\n") if " = " in line]
        assert len(nodes) >= 4
        assert all(line.endswith("(reassociates)") for line in nodes)
        assert any(line[0] == made and "LayerNormalization" in line for line in nodes)


# --- the command


PROGRAM = "model m(x: f32[N, 3]) -> (y) {\n    return reduce_sum(x, axes=[1])\n}\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_line: Run) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("a.dml").write_text(PROGRAM)
    Path("b.dml").write_text(PROGRAM.replace("reduce_sum", "reduce_max"))
    Path("layout.dml").write_text("# a note\n" + PROGRAM.replace("    return", "  return"))
    onnx.save(layer(), "a.onnx")
    changed = layer()
    node(changed, "LayerNormalization").attribute[1].f = 1e-3
    onnx.save(changed, "b.onnx")

    return partial(command_line, "diff")


@each_row(
    ("a", "b", "code"),
    [
        ("a.dml", "a.dml", 0),
        ("a.dml", "layout.dml", 0),
        ("a.dml", "b.dml", 1),
        ("a.onnx", "a.onnx", 0),
        ("a.onnx", "b.onnx", 1),
        ("a.dml", "a.onnx", 1),
        ("a.onnx", "a.dml", 1),
        ("a.dml", "none.dml", 2),
        ("a.npz", "a.dml", 2),
        ("-", "-", 2),
    ],
)
def test_exit_code(run: Run, a: str, b: str, code: int) -> None:
    assert run(a, b)[0] == code


def test_document(run: Run) -> None:
    code, out, _ = run("a.onnx", "b.onnx", "--format", "json")
    document = json.loads(out)
    assert (code, document["schema"], document["ok"], document["equal"]) == (1, 1, False, False)
    assert (document["removed"], document["added"], document["initializers"]) == (1, 1, [])
    assert document["text"][:2] == ["--- a.onnx", "+++ b.onnx"]
    assert [d["code"] for d in document["diagnostics"]] == ["E0564"]
    assert json.loads(run("a.onnx", "a.onnx", "--format", "json")[1])["diagnostics"] == []


def test_programs_are_compared_as_they_are_written(run: Run) -> None:
    out = run("a.dml", "b.dml")[1]
    assert "--- a.dml\n+++ b.dml\n" in out
    assert [line[:14] for line in out.splitlines()[3:] if line[0] in "-+"] == ["-y = ReduceSum", "+y = ReduceMax"]
    assert out.startswith("different: ")
    models = run("a.onnx", "b.onnx")[1]
    assert "+++ b.onnx" in models
    assert "0.001" in models
    assert run("a.dml", "layout.dml")[1] == "equal\n"


def _renamed(model: onnx.ModelProto) -> onnx.ModelProto:
    out = onnx.ModelProto.FromString(model.SerializeToString())
    results = {info.name for info in out.graph.output}
    names = {name: f"v.{name}" for node in out.graph.node for name in node.output if name not in results}
    for number, node in enumerate(out.graph.node):
        node.name = f"node {number}"
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    return out


@each_row("old", ["Exp", "Softmax", "Neg", "Abs", "Sqrt"])
@each_row("new", ["Identity", None])
def test_one_change_of_a_renamed_model_is_one_change(old: str, new: str | None) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[3, 4] x) => (float[3, 4] y, float[3, 4] z) {'
        "e = Exp(x) a = Abs(x) s = Softmax <axis = 1> (e) b = Add(s, a) n = Neg(b) q = Sqrt(n) "
        "y = Mul(q, b) z = Sin(q) }"
    )
    other = _renamed(model)
    assert dmlc.diff(model, other).equal
    broken = next(node for node in other.graph.node if node.op_type == old)
    if new is None:
        broken.op_type = "Softmax" if old == "Softmax" else "Cos"
        del broken.attribute[:]
        broken.attribute.extend([onnx.helper.make_attribute("axis", 0)] if old == "Softmax" else [])
    else:
        broken.op_type = new
        del broken.attribute[:]
    found = dmlc.diff(model, other)
    assert not found.equal
    assert (found.removed, found.added) == (1, 1), found.to_text()


def test_files_without_a_model_are_not_equal(command_line: Run, tmp_path: Path) -> None:
    for name in ("a.onnx", "b.onnx"):
        (tmp_path / name).write_bytes(b"")
    for words in (("diff",), ("verify",), ("bisect", "--against")):
        code, out, err = command_line(words[0], tmp_path / "a.onnx", *words[1:], tmp_path / "b.onnx")
        assert (code, out, "error[E0430]: the model has no graph" in err) == (1, "", True), words
