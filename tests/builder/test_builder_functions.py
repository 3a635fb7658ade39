"""``dmlc.function`` and ``dmlc.std``: models and defs as operations of the builder."""

from __future__ import annotations

import inspect
import pickle
import re
from pathlib import Path

import numpy as np
import onnx
import pytest

import dmlc
from dmlc.diagnostics import Diagnostic, DmlcError, Source
from dmlc.text.standard_library import std_blocks, std_page
from tests.rows import each_row

BACKBONE = """
<ir_version: 8, opset_import: ["" : 17]>
backbone (float[batch, 4] x, float shift) => (float[batch, 3] feat, float[batch, 1] top)
<float[4, 3] w = {1, 2, 3, 0, 1, 0, 2, 2, 1, -1, 0, 1}, float shift = {10}>
{
    m = MatMul(x, w)
    feat = Add(m, shift)
    top = ReduceMax<axes = [1], keepdims = 1>(feat)
}
"""
BLOCKS = """use cross_entropy from std
const scale: f32[] = 3
dim D in 1..4

# Scaled, and how many there are.
def scaled(x, *, by=2) {
    return x * scale * by, size(x)
}

def both(x, t) {
    return cross_entropy(x, t)
}

def broken(x) {
    return reshape(x, shape=[D])
}
"""
W = np.array([[1, 2, 3], [0, 1, 0], [2, 2, 1], [-1, 0, 1]], np.float32)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    onnx.save(onnx.parser.parse_model(BACKBONE), tmp_path / "backbone.onnx")
    (tmp_path / "blocks.dml").write_text(BLOCKS)
    return tmp_path


@each_row("kind", ["path", "text", "proto"])
@each_row("target", ["directml", "cpu", "onnx"])
def test_a_model_is_an_operation(folder: Path, kind: str, target: str) -> None:
    path = folder / "backbone.onnx"
    source = {"path": path, "text": str(path), "proto": onnx.load(path)}[kind]
    trunk = dmlc.function(source)
    g = dmlc.Graph("head")
    image = g.input("image", "f32", ("N", 4))
    feat, top = trunk(image)
    again, _ = trunk(x=image, shift=1)
    g.output("p", dmlc.softmax(feat - top, axes=-1))
    g.output("q", again)
    program = dmlc.compile(g, target=target)
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    found = program.run({"image": x}, backend="cpu")
    e = np.exp(x @ W - (x @ W).max(1, keepdims=True))
    np.testing.assert_allclose(found["p"], e / e.sum(1, keepdims=True), rtol=1e-5)
    np.testing.assert_allclose(found["q"], x @ W + 1, rtol=1e-6)
    names = {node.name.partition("/")[0] for node in program.to_onnx().graph.node}
    assert "backbone_2" in names
    assert pickle.loads(pickle.dumps(program)).to_bytes("onnx") == program.to_bytes("onnx")
    assert sum(tensor.dims == [4, 3] for tensor in program.to_onnx().graph.initializer) == 1


def test_the_same_as_the_program_in_text(folder: Path) -> None:
    head = 'use backbone from "backbone.onnx"\nmodel head(image: f32[N, 4]) -> (p) {\n'
    head += "    feat, top = backbone(image)\n    return feat / top\n}\n"
    trunk = dmlc.function(folder / "backbone.onnx")
    g = dmlc.Graph("head")
    feat, top = trunk(g.input("image", "f32", ("N", 4)))
    g.output("p", feat / top)
    written = dmlc.compile(Source(str(folder / "head.dml"), head)).to_onnx()
    nodes = [node.op_type for node in written.graph.node]
    assert [node.op_type for node in dmlc.compile(g).to_onnx().graph.node] == nodes


def test_sizes_inside_that_no_input_tells(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 17]>\nm (float[n] x) => (int64[1, k] y) { y = NonZero(x) }'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    g = dmlc.Graph("g")
    g.output("r", dmlc.function(tmp_path / "m.onnx")(g.input("x", "f32", ("N",))) * 2)
    found = dmlc.compile(g).run({"x": np.array([0, 1, 0, 1], np.float32)}, backend="cpu")["r"]
    np.testing.assert_array_equal(found, [[2, 6]])


