"""The opset emitted for a target with a provider is the one that keeps most nodes there."""

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper, numpy_helper

import dmlc
from dmlc.api.opset_candidates import other_opsets
from dmlc.diagnostics import DmlcError, Source

SCATTER = """
model put(x: f32[4, 8], i: i64[4, 3], u: f32[4, 3]) -> (y) {
    y = relu(scatter_elements(x, i, u, axis=1))
    return y
}
"""


def program(text: str, **options: object) -> dmlc.Program:
    return dmlc.compile(Source("put.dml", text), **options)  # type: ignore[arg-type]


def reduction(op: str, opset: int, kind: int, *, axes_as_input: bool) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", kind, [4, 8])
    y = helper.make_tensor_value_info("y", kind, [4, 1])
    axes = [numpy_helper.from_array(np.array([1]), "axes")] if axes_as_input else []
    node = helper.make_node(op, ["x", *(a.name for a in axes)], ["y"], **({} if axes else {"axes": [1]}))
    graph = helper.make_graph([node], "g", [x], [y], axes)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def test_scatter_elements_keeps_its_kernel() -> None:
    found = program(SCATTER)
    assert found.opset == 17
    assert found.placement().count("cpu") == 0 and not found.diagnostics
    assert any("opset 17, not 21" in note for note in found.artifact("onnx").report)
    feeds = {
        "x": np.zeros((4, 8), np.float32),
        "i": np.tile(np.array([7, 0, 3]), (4, 1)),
        "u": np.arange(12, dtype=np.float32).reshape(4, 3),
    }
    assert np.array_equal(found.run(feeds, backend="cpu")["y"], found.run(feeds, backend="reference")["y"])


def test_a_gelu_that_may_not_be_fused_stays_where_no_optimizer_makes_one() -> None:
    """From opset 20 on GeluFusion makes ONNX's Gelu of it, which DirectML's provider lacks."""
    text = "model g(x: f32[4, 8]) -> (y) {\n    y = x * (1 + erf(x / 1.4142135)) * 0.5\n    return y\n}\n"
    found = program(text, exact=True)
    assert found.opset == 19 and found.placement().count("cpu") == 0
    assert program(text, exact=True, opset=21).placement().count("cpu") > 0


def test_an_opset_that_was_asked_for_stays() -> None:
    found = program(SCATTER, opset=21)
    assert found.opset == 21 and found.placement().count("cpu") == 1
    assert [d.code.id for d in found.diagnostics] == ["W0601"]


def test_strict_looks_at_the_chosen_opset() -> None:
    assert program(SCATTER, strict=True).opset == 17
    with pytest.raises(DmlcError) as caught:
        program(SCATTER, strict=True, opset=21)
    assert caught.value.diagnostics[0].code.id == "W0601"


@pytest.mark.parametrize("target", ["cpu", "onnx", "numpy"])
def test_targets_without_a_provider_keep_theirs(target: str) -> None:
    found = program(SCATTER, target=target)
    assert found.opset == found.target.opset
    assert other_opsets(found.graph, found.target, found.opset) == []


def test_an_older_release_has_its_own_ceiling() -> None:
    assert program(SCATTER, target="directml:ort-1.17").opset == 17


def test_nothing_is_tried_where_every_operator_has_its_kernel() -> None:
    found = program("model m(x: f16[N, 8]) -> (y) {\n    return reduce_mean(softmax(x), axes=[0])\n}\n")
    assert found.opset == 21
    assert other_opsets(found.graph, found.target, found.opset) == []


#: Nodes of which each is lost to the provider at some opsets: If at 21, ConstantOfShape at 20, ScatterElements from 18.
LOST = {
    "if": "d = If (c) <then_branch = then_graph () => (float[4] t) { t = Relu(f) },"
    " else_branch = else_graph () => (float[4] e) { e = Exp(f) }>",
    "fill": "g = ConstantOfShape(s)",
    "scatter": "h = ScatterElements(f, i, f)",
}


@pytest.mark.parametrize("names", [("if",), ("fill",), ("if", "fill"), ("if", "fill", "scatter")], ids="+".join)
def test_no_other_opset_keeps_more_nodes_on_the_provider(names: tuple[str, ...]) -> None:
    results = {"if": "float[4] d", "fill": "float[n, m] g", "scatter": "float[4] h"}
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 16]>'
        f" g (bool c, float[4] f, int64[2] s, int64[4] i) => ({', '.join(results[name] for name in names)})"
        f" {{ {' '.join(LOST[name] for name in names)} }}"
    )
    losses = [dmlc.compile(model, opset=opset).losses() for opset in range(16, 22)]
    assert dmlc.compile(model).losses() == min(losses)


