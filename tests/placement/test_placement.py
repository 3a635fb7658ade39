"""The placement report on small ONNX models: where nodes run, why, and in how many fused graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper, parser

from dmlc.placement.report import Placement, placement
from dmlc.targets import load_target, target_names
from tests.rows import each_row

F16, F32, F64, I32, I64, BOOL = (
    *(TensorProto.FLOAT16, TensorProto.FLOAT, TensorProto.DOUBLE),
    *(TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL),
)


def model(nodes: list, inputs: dict, outputs: dict, opset: int = 21, **constants: Any) -> ModelProto:
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(name, *of) for name, of in inputs.items()],
        [helper.make_tensor_value_info(name, *of) for name, of in outputs.items()],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()],
    )
    sets = [helper.make_opsetid("", opset), helper.make_opsetid("acme", 1), helper.make_opsetid("ai.onnx.ml", 3)]
    return helper.make_model(graph, opset_imports=sets, ir_version=10)


def report(made: ModelProto, target: str = "directml", **options: Any) -> Placement:
    return placement(made, load_target(target), **options)


def one(op: str, of: tuple, result: tuple, opset: int = 21, inputs: int = 1, **attributes: Any) -> ModelProto:
    node = helper.make_node(op, ["x"] * inputs, ["y"], name="it", **attributes)
    return model([node], {"x": of}, {"y": result}, opset)


@each_row("op", ["ReduceMean", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp"])
@each_row("dtype", [I32, I64, TensorProto.UINT32, TensorProto.UINT64])
def test_integer_reductions_fail_from_18_on(op: str, dtype: int) -> None:
    found = report(one(op, (dtype, [2, 3]), (dtype, [1, 1]), 18))
    assert found.fails
    (finding,) = found.nodes[0].findings
    assert finding.effect == "fails"
    assert finding.source
    assert finding.repair
    before = report(one(op, (dtype, [2, 3]), (dtype, [1, 1]), 13))
    assert before.fails is (dtype not in (I32, I64))  # the CPU has no kernels of these either
    assert before.nodes[0].where == "cpu"


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_reductions_of_bytes_and_doubles(op: str) -> None:
    for dtype in (TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16):
        where = {
            opset: report(one(op, (dtype, [2, 3]), (dtype, [1, 1]), opset)).nodes[0].where for opset in (13, 18, 20)
        }
        assert where == {13: "provider", 18: "cpu", 20: "provider"}
    assert report(one(op, (F64, [2, 3]), (F64, [1, 1]), 20)).fails
    assert report(one(op, (F64, [2, 3]), (F64, [1, 1]), 18)).nodes[0].where == "cpu"


def test_nine_axes_fail_and_eight_do_not() -> None:
    assert report(one("Add", (F32, [1] * 9), (F32, [1] * 9), inputs=2)).fails
    assert not report(one("Add", (F32, [1] * 8), (F32, [1] * 8), inputs=2)).fails


def test_a_cast_to_bool_is_wrong_but_for_unsigned_bytes() -> None:
    for kind in (F32, I32, TensorProto.INT8):
        assert report(one("Cast", (kind, [2]), (BOOL, [2]), to=BOOL)).nodes[0].findings[0].effect == "wrong"
    assert not report(one("Cast", (TensorProto.UINT8, [2]), (BOOL, [2]), to=BOOL)).findings


def test_log_sum_exp_is_wrong() -> None:
    assert report(one("ReduceLogSumExp", (F32, [2]), (F32, [1]))).nodes[0].findings[0].effect == "wrong"


def test_empty_operands() -> None:
    found = report(one("ReduceMax", (F32, [0, 3]), (F32, [1, 1])))
    assert found.nodes[0].findings[0].effect == "wrong"
    still = report(one("Neg", (F32, [0, 3]), (F32, [0, 3])))
    assert not still.fails
    assert still.nodes[0].alone == "an empty dimension"


def test_layer_norm_with_more_results_lands_on_the_cpu() -> None:
    def norm(*results: str) -> ModelProto:
        node = helper.make_node("LayerNormalization", ["x", "s"], list(results), name="it")
        return model([node], {"x": (F32, [2, 3])}, {"y": (F32, [2, 3])}, 17, s=np.ones(3, np.float32))

    assert report(norm("y")).nodes[0].level == "6.3"
    assert report(norm("y", "m")).nodes[0].where == "cpu"


def test_group_normalization_is_not_taken() -> None:
    node = helper.make_node("GroupNormalization", ["x", "s", "s"], ["y"], num_groups=1)
    made = model([node], {"x": (F32, [1, 2, 3])}, {"y": (F32, [1, 2, 3])}, 21, s=np.ones(2, np.float32))
    (finding,) = report(made).nodes[0].findings
    assert (finding.effect, "no kernel for GroupNormalization" in finding.limit) == ("cpu", True)


def test_negative_pads() -> None:
    node = helper.make_node("Pad", ["x", "p"], ["y"])
    for pads, wrong in (([0, -1], True), ([0, 1], False)):
        made = model([node], {"x": (F32, [3])}, {"y": (F32, [3 + sum(pads)])}, p=np.array(pads, np.int64))
        assert report(made).fails is wrong


@each_row(
    ("opset", "target", "where"),
    [
        (21, "directml", "provider"),
        (22, "directml", "provider"),
        (23, "directml", "cpu"),
        (21, "directml:ort-1.20", "cpu"),
        (20, "directml:ort-1.20", "provider"),
    ],
)
def test_the_opset_ceiling(opset: int, target: str, where: str) -> None:
    assert report(one("Transpose", (F32, [2, 3]), (F32, [3, 2]), opset), target).nodes[0].where == where


@each_row(("level", "fails"), [("5.0", True), ("5.1", False), ("6.4", False)])
def test_the_feature_level(level: str, fails: bool) -> None:
    made = one("Hardmax", (F32, [2, 3]), (F32, [2, 3]))
    found = report(made, feature_level=level)
    assert found.fails is fails
    assert found.nodes[0].level == "5.1"
    assert found.level == "5.1"


def test_f64_lands_on_the_cpu() -> None:
    found = report(one("Add", (F64, [2]), (F64, [2]), inputs=2))
    (finding,) = found.nodes[0].findings
    assert (found.nodes[0].where, finding.repair) == ("cpu", "--f64 f32 computes it in f32")
    assert "f64" in finding.limit


def test_what_no_table_covers_is_unknown() -> None:
    made = model([helper.make_node("Warp", ["x"], ["y"], domain="acme")], {"x": (F32, [2])}, {"y": (F32, [2])})
    found = report(made)
    assert (found.nodes[0].where, found.fails) == ("unknown", False)
    assert "acme" in found.nodes[0].why
    ml = model([helper.make_node("Scaler", ["x"], ["y"], domain="ai.onnx.ml")], {"x": (F32, [2])}, {"y": (F32, [2])})
    assert report(ml).nodes[0].where == "cpu"


# --- partitions


def chain(shape: list, opset: int = 21) -> ModelProto:
    nodes = [helper.make_node("Exp", ["x"], ["a"]), helper.make_node("Neg", ["a"], ["y"])]
    return model(nodes, {"x": (F32, shape)}, {"y": (F32, shape)}, opset)


def test_neighbours_are_one_fused_graph() -> None:
    found = report(chain([2, 3]))
    assert (found.partitions, [node.partition for node in found.nodes]) == (1, [0, 0])
    assert (found.dispatches, found.bytes) == (2, 4 * 24)
    assert found.verdict == "2 nodes, all on DirectML, in 1 fused graph"


def test_an_open_size_breaks_it_and_a_binding_mends_it() -> None:
    found = report(chain(["N", 3]))
    assert (found.partitions, found.dims) == (0, ["N"])
    assert {node.alone for node in found.nodes} == {"dynamic sizes: N"}
    assert report(chain(["N", 3]), binding={"N": 2}).partitions == 1


def test_disconnected_pieces_are_apart() -> None:
    nodes = [helper.make_node("ReduceMax", ["x"], ["a"]), helper.make_node("ReduceMin", ["x"], ["b"])]
    found = report(model(nodes, {"x": (F32, [2])}, {"a": (F32, [1]), "b": (F32, [1])}))
    assert found.partitions == 2


def test_fused_graphs_of_branches_are_counted() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (bool c, float[4] x) => (float[4] y) {
    y = If(c)<then_branch = t () => (float[4] a) { n = Neg(x) a = Exp(n) },
    else_branch = e () => (float[4] b) { m = Abs(x) b = Exp(m) }> }"""
    found = report(parser.parse_model(text))
    assert (found.partitions, [node.partition for node in found.nodes]) == (2, [None, 0, 0, 1, 1])


