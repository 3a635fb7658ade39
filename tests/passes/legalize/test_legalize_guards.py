"""Near misses of ``legalize``, and its spellings: each test fails where one guard of its rules is dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from fusion_helpers import check, classes, model, node
from pass_helpers import Building, assert_equal, evaluate, names, random_feeds

import dmlc
from dmlc.diagnostics import DmlcError
from dmlc.ir import DType, Graph, Operation
from dmlc.ir.dtype import bool_, f16, f32, f64, i16, i32, i64, u8, u32
from dmlc.ops.binary import AND, DIV, FLOORDIV, MAX, MOD, OR, POW
from dmlc.ops.choose import CAST
from dmlc.ops.elementwise import NOT, RELU
from dmlc.ops.index import GATHER, ONE_HOT
from dmlc.ops.move import PAD
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_SUM
from dmlc.ops.select import HARDMAX
from dmlc.passes.legalize import Legalize
from dmlc.passes.manager import PassContext
from dmlc.targets import load_target


def legal(graph: Graph, target: str = "cpu", opset: int = 21, *, n: int = 3, **feeds: Any) -> list[str]:
    """The operations then; the numbers stay."""
    given = {**random_feeds(graph, {"n": n}), **feeds}
    with np.errstate(all="ignore"):
        before = evaluate(graph, given)
        Legalize().run(graph, PassContext(load_target(target), opset))
        assert_equal(before, evaluate(graph, given))
    return names(graph)


def with_constant(op: Any, number: Any, dtype: DType = i32, shape: Any = (2, 3), **options: Any) -> list[str]:
    b = Building()
    return legal(b.done(b(op, b.input("x", shape, dtype), b.constant(number, dtype))), **options)


def test_only_integers_are_kept_from_a_division_by_zero() -> None:
    b = Building()
    graph = b.done(b(DIV, b.input("x", (2,)), b.input("z", (2,))))
    assert legal(graph, z=np.array([0, 2], np.float32)) == ["div"]
    assert with_constant(DIV, [1, 2, 5]) == ["div"]
    b = Building()
    folded = b.graph.add(DIV, [b.input("x", (3,), i32), b.constant([1, 0, 2], i32)], DIV.attributes())
    graph = b.done(folded.result)
    Legalize().run(graph, PassContext(load_target("cpu"), 21))
    assert "equal" in names(graph)


def test_powers_of_constants_that_differ_or_are_none() -> None:
    with_constant(POW, [1, 2, 3])
    with_constant(POW, np.zeros((0,)), shape=(0,))


@pytest.mark.parametrize(
    ("op", "mask"), [(OR, 7), (AND, 7), (AND, 6), (AND, 0), (AND, -1), (AND, 2**31 - 1), (AND, [7, 6, 3])]
)
def test_bits_below_opset_18(op: Any, mask: Any) -> None:
    x = np.array([[-9, 0, 5], [2**31 - 1, -(2**31), 77]], np.int32)
    found = with_constant(op, mask, opset=17, x=x)
    assert op.name not in found
    assert ("mod" in found and len(found) == 1) is (op is AND and mask == 7)


def test_bits_that_have_a_kernel() -> None:
    b = Building()
    assert legal(b.done(b(NOT, b.input("x", (2,), i32)))) == ["not"]
    assert with_constant(OR, 7) == ["or"]


def test_sums_that_directml_takes_as_they_are() -> None:
    def summed(source: DType, to: DType) -> list[str]:
        b = Building()
        return legal(b.done(b(REDUCE_SUM, b(CAST, b.input("x", (2, 3), source), to=to), axes=[1])), "directml")

    assert summed(i32, i64) == ["cast", "reduce_sum"]
    assert summed(i16, i32) != ["cast", "reduce_sum"]
    assert summed(f32, i64) != ["cast", "reduce_sum"]
    b = Building()
    hot = b(ONE_HOT, b.input("x", (2,), i32), depth=3, on=2**40, off=-(2**50), dtype=i64, axis=1)
    assert legal(b.done(b(REDUCE_SUM, hot, axes=[1])), "directml") != ["one_hot", "reduce_sum"]


def test_extremes_of_nothing() -> None:
    b = Building()
    assert legal(b.done(b(REDUCE_MAX, b.input("x", (0, 3), i32), axes=[0]))) == ["full"]
    b = Building(n=(0, 9))
    assert "pad" in legal(b.done(b(REDUCE_MAX, b.input("x", ("n", 3), i32), axes=[0])), n=0)
    b = Building(n=(0, 9))
    assert legal(b.done(b(REDUCE_MAX, b.input("x", ("n", 3)), axes=[0])), n=0) == ["reduce_max"]


@pytest.mark.parametrize("dtype", [f16, bool_, u8])
def test_what_is_padded_with(dtype: DType) -> None:
    b = Building()
    value = True if dtype is bool_ else 0.5 if dtype is f16 else 3
    legal(b.done(b(PAD, b.input("x", (2, 3), dtype), pads=[0, 1, 0, 0], value=value)), opset=17)


def test_hardmax_of_doubles_over_one_axis() -> None:
    b = Building()
    assert "argmax" in legal(b.done(b(HARDMAX, b.input("x", (2, 3), f64), axes=[1])))
    b = Building()
    with pytest.raises(DmlcError, match="no exact form"):  # over two, which lower-hardmax takes apart before
        legal(b.done(b(HARDMAX, b.input("x", (2, 3), f64), axes=[0, 1])))


def test_a_kernel_that_compares_wrongly_is_none() -> None:
    b = Building()
    assert legal(b.done(b(MAX, b.input("x", (2,), i64), b.input("z", (2,), i64)))) == ["less", "where"]


def test_floor_divisions_of_what_is_never_negative_by_what_may_be() -> None:
    b = Building()
    graph = b.done(b(FLOORDIV, b(CAST, b.input("x", (2, 3), u8), to=i32), b.input("z", (3,), i32)))
    assert "div" in legal(graph, z=np.array([-2, 3, -1], np.int32), x=np.array([[7, 7, 7], [6, 0, 5]], np.uint8))


@pytest.mark.parametrize("op", [DIV, MOD])
def test_a_divisor_that_is_never_negative_is_kept_from_zero_alone(op: Operation) -> None:
    b = Building()
    x, z = b.input("x", (6,), i64), b(CAST, b.input("z", (6,), u8), to=i64)
    graph = b.done(b(op, x, z))
    numbers = {"x": np.array([7, -7, 2**62, -(2**63), -1, 0]), "z": np.array([2, 2, 255, 1, 3, 9], np.uint8)}
    before = evaluate(graph, numbers)
    Legalize().run(graph, PassContext(load_target("cpu"), 21))
    assert names(graph).count("equal") == names(graph).count("where") == 1
    np.testing.assert_array_equal(before[0], evaluate(graph, numbers)[0])
    kernel = next(node for node in graph if node.op is op)
    graph.set_outputs([("divisor", kernel.operand(1))])
    assert evaluate(graph, {**numbers, "z": np.zeros(6, np.uint8)})[0].tolist() == [1] * 6


@pytest.mark.parametrize(("dtype", "target", "opset", "left"), [
    (f16, "onnx", 21, ["max"]), (i32, "cpu", 13, ["max"]), (i32, "cpu", 14, ["relu"]),
    (i16, "cpu", 21, ["cast", "relu", "cast"]),
])  # fmt: skip
def test_relu_is_a_maximum_only_where_that_needs_no_cast(dtype: DType, target: str, opset: int, left: Any) -> None:
    b = Building()
    assert legal(b.done(b(RELU, b.input("x", (2, 3), dtype))), target, opset) == left


@pytest.mark.parametrize(("op", "dtype"), [(REDUCE_MAX, u32), (REDUCE_MAX, i64), (REDUCE_SUM, i32)])
def test_what_the_provider_alone_runs_needs_no_form_for_the_cpu(op: Any, dtype: DType) -> None:
    for target, is_kept in (("directml-only", True), ("directml", False)):
        b = Building()
        graph = b.done(b(op, b.input("x", (2, 3), dtype), axes=[1]))
        assert (legal(graph, target) == [op.name]) is is_kept


def test_indices_of_batches_are_i64() -> None:
    """GatherND takes no others, Gather does."""
    for batch, left in ((1, ["cast", "gather"]), (0, ["gather"])):
        b = Building()
        graph = b.done(b(GATHER, b.input("x", (2, 3)), b.input("i", (2, 2), i32), axis=batch, batch_axes=batch))
        assert legal(graph, i=np.array([[0, 1], [1, 0]], np.int32)) == left


# --- what a model has is what its user runs


def integers(*nodes: onnx.NodeProto, **weights: Any) -> onnx.ModelProto:
    m = model(list(nodes), (2, 3), dtype=onnx.TensorProto.INT32, **weights)
    m.graph.input.append(onnx.helper.make_tensor_value_info("z", onnx.TensorProto.INT32, [2, 3]))
    return m


def test_nodes_of_models_stay() -> None:
    for made in (
        node("Div", ["x", "z"], ["y"]),
        node("ReduceMean", ["x"], ["y"], axes=[1]),
        node("ReduceSumSquare", ["x"], ["y"], axes=[1]),
    ):
        program = dmlc.compile(integers(made), target="cpu", opset=17)
        assert [n.op_type for n in program.to_onnx().graph.node] == [made.op_type]


def test_what_is_made_of_nodes_of_models_keeps_no_promise_that_they_did_not() -> None:
    nodes = [node("Mul", ["x", "x"], ["q"]), node("ReduceSum", ["q", "axis"], ["y"])]
    found = classes(dmlc.compile(integers(*nodes, axis=np.array([1])), target="directml", allow=["range"]))
    assert not {"sum-of-parts", "wrapping-sum"} & set(found)


def test_hardmax_of_old_models_takes_all_axes_from_one_on() -> None:
    check(model([node("Hardmax", ["x"], ["y"], axis=1)], (2, 3, 4), opset=11), ["Hardmax"], opset=11)
