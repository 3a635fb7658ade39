"""ONNX operators through the builder: ``dmlc.onnx.Name(...)``."""

from __future__ import annotations

import numpy as np
import pytest

import dmlc

X = np.linspace(-3, 3, 24, dtype=np.float32).reshape(4, 6)


@pytest.fixture
def g() -> dmlc.Graph:
    return dmlc.Graph("g")


def test_an_operator_is_carried_through(g: dmlc.Graph) -> None:
    x = g.input("x", "f32", ("N", 6))
    y = dmlc.onnx.Gelu(x, approximate="tanh")
    assert y.dtype is dmlc.f32
    assert y.shape == x.shape
    g.output("y", y)
    program = dmlc.compile(g, target="cpu")
    assert [node.op_type for node in program.to_onnx().graph.node] == ["Gelu"]
    want = 0.5 * X * (1 + np.tanh(np.sqrt(2 / np.pi) * (X + 0.044715 * X**3)))
    np.testing.assert_allclose(program.run({"x": X})["y"], want, atol=1e-6)  # a few f32 units near 3


def test_several_results(g: dmlc.Graph) -> None:
    x = g.input("x", "f32", (4, 6))
    first, second = dmlc.onnx.Split(x, axis=1, num_outputs=2, outputs=2)
    assert (first.shape, second.shape) == ((4, 3), (4, 3))
    g.output("first", first + 1)
    g.output("second", second)
    out = dmlc.compile(g).run({"x": X})
    np.testing.assert_array_equal(out["first"], X[:, :3] + 1)
    np.testing.assert_array_equal(out["second"], X[:, 3:])


def test_absent_operands_and_arrays(g: dmlc.Graph) -> None:
    x = g.input("x", "f32", (4, 6))
    g.output("y", dmlc.onnx.Clip(x, None, np.array(1, np.float32)))
    np.testing.assert_array_equal(dmlc.compile(g).run({"x": X})["y"], np.minimum(X, 1))


def test_other_domains(g: dmlc.Graph) -> None:
    x = g.input("x", "f32", (4, 6))
    g.output("y", dmlc.onnx.com.microsoft.QuickGelu(x, alpha=1.5))
    (node,) = dmlc.compile(g).to_onnx().graph.node
    assert (node.domain, node.op_type) == ("com.microsoft", "QuickGelu")
    assert "com.microsoft" in repr(dmlc.onnx.com.microsoft)


def test_operators_of_constants_alone(g: dmlc.Graph) -> None:
    g.output("y", dmlc.onnx.Neg(dmlc.constant(np.arange(3, dtype=np.float32))) * g.input("x", "f32", 3))
    out = dmlc.compile(g).run({"x": np.ones(3, np.float32)})
    np.testing.assert_array_equal(out["y"], [0, -1, -2])


def test_mistakes_name_the_python_line(g: dmlc.Graph) -> None:
    x = g.input("x", "f32", (4, 6))
    for call in (
        lambda: dmlc.onnx.Gelyu(x),
        lambda: dmlc.onnx.Gelu(x, aproximate="tanh"),
        lambda: dmlc.onnx.Gelu(x, x),
        lambda: dmlc.onnx.MatMul(x, x),
    ):
        with pytest.raises(dmlc.DmlcError) as caught:
            call()
        span = caught.value.diagnostics[0].span
        assert span is not None
        assert span.source.name == __file__


def test_names_with_underscores_are_not_operators() -> None:
    with pytest.raises(AttributeError):
        dmlc.onnx._private  # noqa: B018


def test_operators_that_came_after_the_opset_of_the_target() -> None:
    g = dmlc.Graph("m")
    x = g.input("x", dtype="float32", shape=(1, 2, 3, 4))
    g.output("y", dmlc.onnx.Gelu(x))
    assert dmlc.compile(g, target="directml:ort-1.17").opset == 20
    g.output("z", dmlc.onnx.Attention(x, x, x))
    assert dmlc.compile(g, target="cpu").opset == 23
    with pytest.raises(dmlc.DmlcError, match=r"E0501.*Gelu.*leave out opset=: the lowest opset for it is 20"):
        dmlc.compile(g, target="directml:ort-1.17", opset=18)


def test_a_word_that_an_attribute_does_not_take(g: dmlc.Graph) -> None:
    """The nearest one is proposed; for one of a list in its place."""
    x = g.input("x", "f32", (1, 4, 4, 4))
    grid, weights = g.input("grid", "f32", (1, 2, 2, 2)), g.input("w", "f32", (1, 12, 4))
    with pytest.raises(dmlc.DmlcError, match=r'E0304.*mode of DepthToSpace must be DCR or CRD, not "dcr"') as caught:
        dmlc.onnx.DepthToSpace(x, blocksize=2, mode="dcr")
    assert str(caught.value.diagnostics[0].help) == 'did you mean "DCR"?'
    with pytest.raises(dmlc.DmlcError, match='must be linear, nearest or cubic, not "bilinear"'):
        dmlc.onnx.GridSample(x, grid, mode="bilinear")
    with pytest.raises(dmlc.DmlcError, match=r'E0304.*activations of GRU must be .* or Softplus, not "Sigmold"'):
        dmlc.onnx.GRU(x[0], weights, weights, hidden_size=4, activations=["tanh", "Sigmold"], outputs=2)


WORD = """
model m(x: f32[1, 4, 4, 4], g: f32[1, 2, 2, 2]) -> (y) {
    y = onnx.GridSample(x, g, mode=WORD)
    return y
}
"""


def test_a_word_of_another_opset() -> None:
    dmlc.compile(dmlc.Source(WORD.replace("WORD", "bilinear"), "m.dml"), opset=17)
    with pytest.raises(dmlc.DmlcError, match=r'E0501.*not "linear"; ONNX allows it from opset 20 on, not at 17'):
        dmlc.compile(dmlc.Source(WORD.replace("WORD", "linear"), "m.dml"), opset=17)