@pytest.mark.parametrize("target", ["directml", "numpy"])
def test_a_def_is_an_operation(folder: Path, target: str) -> None:
    scaled = dmlc.function(folder / "blocks.dml", "scaled")
    assert scaled.__doc__ == "Scaled, and how many there are."
    assert str(inspect.signature(scaled)) == "(x, *, by=2)"
    g = dmlc.Graph("g")
    x, t = g.input("x", "f32", ("N", 4)), g.input("t", "i64", ("N",))
    y, _ = scaled(x, by=5) if target == "directml" else scaled(x=x, by=5)
    g.output("y", y)
    g.output("ce", dmlc.function(folder / "blocks.dml", "both")(x, t))
    program = dmlc.compile(g, target=target)
    feeds = {"x": np.eye(4, dtype=np.float32)[:2], "t": np.array([0, 3])}
    found = program.run(feeds, backend="numpy" if target == "numpy" else "cpu")
    np.testing.assert_allclose(found["y"], feeds["x"] * 15)
    want = np.log(np.exp(feeds["x"]).sum(1)) - feeds["x"][[0, 1], [0, 3]]
    np.testing.assert_allclose(found["ce"], want, rtol=1e-5)


def test_the_standard_library_in_python() -> None:
    assert dir(dmlc.std) == list(std_blocks())
    g = dmlc.Graph("g")
    x, t = g.input("x", "f32", ("N", 4)), g.input("t", "i64", ("N",))
    g.output("loss", dmlc.std.cross_entropy(x, t))
    g.output("hits", dmlc.std.top_k_accuracy(x, labels=t, k=2))
    g.output("spread", dmlc.std.variance(x, axes=(0, 1), keepdims=False))
    g.output("one", dmlc.std.huber_loss(x, 0.5, delta=2))
    text = "use cross_entropy, top_k_accuracy, variance, huber_loss from std\n"
    text += "model g(x: f32[N, 4], t: i64[N]) -> (loss, hits, spread, one) {\n    return cross_entropy(x, t), "
    text += "top_k_accuracy(x, t, k=2), variance(x, axes=[0, 1], keepdims=false), huber_loss(x, 0.5, delta=2)\n}\n"
    made, written = dmlc.compile(g).to_onnx(), dmlc.compile(Source("g.dml", text)).to_onnx()
    assert [node.op_type for node in made.graph.node] == [node.op_type for node in written.graph.node]
    with pytest.raises(AttributeError, match="nothing"):
        _ = dmlc.std.nothing


def test_constants_alone_are_operands_of_defs() -> None:
    g = dmlc.Graph("g")
    unit = dmlc.std.l2_normalize(dmlc.constant(np.array([3, 4], np.float32)))
    g.output("y", g.input("x", "f32", (2,)) * unit)
    found = dmlc.compile(g).run({"x": np.ones(2, np.float32)}, backend="cpu")["y"]
    np.testing.assert_allclose(found, [0.6, 0.8], rtol=1e-6)


def error_of(call: object) -> Diagnostic:
    with pytest.raises(DmlcError) as caught:
        call()  # type: ignore[operator]
    return caught.value.diagnostics[0]


