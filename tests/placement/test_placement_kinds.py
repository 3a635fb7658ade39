"""Kinds of values that decide where a node runs: sequences, float8, and empty operands that are not data."""

from __future__ import annotations

from typing import Any

import numpy as np
from onnx import TensorProto, helper, parser

import dmlc
from dmlc.placement.report import placement
from dmlc.targets import load_target
from tests.rows import each_row

F8 = TensorProto.FLOAT8E4M3FN


def model(text: str, opset: int = 21) -> Any:
    return parser.parse_model(f'<ir_version: 10, opset_import: ["": {opset}]> {text}')


def float8(opset: int) -> Any:
    nodes = [
        helper.make_node("Cast", ["x"], ["e"], to=F8),
        helper.make_node("Identity", ["e"], ["i"]),
        helper.make_node("Cast", ["i"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Relu", ["f"], ["y"]),
    ]
    infos = [[helper.make_tensor_value_info(name, TensorProto.FLOAT, [4])] for name in "xy"]
    graph = helper.make_graph(nodes, "g", *infos)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10)


SEQUENCE = (
    "g (float[2] x, float[2] z) => (float[2] y) { s = SequenceConstruct(x, z) t = Identity(s) "
    "i = Constant<value = int64 {1}>() a = SequenceAt(t, i) y = Relu(a) }"
)
OPTIONAL = "g (float[2] x) => (float[2] y) { o = Optional(x) p = Identity(o) a = OptionalGetElement(p) y = Relu(a) }"


@each_row(
    ("made", "on_cpu"),
    [
        (model(SEQUENCE), ["Identity"]),
        (model(OPTIONAL, 18), ["Optional", "Identity"]),
        (float8(19), ["Cast", "Identity", "Cast"]),
        (float8(21), ["Cast", "Identity", "Cast"]),
    ],
    ids=["sequence", "optional", "float8 at 19", "float8 at 21"],
)
def test_what_no_kernel_lists_goes_to_the_cpu(made: Any, on_cpu: list[str]) -> None:
    report = placement(made, load_target("directml"))
    assert not report.fails
    assert [node.op for node in report.nodes if node.where == "cpu"] == on_cpu
    dmlc.compile(made).require_sound()


REDUCTIONS = ["Sum", "Mean", "Max", "Min", "Prod", "L1", "L2", "SumSquare", "LogSum"]


@each_row("op", REDUCTIONS)
@each_row("opset", [13, 18, 20, 21])
def test_axes_that_are_fed_and_empty(op: str, opset: int) -> None:
    """They are read on the CPU, and mean all axes: the data is not empty."""
    if opset < 18 and op != "Sum":
        return
    made = model(f"g (float[2,3] x, int64[0] a) => (float[1,1] y) {{ y = Reduce{op}(x, a) }}", opset)
    program = dmlc.compile(made)
    program.require_sound()
    (node,) = program.placement().nodes
    assert node.where == "provider" and node.alone


def test_an_empty_operand_that_gives_only_a_type() -> None:
    made = model("g (float[4] x, int64[0] like) => (int64[4] y) { y = CastLike(x, like) }", 19)
    dmlc.compile(made).require_sound()
    x = np.array([1, 2, 3, -4], np.float32)
    got = dmlc.compile(made).run({"x": x, "like": np.zeros(0, np.int64)}, "cpu")["y"]
    np.testing.assert_array_equal(got, x.astype(np.int64))


def test_an_empty_operand_that_is_data() -> None:
    made = model("g (float[2,0] x, int64[1] a) => (float[2,1] y) { y = ReduceMax(x, a) }", 18)
    assert placement(made, load_target("directml")).fails


@each_row(
    ("body", "opset", "limit", "repair"),
    [
        (
            '(float[4] x, int64[3] i, float[3] u) => (float[4] y) { y = ScatterElements<reduction = "add">(x, i, u) }',
            18,
            "opsets 11 to 17, not 18; at 17 DirectML scatters without a reduction",
            "opset 17, and reduction none where no index repeats",
        ),
        (
            "(double[1,2,4,4] x, double[2,2,1,1] w) => (double[1,2,4,4] y) { y = Conv(x, w) }",
            22,
            "at 21 Conv takes f16 f32 there, not f64, and the CPU provider has none either for double",
            "opset 21, and --f64 f32 computes it in f32",
        ),
        ("(float[3,4] x) => (float[4,3] y) { y = Transpose(x) }", 23, "opsets 7 to 22, not 23", "opset 21"),
    ],
    ids=["fault", "dtype", "opset alone"],
)
def test_the_help_names_what_else_keeps_a_node_off(body: str, opset: int, limit: str, repair: str) -> None:
    report = placement(model(f"g {body}", opset), load_target("directml"))
    ((_, finding),) = report.findings
    assert finding.limit.endswith(limit) and finding.repair == repair