def test_a_cpu_node_between_closes_the_graph_before_it() -> None:
    nodes = [
        helper.make_node("Exp", ["x"], ["a"]),
        helper.make_node("Round", ["a"], ["b"]),  # lost at 22
        helper.make_node("Neg", ["b"], ["c"]),
        helper.make_node("Add", ["a", "c"], ["y"]),
    ]
    found = report(model(nodes, {"x": (F32, [2])}, {"y": (F32, [2])}, 22))
    assert [(n.where, n.partition) for n in found.nodes] == [
        ("provider", 0), ("cpu", None), ("provider", 1), ("provider", 1),
    ]  # fmt: skip


def test_operands_that_must_be_constant() -> None:
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"])
    made = model([node], {"x": (F32, [2, 3]), "axes": (I64, [1])}, {"y": (F32, [1, 3])})
    assert "operand 1 (axes) is not constant" in report(made).nodes[0].verdict
    fixed = model([node], {"x": (F32, [2, 3])}, {"y": (F32, [1, 3])}, axes=np.array([0]))
    assert report(fixed).partitions == 1


def test_a_subgraph_turns_fusion_off() -> None:
    branch = helper.make_graph(
        [helper.make_node("Neg", ["x"], ["b"])], "b", [], [helper.make_tensor_value_info("b", F32, [2])]
    )
    nodes = [
        helper.make_node("If", ["c"], ["a"], then_branch=branch, else_branch=branch),
        helper.make_node("Exp", ["a"], ["y"]),
    ]
    found = report(model(nodes, {"x": (F32, [2]), "c": (BOOL, [])}, {"y": (F32, [2])}, 19))
    last = found.nodes[-1]
    assert (last.partition, "turns fusion off" in last.alone) == (None, True)
    assert sum(node.op == "Neg" for node in found.nodes) == 2