def test_mistakes_name_the_python_line(folder: Path) -> None:
    trunk, scaled = dmlc.function(folder / "backbone.onnx"), dmlc.function(folder / "blocks.dml", "scaled")
    g = dmlc.Graph("g")
    x = g.input("x", "f32", ("N", 4))
    calls = {
        "E0308": [lambda: trunk(), lambda: trunk(x, x), lambda: scaled(x, x)],
        "E0305": [lambda: trunk(image=x), lambda: scaled(x, times=3)],
        "E0360": [lambda: trunk(x.astype("f16")), lambda: trunk(dmlc.concat(x, x, axis=1))],
        "E0335": [lambda: trunk(dmlc.constant(np.ones((2, 4), np.float32))), lambda: trunk([1, 2])],
        "E0306": [lambda: dmlc.std.variance(x)],
    }
    for code, wrong in calls.items():
        for call in wrong:
            found = error_of(call)
            assert found.code.id == code
            assert code in ("E0335",) or found.source_name == __file__
    inside = error_of(lambda: dmlc.std.variance(x, axes=7))
    assert inside.source_name == "std/variance.dml"
    assert inside.labels[-1].span.source.name == __file__
    of_integers = error_of(lambda: dmlc.std.variance(x.astype("i32"), axes=0))
    assert (of_integers.help, of_integers.fix) == ("dmlc ops --std variance shows what it takes", None)
    assert error_of(lambda: dmlc.function(folder / "blocks.dml", "broken")(x)).code.id == "E0214"


@each_row(
    ("file", "name", "code"),
    [
        ("blocks.dml", "scale", "E0212"),
        ("blocks.dml", "scalled", "E0212"),
        ("blocks.dml", None, "E0212"),
        ("nothing.dml", "scaled", "E0420"),
        ("wrong.dml", "scaled", "E0101"),
    ],
)
def test_wrong_files_and_names(folder: Path, file: str, name: str | None, code: str) -> None:
    (folder / "wrong.dml").write_text("def scaled(x) {\n    return x +\n}\n")
    assert error_of(lambda: dmlc.function(folder / file, name)).code.id == code


def test_files_are_told_by_content(folder: Path) -> None:
    (folder / "backbone.dml").write_bytes((folder / "backbone.onnx").read_bytes())
    g = dmlc.Graph("g")
    feat, _ = dmlc.function(folder / "backbone.dml", "trunk")(g.input("x", "f32", (2, 4)))
    g.output("y", feat)
    assert dmlc.compile(g).to_onnx().graph.node[0].name.startswith("trunk/")


def test_names_that_python_cannot_write_have_near_ones(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]>\nm (float[2] in, float[2] b, float[2] b_1) => (float[2] y) '
        "{ t = Sub(in, b)\n y = Mul(t, b_1) }"
    )
    model.graph.input[1].name = model.graph.node[0].input[1] = "b.1"
    add = dmlc.function(model)
    assert str(inspect.signature(add)) == "(in_, b_1_2, b_1)"
    g = dmlc.Graph("g")
    a, b, c = [g.input(name, "f32", (2,)) for name in "abc"]
    for number, y in enumerate([add(a, b, c), add(in_=a, b_1_2=b, b_1=c), add(**{"in": a, "b.1": b, "b_1": c})]):
        g.output(f"y{number}", y)
    assert error_of(lambda: add(a, c, in_=a, **{"in": b})).code.id.startswith("E03")
    found = dmlc.compile(g).run({"a": np.ones(2, "f4"), "b": np.full(2, 3, "f4"), "c": np.full(2, 5, "f4")}, "cpu")
    assert [array.tolist() for array in found.values()] == [[-10.0, -10.0]] * 3
    (tmp_path / "b.dml").write_text("def f(x, *, lambda=1) {\n    return x * lambda\n}\n")
    scaled = dmlc.function(tmp_path / "b.dml")
    assert str(inspect.signature(scaled)) == "(x, *, lambda_=1)"
    g = dmlc.Graph("g")
    g.output("y", scaled(g.input("x", "f32", (2,)), lambda_=4))
    assert dmlc.compile(g).run({"x": np.ones(2, np.float32)}, "cpu")["y"].tolist() == [4.0, 4.0]


def test_signatures_and_documentation_are_those_of_the_blocks() -> None:
    for name in dir(dmlc.std):
        block, page = getattr(dmlc.std, name), std_page(name)
        assert (block.__name__, block.__doc__) == (name, page.summary)
        written = f"{name}{inspect.signature(block)}".replace("=True", "=true").replace("=False", "=false")
        assert re.sub(r"1e-0(\d)", r"1e-\1", written) == page.signature