@pytest.mark.parametrize("op", ["ReduceL2", "ReduceLogSum", "ReduceLogSumExp"])
def test_integers_that_directml_refuses_are_left_to_the_cpu(op: str) -> None:
    """Registered for integers from opset 18 on, where the session is not created; before that they are the CPU's."""
    found = dmlc.compile(reduction(op, 18, TensorProto.INT32, axes_as_input=True))
    found.require_sound()
    assert found.opset == 17
    assert [d.code.id for d in found.diagnostics] == ["W0601"]
    x = np.arange(1, 33, dtype=np.int32).reshape(4, 8)
    assert found.run({"x": x}, backend="cpu")["y"].shape == (4, 1)


def test_f64_that_directml_refuses_is_left_to_the_cpu() -> None:
    found = dmlc.compile(reduction("ReduceMax", 20, TensorProto.DOUBLE, axes_as_input=True))
    found.require_sound()
    assert found.opset < 20
    x = np.array([[1.0, 2.0, -3.0, 0.5, 9.0, 1.0, 1.0, 1.0]] * 4)
    assert found.run({"x": x}, backend="cpu")["y"].tolist() == [[9.0]] * 4


@pytest.mark.parametrize("call", ["log_softmax(x)", "softmax(x, axes=[0, 2])", "reduce_log_sum_exp(x)"])
def test_f64_in_parts_is_left_to_the_cpu(call: str) -> None:
    found = program(f"model m(x: f64[3, 4, 5]) -> (y) {{\n    return {call}\n}}\n")
    found.require_sound()
    assert found.opset == 19
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    got, wanted = (found.run({"x": x}, backend=backend)["y"] for backend in ("cpu", "reference"))
    assert np.allclose(got, wanted, rtol=1e-12)


def test_an_if_keeps_its_kernel() -> None:
    then, otherwise = (
        helper.make_graph([helper.make_node(op, ["x"], [f"{op}_y"])], op, [], [
            helper.make_tensor_value_info(f"{op}_y", TensorProto.FLOAT, [4])
        ])
        for op in ("Relu", "Neg")
    )  # fmt: skip
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=otherwise)
    c = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])
    graph = helper.make_graph([node], "g", [c, x], [y])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    found = dmlc.compile(model)
    assert found.opset == 20
    assert found.placement().count("cpu") == 0


DILATED = onnx.parser.parse_model(
    '<ir_version: 11, opset_import: ["": 22]> g (float[1,1,n] x, float[1,1,3] w, float[1,1,9] z) => (float[1,1,9] y) '
    "{ d = ConvTranspose<strides = [2], dilations = [2], output_shape = [9]>(x, w) y = Mul(d, z) }"
)


def test_a_node_on_which_the_provider_fails_keeps_the_newer_opset_of_its_model() -> None:
    """From opset 22 on no kernel takes it, and it is the CPU's."""
    found = dmlc.compile(DILATED)
    found.require_sound()
    assert found.opset == 22
    assert [d.code.id for d in found.diagnostics] == ["W0601"]
    assert "opset 22, not 21: directml fails on a node there" in found.artifact("onnx").report
    older = onnx.ModelProto.FromString(DILATED.SerializeToString())
    older.opset_import[0].version = 21
    for refused in (dmlc.compile(DILATED, opset=21), dmlc.compile(older)):
        with pytest.raises(DmlcError, match="E0591"):
            refused.require_sound()


def test_a_model_stays_where_the_provider_fails_at_its_own_opset_too() -> None:
    """A Resize that keeps the ratio of its axes has a kernel at each opset."""
    model = onnx.parser.parse_model(
        '<ir_version: 11, opset_import: ["": 22]> g (float[1,1,4,6] x, int64[2] s) => (float y) '
        '{ y = Resize<axes = [2, 3], keep_aspect_ratio_policy = "not_larger">(x, "", "", s) }'
    )
    model.graph.output[0].type.tensor_type.ClearField("shape")
    assert dmlc.compile(model).opset == 21
