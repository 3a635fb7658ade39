"""The opset of the result has to take the types of carried nodes, not only their attributes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, checker, helper, parser

import dmlc
from tests.rows import each_row


def convolution(element_type: int) -> ModelProto:
    shapes = {"x": [1, 2, 4, 4], "w": [2, 2, 1, 1]}
    inputs = [helper.make_tensor_value_info(name, element_type, shape) for name, shape in shapes.items()]
    output = helper.make_tensor_value_info("y", element_type, [1, 2, 4, 4])
    graph = helper.make_graph([helper.make_node("Conv", ["x", "w"], ["y"], name="first")], "m", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)


def test_a_type_that_came_later_is_not_lowered() -> None:
    program = dmlc.compile(convolution(TensorProto.BFLOAT16), target="directml")
    assert program.opset == 22
    why = "node first (Conv) has no equal there: Conv of opset 11 does not take tensor(bfloat16)"
    assert f"opset 22, not 21: {why}" in program.artifact("onnx").report
    with pytest.raises(dmlc.DmlcError, match=r"E0501.*node first \(Conv\) of opset 22 is not converted to opset 21: "):
        dmlc.compile(convolution(TensorProto.BFLOAT16), target="directml", opset=21)


def test_a_node_that_is_not_converted_says_why() -> None:
    """Such a Gemm has an equal since opset 7: dmlc does not write it."""
    text = """<ir_version: 3, opset_import: ["" : 6]>
        g (float[N, 4] a, float[4, 5] b, float[5] c) => (float[N, 5] y) { y = Gemm <broadcast = 1> (a, b, c) }"""
    program = dmlc.compile(parser.parse_model(text), target="directml")
    why = "node y (Gemm) is not converted to opset 21: broadcast went with opset 7"
    assert f"opset 6, and nothing is rewritten: {why}" in program.artifact("onnx").report
    with pytest.raises(dmlc.DmlcError, match=r"E0501.*of opset 6 is not converted to opset 13: broadcast went with"):
        dmlc.compile(parser.parse_model(text), target="directml", opset=13)
    with pytest.raises(dmlc.DmlcError, match=r"E0554.*of opset 6, and ONNX Runtime has kernels from opset 7 on"):
        program.run({"a": np.ones((2, 4)), "b": np.ones((4, 5)), "c": np.ones(5)}, "cpu")


def test_other_types_are() -> None:
    model = dmlc.compile(convolution(TensorProto.FLOAT), target="directml").to_onnx()
    assert [o.version for o in model.opset_import if o.domain == ""] == [21]


@each_row(("kind", "since"), [(TensorProto.INT2, 25), (TensorProto.UINT4, 21), (TensorProto.FLOAT8E4M3FN, 19)])
def test_no_opset_below_that_of_a_weights_type(kind: int, since: int) -> None:
    weight = helper.make_tensor("w", kind, [4], [1, 0, 1, 1])
    nodes = [helper.make_node("Cast", ["w"], ["c"], to=TensorProto.FLOAT), helper.make_node("Add", ["x", "c"], ["y"])]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
    graph = helper.make_graph(nodes, "g", [x], [y], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", since)], ir_version=13)
    program = dmlc.compile(model, target="onnx")
    assert program.opset == max(since, 21)
    if since < 25:  # the newest types are not in all releases of ONNX Runtime that the package allows
        assert program.run({"x": np.zeros(4, np.float32)}, backend="cpu")["y"].tolist() == [1, 0, 1, 1]
    with pytest.raises(dmlc.DmlcError) as caught:
        dmlc.compile(model, target="onnx", opset=min(since - 1, 20))
    assert caught.value.diagnostics[0].code.id == "E0501"


def one_node(op_type: str, kind: int, opset: int) -> ModelProto:
    names = ["x", "slope"] if op_type == "PRelu" else ["x"]
    inputs = [helper.make_tensor_value_info(name, kind, [2, 3]) for name in names]
    output = helper.make_tensor_value_info("y", kind, [2, 3])
    graph = helper.make_graph([helper.make_node(op_type, names, ["y"], name="first")], "m", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@each_row("target", ["directml", "onnx", "cpu"])
@each_row(
    ("op_type", "kind", "opset"),
    [
        ("Elu", TensorProto.DOUBLE, 18),
        ("Mish", TensorProto.DOUBLE, 18),
        ("HardSwish", TensorProto.DOUBLE, 18),
        ("LeakyRelu", TensorProto.DOUBLE, 17),
        ("PRelu", TensorProto.INT32, 16),
        ("Relu", TensorProto.INT64, 18),
    ],
)
def test_what_runs_by_its_definition_alone_stays_where_that_holds(
    op_type: str, kind: int, opset: int, target: str
) -> None:
    model = one_node(op_type, kind, opset)
    program = dmlc.compile(model, target=target)
    assert program.opset == opset
    reason = f"opset {opset}, not 21: node first ({op_type}) has no kernel for"
    assert reason in " ".join(program.artifact("onnx").report)
    feeds = {
        i.name: np.arange(6).reshape(2, 3).astype(helper.tensor_dtype_to_np_dtype(kind)) for i in model.graph.input
    }
    assert program.run(feeds, backend="cpu")["y"].shape == (2, 3)


@pytest.mark.emits_invalid("ONNX Runtime has no kernel for it at the opset that is asked for")
@each_row("target", ["directml", "onnx", "cpu"])
def test_what_runs_by_its_definition_goes_where_it_is_sent(target: str) -> None:
    assert dmlc.compile(one_node("Mish", TensorProto.DOUBLE, 18), target=target, opset=21).opset == 21


@each_row("target", ["directml", "onnx", "cpu"])
@each_row("op_type", ["Elu", "Softplus", "Softsign"])
def test_what_can_be_composed_is_where_no_definition_holds(op_type: str, target: str) -> None:
    program = dmlc.compile(one_node(op_type, TensorProto.DOUBLE, 18), target=target, opset=21)
    x = np.linspace(-3, 3, 6).reshape(2, 3)
    expected = {"Elu": np.where(x > 0, x, np.expm1(x)), "Softplus": np.log1p(np.exp(x)), "Softsign": x / (1 + abs(x))}
    np.testing.assert_allclose(program.run({"x": x}, backend="cpu")["y"], expected[op_type], rtol=1e-13)


@each_row(
    ("op_type", "kind", "opset"),
    [
        ("Elu", TensorProto.FLOAT, 18),
        ("Elu", TensorProto.FLOAT16, 18),
        ("Elu", TensorProto.DOUBLE, 17),  # runs there no better
        ("Relu", TensorProto.DOUBLE, 18),
        ("Clip", TensorProto.INT64, 18),
        ("Softmax", TensorProto.DOUBLE, 18),
    ],
)
def test_what_has_a_kernel_or_nowhere_a_definition_does_not_stay(op_type: str, kind: int, opset: int) -> None:
    assert dmlc.compile(one_node(op_type, kind, opset), target="onnx").opset == 21


def test_inside_of_a_branch_too() -> None:
    inner = helper.make_node("Elu", ["x"], ["b"])
    branch = helper.make_graph([inner], "branch", [], [helper.make_tensor_value_info("b", TensorProto.DOUBLE, [2, 3])])
    model = one_node("Elu", TensorProto.DOUBLE, 18)
    model.graph.input.add().CopyFrom(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    model.graph.node[0].CopyFrom(helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch))
    assert dmlc.compile(model, target="onnx").opset == 18


@each_row("target", ["directml", "cpu", "onnx"])
@each_row("op", ["Add", "Mul", "Sub", "Div"])
def test_a_model_whose_attributes_went_stays_whole(target: str, op: str) -> None:
    call = f"{op}<broadcast = 1, axis = 0>(x, b)"
    text = f'<ir_version: 3, opset_import: ["": 6]> g (float[2,3] x, float[2] b) => (float[2,3] y) {{ y = {call} }}'
    made = dmlc.compile(parser.parse_model(text), target=target).to_onnx()
    checker.check_model(made)
    assert [entry.version for entry in made.opset_import if not entry.domain] == [6]


def older(call: str, inputs: str, opset: int, output: str = "float[2,3,3] y") -> ModelProto:
    return parser.parse_model(
        f'<ir_version: 3, opset_import: ["": {opset}]> g ({inputs}) => ({output}) {{ y = {call} }}'
    )


def opset_of(made: ModelProto) -> int:
    return next(entry.version for entry in made.opset_import if not entry.domain)


@each_row(
    ("op", "output"), [("Add", "float"), ("Div", "float"), ("Pow", "float"), ("Less", "bool"), ("PRelu", "float")]
)
def test_operands_that_met_at_another_axis_before_opset_7_stay(op: str, output: str) -> None:
    """Both have three places, so that the numbers alone would tell."""
    call = f"{op}(x, b)" if op == "PRelu" else f"{op}<broadcast = 1, axis = 1>(x, b)"
    source = older(call, "float[2,3,3] x, float[3] b", 6, f"{output}[2,3,3] y")
    made = dmlc.compile(source, target="onnx").to_onnx()
    assert opset_of(made) == 6
    assert made.graph.node == source.graph.node


@each_row(
    ("call", "sizes"),
    [
        ("Add<broadcast = 1, axis = 2>(x, b)", "3"),
        ("Add<broadcast = 1, axis = -1>(x, b)", "3"),
        ("Add<broadcast = 1>(x, b)", "3,3"),
        ("Add<broadcast = 1, axis = 1>(x, b)", "3,3"),
    ],
)
def test_operands_that_end_together_are_raised(call: str, sizes: str) -> None:
    made = dmlc.compile(older(call, f"float[2,3,3] x, float[{sizes}] b", 6), target="onnx").to_onnx()
    assert (opset_of(made), [node.op_type for node in made.graph.node]) == (21, ["Add"])
    assert not made.graph.node[0].attribute


@each_row(
    ("source", "attributes"),
    [
        (older('Cast<to = "INT32">(x)', "float[2,3,3] x", 5, "int32[2,3,3] y"), {"to": TensorProto.INT32}),
        (older("Concat(x, x)", "float[2,3,3] x", 3, "float[2,6,3] y"), {"axis": 1}),
        (older("Concat<axis = 2>(x, x)", "float[2,3,3] x", 3, "float[2,3,6] y"), {"axis": 2}),
        (older("PRelu(x, b)", "float[2,3] x, float[3] b", 6, "float[2,3] y"), {}),
        (older("PRelu(x, b)", "float[2,3,3] x, float[1] b", 6), {}),
    ],
)
def test_forms_from_before_opset_7_are_raised(source: ModelProto, attributes: dict[str, int]) -> None:
    made = dmlc.compile(source, target="onnx").to_onnx()
    checker.check_model(made, full_check=True)
    assert opset_of(made) == 21
    assert {a.name: helper.get_attribute_value(a) for a in made.graph.node[0].attribute} == attributes


def test_defaults_from_before_opset_6_are_kept() -> None:
    made = dmlc.compile(older("Selu(x)", "float[2,3,3] x", 5), target="onnx").to_onnx()
    found = {a.name: round(a.f, 5) for a in made.graph.node[0].attribute}
    assert found == {"alpha": 1.6732, "gamma": 1.0507}


def test_a_cast_to_no_type_stays() -> None:
    source = older('Cast<to = "NOTHING">(x)', "float[2,3,3] x", 5)
    assert opset_of(dmlc.compile(source, target="onnx").to_onnx()) == 5
