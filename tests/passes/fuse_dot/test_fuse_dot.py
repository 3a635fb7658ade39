"""``fuse-dot``: sums of products that are cheaper as one operator, their near misses, their numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fusion_helpers import check, classes, model, node, operators, reasons
from onnx import TensorProto, helper, numpy_helper

import dmlc
from tests.rows import each_row

RNG = np.random.default_rng(3)


def product(shape: Any, other: Any, axis: int | list[int], **options: Any) -> Any:
    """The sum of an input times a weight of shape ``other``."""
    total = node("ReduceSum", ["p", "a"], ["y"], keepdims=options.pop("keepdims", 0))
    factors = ["w", "x"] if options.pop("swapped", False) else ["x", "w"]
    w = RNG.standard_normal(other).astype(np.float32)
    return model([node("Mul", factors, ["p"]), total], shape, w=w, a=np.atleast_1d(axis), **options)


def two_inputs(shape: Any, other: Any, axis: int, dtype: int = TensorProto.FLOAT, **attributes: Any) -> Any:
    nodes = [node("Mul", ["x", "z"], ["p"]), node("ReduceSum", ["p", "a"], ["y"], keepdims=0, **attributes)]
    infos = [helper.make_tensor_value_info(name, dtype, s) for name, s in (("x", shape), ("z", other))]
    out = helper.make_tensor_value_info("y", dtype, None)
    graph = helper.make_graph(nodes, "g", infos, [out], [numpy_helper.from_array(np.array([axis]), "a")])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


# --- matmul-from-sum


@each_row("target", ["directml", "cpu", "onnx"])
@each_row("keepdims", [0, 1])
@each_row(
    ("shape", "other", "axis", "want"),
    [
        ((3, 4, 1), (4, 5), 1, ["Squeeze", "MatMul"]),
        ((3, 1, 4), (5, 4), 2, ["Squeeze", "MatMul"]),  # the weight is transposed here, not in the model
        ((2, 3, 1, 4), (2, 1, 5, 4), 3, ["Squeeze", "MatMul"]),
        ((1, 4, 3), (5, 4, 1), 1, ["Squeeze", "MatMul"]),
        ((2, 3, 4, 1), (4, 5), 2, ["Squeeze", "MatMul"]),
        ((2, 3, 1, 4), (5, 4), 3, ["Squeeze", "MatMul"]),
        ((4, 2, 1, 3, 1), (4, 1, 5, 1, 6), 0, None),
    ],
)
def test_a_contraction_is_a_matmul(
    shape: Any, other: Any, axis: int, want: list[str] | None, keepdims: int, target: str
) -> None:
    for swapped in (False, True) if target == "directml" else ((target == "cpu") is bool(keepdims),):
        m = product(shape, other, axis, keepdims=keepdims, swapped=swapped)
        found = operators(dmlc.compile(m, target=target))
        assert "MatMul" in found and "Mul" not in found and "ReduceSum" not in found
        if want is not None:
            assert found == (want if not keepdims else [*want, "Unsqueeze"])
        program = check(m, found, target=target)
        assert classes(program)["matmul-from-sum"] == "reassociates"


def test_factors_that_were_unsqueezed_for_it_need_no_move() -> None:
    nodes = [
        node("Unsqueeze", ["x", "two"], ["u"]),
        node("Unsqueeze", ["w", "zero"], ["v"]),
        node("Mul", ["u", "v"], ["p"]),
        node("ReduceSum", ["p", "a"], ["y"], keepdims=0),
    ]
    m = model(nodes, ("N", 4), w=np.ones((4, 5), np.float32), a=[1], two=[2], zero=[0])
    program = check(m, ["MatMul"], shape=(3, 4))
    assert {"matmul-from-sum"} <= set(classes(program))


def test_exact_leaves_the_sum() -> None:
    found = operators(dmlc.compile(product((3, 4, 1), (4, 5), 1), exact=True))
    assert found == ["Mul", "ReduceSum"]


@pytest.mark.parametrize(
    ("shape", "other", "axis", "words"),
    [
        ((3, 4), (3, 4), 1, "not larger than its factors"),
        ((3, 4), (4,), 1, "not larger than its factors"),
        ((3, 1), (1, 4), 1, "not over one that both factors have"),
        ((3, 1, 8), (1, 5, 8), 1, "not over one that both factors have"),
        ((2, 3, 4, 1), (4, 5), 3, "not over one that both factors have"),
        ((3, 4, 1, 6), (4, 5, 6), [1, 3], "over axes [1, 3]"),
    ],
)
def test_near_misses(shape: Any, other: Any, axis: Any, words: str) -> None:
    program = check(product(shape, other, axis), ["Mul", "ReduceSum"], target="onnx")
    assert words in reasons(program, "matmul-from-sum")


def test_integers_and_products_that_are_used_stay() -> None:
    m = model([node("Mul", ["x", "w"], ["p"]), node("ReduceSum", ["p", "a"], ["y"])], (3, 4, 1),
              dtype=TensorProto.INT32, w=np.ones((4, 5), np.int32), a=[1])  # fmt: skip
    check(m, ["Mul", "ReduceSum"], target="onnx")
    used = model([node("Mul", ["x", "w"], ["p"]), node("ReduceSum", ["p", "a"], ["y"])], (3, 4, 1),
                 outputs=("y", "p"), w=np.ones((4, 5), np.float32), a=[1])  # fmt: skip
    assert "p is used 2 times" in reasons(check(used, ["Mul", "ReduceSum"]), "matmul-from-sum")


def test_symbolic_rows_and_columns() -> None:
    program = dmlc.compile(two_inputs(("N", 4, 1), (1, 4, "M"), 1), target="onnx")
    assert "MatMul" in operators(program)
    x = RNG.standard_normal((3, 4, 1)).astype(np.float32)
    z = RNG.standard_normal((1, 4, 5)).astype(np.float32)
    got = program.run({"x": x, "z": z}, "cpu")["y"]
    np.testing.assert_allclose(got, (x * z).sum(1), rtol=1e-5, atol=1e-6)
    one = program.run({"x": x[:1], "z": z[:, :, :1]}, "cpu")["y"]
    np.testing.assert_allclose(one, (x[:1] * z[:, :, :1]).sum(1), rtol=1e-5, atol=1e-6)


@each_row("target", ["directml", "cpu", "onnx"])
@each_row(
    ("shape", "other", "axis", "want"),
    [
        ((1, 9, 4, 6), (2, 9, 1, 6), 1, "Mul"),  # three transposes for a product of 2 by 4
        ((1, 9, 12, 6), (12, 9, 1, 6), 1, "MatMul"),
        ((1, 9, 6, 6), (12, 9, 1, 6), 1, "MatMul"),  # 72 elements for 18
        ((1, 9, 5, 6), (12, 9, 1, 6), 1, "Mul"),
        ((6, 9, 4, 1), (6, 9, 1, 2), 1, "MatMul"),  # the batch comes first
    ],
)
def test_a_small_product_stays_where_its_factors_need_transposes(
    shape: Any, other: Any, axis: int, want: str, target: str
) -> None:
    program = dmlc.compile(product(shape, other, axis), target=target)
    check(product(shape, other, axis), operators(program), target=target)
    assert want in operators(program)
    stays = [r.reason() for r in program.remarks if r.rule == "matmul-from-sum" and "need transposes" in r.reason()]
    assert bool(stays) is (want == "Mul")


@pytest.mark.parametrize(
    ("shape", "other", "want"),
    [
        (("N", 1, 3, 2), (16, 3, 1), "Mul"),  # the factor is copied for each of the batch, which may be empty
        (("N", 1, 3, 8), (16, 3, 1), "MatMul"),
        (("N", 1, 3, 8), (2, 3, 1), "Mul"),
        ((5, 1, 3, 2), (16, 3, 1), "MatMul"),
        (("N", 3, 1), (1, 3, 2), "MatMul"),  # no batch
        ((1, "N", 2), (5, "N", 1), "Mul"),  # a sum over nothing
    ],
)
def test_a_size_that_may_be_0_costs_more_than_few_columns_save(shape: Any, other: Any, want: str) -> None:
    axis = len(shape) - 2
    m = two_inputs(shape, other, axis)
    program = dmlc.compile(m, target="onnx")
    assert want in operators(program)
    assert any("may be 0" in remark.reason() for remark in program.remarks) is (want == "Mul")
    sizes = [tuple([4 if size == "N" else size for size in one]) for one in (shape, other)]
    x, z = (RNG.standard_normal(one).astype(np.float32) for one in sizes)
    got = program.run({"x": x, "z": z}, "cpu")["y"]
    np.testing.assert_allclose(got, (x * z).sum(-2), rtol=1e-5, atol=1e-6)


# --- matmul-from-weighted-sum


@each_row("target", ["directml", "cpu", "onnx"])
@each_row("swapped", [False, True])
@each_row(
    ("shape", "other", "axis", "keepdims", "want"),
    [
        ((2, 4, 5), (4, 1), 1, 0, ["MatMul"]),
        ((2, 4, 5), (4, 1), 1, 1, ["MatMul"]),
        ((4, 5), (4, 1), 0, 0, ["MatMul"]),
        ((4, 5), (4, 1), 0, 1, ["MatMul"]),
        ((2, 4, 5), (2, 4, 1), 1, 0, ["MatMul", "Squeeze"]),
        ((2, 4, 5), (2, 4, 1), 1, 1, ["MatMul"]),
        ((2, 3, 4, 5), (3, 4, 1), 2, 1, ["MatMul"]),
        ((2, 4, 1), (2, 4, 5), 1, 1, ["Reshape", "MatMul"]),
        ((4, 1), (2, 4, 5), 1, 0, ["Squeeze", "MatMul"]),
        ((1, 4, 1), (2, 4, 5), 1, 0, ["Squeeze", "MatMul"]),
    ],
)
def test_a_weighted_sum_of_rows_is_a_vector_times_a_matrix(
    shape: Any, other: Any, axis: int, keepdims: int, want: list[str], swapped: bool, target: str
) -> None:
    m = product(shape, other, axis, keepdims=keepdims, swapped=swapped)
    program = check(m, want, target=target)
    assert classes(program)["matmul-from-weighted-sum"] == "reassociates"


@pytest.mark.parametrize(
    ("shape", "other", "axis"),
    [
        ((2, 5, 4), (4,), 2),  # a matrix times a column, which is slower
        ((2, 4, 5), (2, 1, 1), 0),  # the summed axis is not beside the columns
        ((2, 4, 5), (4, 1), 2),  # summed over what only one factor has
        ((2, 4, 5), (4, 5), 1),
    ],
)
def test_other_weighted_sums_stay(shape: Any, other: Any, axis: int) -> None:
    program = check(product(shape, other, axis), ["Mul", "ReduceSum"], target="onnx", skip_rules=["scale-after-sum"])
    assert "matmul-from-weighted-sum" not in classes(program)


@pytest.mark.parametrize("target", ["directml", "cpu", "onnx"])
def test_weights_of_an_expansion_stay_beside_it(target: str) -> None:
    """A matrix product would need all columns, and more nodes than there are."""
    nodes = [
        node("Expand", ["x", "s"], ["e"]),
        node("Mul", ["w", "e"], ["p"]),
        node("ReduceSum", ["p", "a"], ["y"], keepdims=0),
    ]
    w = RNG.standard_normal((5, 7, 1)).astype(np.float32)
    m = model(nodes, (5, 7, 1), w=w, s=np.array([5, 7, 9]), a=np.array([1]))
    program = check(m, ["Expand", "Mul", "ReduceSum"], target=target)
    found = [remark.reason() for remark in program.remarks if remark.rule == "matmul-from-weighted-sum"]
    assert any("is an expansion" in reason for reason in found)


def test_weights_of_a_symbolic_batch() -> None:
    program = dmlc.compile(two_inputs(("B", "T", 1), ("B", "T", 6), 1))
    assert operators(program) == ["Mul", "ReduceSum"], "a product of sizes that may be 0 needs pads, which cost more"
    assert any("may be 0" in remark.reason() for remark in program.remarks if remark.rule == "matmul-from-weighted-sum")
    for batch, time in ((2, 3), (1, 4), (3, 1)):
        x = RNG.standard_normal((batch, time, 1)).astype(np.float32)
        z = RNG.standard_normal((batch, time, 6)).astype(np.float32)
        got = program.run({"x": x, "z": z}, "cpu")["y"]
        np.testing.assert_allclose(got, (x * z).sum(1), rtol=1e-5, atol=1e-6)


# --- einsum-from-sum


@pytest.mark.parametrize(("axis", "equation"), [(1, "ab,ab->a"), (0, "ab,ab->b"), ([0, 1], "ab,ab->")])
def test_dot_products_are_one_operator_on_directml(axis: Any, equation: str) -> None:
    program = check(product((3, 8), (3, 8), axis), ["Einsum"])
    (made,) = program.to_onnx().graph.node
    assert helper.get_node_attr_value(made, "equation") == equation.encode()
    assert classes(program) == {"einsum-from-sum": "reassociates"}


def test_dot_products_of_symbolic_batches() -> None:
    program = dmlc.compile(two_inputs(("B", 8), ("B", 8), 1))
    assert operators(program) == ["Einsum"]
    x, z = RNG.standard_normal((2, 3, 8)).astype(np.float32)
    np.testing.assert_allclose(program.run({"x": x, "z": z}, "cpu")["y"], (x * z).sum(1), rtol=1e-5)


def test_dot_products_stay_where_einsum_is_no_better() -> None:
    for target in ("cpu", "onnx"):
        check(product((3, 8), (3, 8), 1), ["Mul", "ReduceSum"], target=target)
    assert "Einsum" not in dmlc.compile(product((3, 8), (3, 8), 1)).to_numpy()
    kept = check(product((3, 8), (3, 8), 1, keepdims=1), ["Mul", "ReduceSum"])
    assert "keeps its axes" in reasons(kept, "einsum-from-sum")
    broadcast = check(product((3, 8), (8,), 1), ["Mul", "ReduceSum"])
    assert "broadcasts a factor, [3, 8] or [1, 8]" in reasons(broadcast, "einsum-from-sum")
    half = dmlc.compile(two_inputs((3, 8), (3, 8), 1, TensorProto.FLOAT16))
    assert "Einsum" not in operators(half)
    old = dmlc.compile(product((3, 8), (3, 8), 1), opset=11)
    assert operators(old) == ["Mul", "ReduceSum"]


def test_a_sum_of_squares_is_no_dot_product() -> None:
    m = model([node("Mul", ["x", "x"], ["p"]), node("ReduceSum", ["p", "a"], ["y"], keepdims=0)], (3, 8), a=[1])
    check(m, ["ReduceSumSquare"])


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_nan_and_infinities_stay_in_their_rows(value: float) -> None:
    x = np.ones((3, 8), np.float32)
    x[1, 2] = value
    for m in (product((3, 8), (3, 8), 1), outer_products()):
        program = dmlc.compile(m)
        plain = dmlc.compile(m, only_rules=["dce"])
        np.testing.assert_allclose(program.run({"x": x}, "cpu")["y"], plain.run({"x": x}, "cpu")["y"], rtol=1e-5)


def outer_products() -> Any:
    """x[3, 8] times w[8, 4] as a sum of outer products."""
    w = np.abs(RNG.standard_normal((8, 4))).astype(np.float32)
    nodes = [node("Unsqueeze", ["x", "two"], ["u"]), node("Mul", ["u", "w"], ["p"])]
    return model([*nodes, node("ReduceSum", ["p", "a"], ["y"], keepdims=0)], (3, 8), w=w, a=[1], two=[2])