def test_shape_arithmetic_stays_on_the_cpu_and_known_shapes_are_folded() -> None:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        helper.make_node("Gather", ["s", "zero"], ["n"]),
        helper.make_node("Exp", ["x"], ["y"]),
    ]
    for shape, where in ((["N", 3], ["provider", "cpu", "provider"]), ([2, 3], ["folded", "folded", "provider"])):
        made = model(nodes, {"x": (F32, shape)}, {"y": (F32, shape), "n": (I64, [])}, 21, zero=np.array(0))
        assert [node.where for node in report(made).nodes] == where


def test_a_target_without_a_provider_has_no_report() -> None:
    assert "cpu" in target_names()
    with pytest.raises(ValueError, match="no provider"):
        report(chain([2]), "cpu")


@each_row(
    ("op", "attributes", "where"),
    [
        ("Einsum", {"equation": "ij,ij->i"}, "provider"),
        ("Einsum", {"equation": "...i,...i->..."}, "cpu"),
        ("Einsum", {"equation": "ij,ij,ij->i"}, "cpu"),
        ("ScatterElements", {"reduction": "add"}, "cpu"),
        ("ScatterElements", {}, "provider"),
    ],
)
def test_what_the_provider_asks_of_attributes(op: str, attributes: dict, where: str) -> None:
    if op == "Einsum":
        operands = ["x"] * (attributes["equation"].count(",") + 1)
    else:
        operands = ["x", "i", "x"]
    made = model(
        [helper.make_node(op, operands, ["y"], **attributes)],
        {"x": (F32, [2, 2])},
        {"y": (F32, [2, 2] if op != "Einsum" else [2])},
        17,
        i=np.zeros((2, 2), np.int64),
    )
    assert report(made).nodes[0].where == where
