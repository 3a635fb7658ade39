"""Plans for reductions on the cpu target: which is taken, what each makes, and that each gives the same numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from lowering_helpers import REDUCE_RULES, chosen, compiled, operators, result
from onnx import TensorProto, helper

import dmlc
from tests.rows import each_row

pytestmark = pytest.mark.usefixtures("by_one_calibration")

RNG = np.random.default_rng(0)
REDUCTIONS = {
    "sum": dmlc.reduce_sum,
    "mean": dmlc.reduce_mean,
    "max": dmlc.reduce_max,
    "min": dmlc.reduce_min,
}


def reduction(name: str, axes: Sequence[int], keepdims: bool = True) -> Any:
    return lambda x: REDUCTIONS[name](x, axes=axes, keepdims=keepdims)


# --- what is taken


@each_row("name", REDUCTIONS)
@each_row("axes", [[0, 2], [1, 3]])
def test_axes_that_stand_apart_are_a_chain(name: str, axes: list[int]) -> None:
    program = compiled(reduction(name, axes), (8, 64, 128, 128))
    assert chosen(program)[0] in ("reduce-inner-first", "reduce-outer-first")
    classes = {e.rewrite_class for e in program.ledger if e.rule in REDUCE_RULES}
    assert classes == {"exact" if name in ("max", "min") else "reassociates"}
    for target in ("directml", "onnx"):
        assert len(operators(compiled(reduction(name, axes), (8, 64, 128, 128), target=target))) == 1


@pytest.mark.parametrize("name", REDUCTIONS)
def test_small_ones_stay_one_node(name: str) -> None:
    for shape, axes in (((2, 3, 4, 5), [0, 2]), ((1, 10, 10, 10), [1, 2, 3]), ((64, 64), [1]), ((1, 1000), [1])):
        program = compiled(reduction(name, axes), shape)
        assert len(operators(program)) == 1, (shape, axes, operators(program))


@pytest.mark.parametrize(
    ("axes", "rule"), [([1], "reduce-in-steps"), ([2, 3], "reduce-in-steps"), ([1, 2, 3], "sum-blocks-first")]
)
def test_long_rows_are_added_in_parts(axes: list[int], rule: str) -> None:
    shape = (4096, 1024) if axes == [1] else (8, 64, 128, 128)
    assert chosen(compiled(reduction("sum", axes), shape)) == [rule]
    assert chosen(compiled(reduction("mean", axes), shape)) == [rule]
    assert chosen(compiled(reduction("max", axes), shape)) == []


@pytest.mark.parametrize(
    ("shape", "parts"), [((512, 16384), [512, 32, 512]), ((512, 4096), [512, 16, 256]), ((4096, 1024), [4096, 4, 256])]
)
def test_the_parts_of_a_row_are_longer_where_it_is(shape: tuple[int, ...], parts: list[int]) -> None:
    (entry,) = (e for e in compiled(reduction("mean", [1]), shape).ledger if e.rule == "reduce-in-steps")
    assert len(entry.after) == 4
    first = compiled(reduction("mean", [1]), shape).to_onnx().graph
    view = next(i for i in first.initializer if i.name == first.node[0].input[1])
    assert onnx.numpy_helper.to_array(view).tolist() == parts


@pytest.mark.parametrize("name", ["sum", "mean"])
def test_blocks_come_first_only_where_few_of_them_are_written(name: str) -> None:
    """A tensor from memory, read in runs that are as long as what is written for each row."""
    rules = [chosen(compiled(reduction(name, [1]), (rows, 2**23 // rows))) for rows in (8, 64, 512, 4096)]
    assert [rule[0] for rule in rules] == ["sum-blocks-first"] * 2 + ["reduce-in-steps"] * 2


@pytest.mark.parametrize("name", ["sum", "mean"])
@pytest.mark.parametrize(("shape", "times"), [((64, 16384), 2), ((256, 1024), 1), ((8, 131072), 2)])
def test_long_rows_in_parts_are_rounded_less(name: str, shape: tuple[int, ...], times: int) -> None:
    x = np.random.default_rng(1).random(shape, np.float32) + np.float32(0.5)
    wide = getattr(x.astype(np.float64), name)(1)

    def error(found: np.ndarray) -> float:
        return float((np.abs(found - wide) / wide).max())

    in_parts, one_node = (
        error(result(compiled(reduction(name, [1], False), shape, only_rules=rules), x))
        for rules in (["reduce-in-steps"], [])
    )
    assert in_parts * times < one_node
    assert in_parts < 1.25 * max(error(getattr(x, name)(1)), 2.0**-23)


def test_a_pooling_of_everything_is_a_reduction_where_that_is_exact() -> None:
    program = dmlc.compile(model("GlobalMaxPool", [8, 64, 32, 32]), target="cpu")
    assert operators(program) == ["ReduceMax"]
    assert [e.rewrite_class for e in program.ledger if e.rule == "reduce-for-pool"] == ["exact"]
    data = RNG.random((8, 64, 32, 32), np.float32)
    np.testing.assert_array_equal(result(program, data), data.max((2, 3), keepdims=True))
    for op, target in (("GlobalMaxPool", "directml"), ("GlobalAveragePool", "cpu")):
        assert operators(dmlc.compile(model(op, [8, 64, 32, 32]), target=target)) == [op]


def test_a_scalar_is_reduced_over_nothing() -> None:
    g = dmlc.Graph("m")
    g.output("y", dmlc.reduce_sum(g.input("x", dtype="float32", shape=())))
    program = dmlc.compile(g, target="cpu")
    assert program.run({"x": np.float32(3)}, "cpu")["y"] == 3


def test_a_maximum_over_the_first_axis_goes_in_steps() -> None:
    program = compiled(reduction("max", [0]), (8192, 1024))
    assert chosen(program) == ["reduce-in-steps"]
    assert operators(program).count("ReduceMax") > 2
    (reason,) = [r.reason() for r in program.remarks if r.rule == "choose-lowering"]
    assert reason.startswith("reduce-in-steps ") and "unchanged " in reason


def test_a_sum_over_the_first_axis_is_a_product() -> None:
    program = compiled(reduction("sum", [0]), (8, 128, 64, 64))
    assert operators(program) == ["Reshape", "MatMul", "Reshape"]
    assert chosen(compiled(reduction("mean", [0], False), (256, 256))) == ["sum-by-product"]
    assert chosen(compiled(reduction("max", [0]), (4, 4096))) == []


def test_axes_of_size_1_are_reduced_too() -> None:
    program = compiled(reduction("max", [1]), (1, 16, 32, 32))
    assert chosen(program)[0] == "reduce-ones-too"
    assert operators(program)[0] != "Reshape"
    dropped = compiled(reduction("max", [1], False), (1, 16, 32, 32))
    x = RNG.standard_normal((1, 16, 32, 32)).astype(np.float32)
    np.testing.assert_array_equal(result(dropped, x), x.max(1))
    np.testing.assert_array_equal(result(program, x), x.max(1, keepdims=True))


def test_only_what_is_allowed() -> None:
    assert chosen(compiled(reduction("sum", [0, 2]), (8, 64, 128, 128), exact=True)) == []
    assert chosen(compiled(reduction("max", [0, 2]), (8, 64, 128, 128), exact=True)) != []
    assert chosen(compiled(reduction("sum", [0, 2]), (8, 64, 128, 128), skip_rules=REDUCE_RULES)) == []


def test_a_first_group_of_sums_that_will_be_a_product_goes_first() -> None:
    for shape in ((64, 3, 224, 224), (8, 64, 128, 128)):
        assert chosen(compiled(reduction("sum", [0, 2]), shape)) == ["reduce-outer-first", "sum-by-product"]


@pytest.mark.parametrize("op", ["sum", "mean", "max"])
def test_a_few_numbers_are_one_node(op: str) -> None:
    program = compiled(reduction(op, [1, 3], False), (1, 10, 10, 10))
    assert len(operators(program)) == 1


def test_maxima_over_axes_that_stand_apart_are_read_in_long_runs() -> None:
    assert chosen(compiled(reduction("max", [0, 2]), (64, 3, 224, 224))) == ["reduce-outer-first", "reduce-in-steps"]
    assert chosen(compiled(reduction("max", [0, 2]), (16, 3, 32, 32)))[0] == "reduce-inner-first"


def test_open_sizes_take_what_is_never_worse() -> None:
    program = compiled(reduction("sum", [0, 2]), ("N", 64, 128, 128))
    assert "reduce-inner-first" in chosen(program)
    x = RNG.random((3, 64, 128, 128), np.float32)
    np.testing.assert_allclose(result(program, x), x.sum((0, 2), keepdims=True), rtol=1e-5)


# --- the numbers


SHAPES: list[tuple[tuple[int, ...], list[int]]] = [
    ((4, 6, 8, 10), [0, 2]),
    ((4, 6, 8, 10), [1, 3]),
    ((1, 6, 1, 10), [1, 3]),
    ((5, 1, 7, 1), [0]),
    ((1, 1, 9), [2]),
    ((2, 3, 4, 5, 6), [0, 2, 4]),
    ((3, 512), [1]),
    ((128, 6), [0]),
    ((3, 64, 5), [1]),
    ((1, 64, 5), [1]),
    ((2, 1, 300, 4), [0, 2]),
    ((2, 64, 3, 600), [1, 3]),
]


@each_row("rule", REDUCE_RULES)
@each_row(("shape", "axes"), SHAPES, ids=str)
@each_row("name", ["mean", "max"])
def test_every_plan_gives_the_same_numbers(rule: str, shape: tuple[int, ...], axes: list[int], name: str) -> None:
    x = RNG.standard_normal(shape).astype(np.float32)
    for keepdims in (True, False):
        program = compiled(reduction(name, axes, keepdims), shape, only_rules=[rule])
        want = getattr(x, name)(tuple(axes), keepdims=keepdims)
        got = result(program, x)
        assert got.shape == want.shape and got.dtype == want.dtype
        if name == "max":
            np.testing.assert_array_equal(got, want)
        else:
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("rule", REDUCE_RULES)
def test_half_precision_is_rounded_once(rule: str) -> None:
    """Partial sums far beyond f16 leave no infinity, and the result is that of f32."""
    for shape, axes in (((4, 8, 64, 16), [0, 2]), ((1, 512), [1]), ((64, 6), [0])):
        x = (RNG.standard_normal(shape) * 2000).astype(np.float16)
        program = compiled(reduction("mean", axes), shape, "float16", only_rules=[rule])
        want = x.astype(np.float32).mean(tuple(axes), keepdims=True).astype(np.float16)
        np.testing.assert_allclose(result(program, x), want, rtol=1e-3, atol=0.5)


def test_infinities_and_integers() -> None:
    x = RNG.standard_normal((4, 16, 8, 16)).astype(np.float32)
    x[0, :, 1] = -np.inf
    x[1, 2] = np.inf
    for rule in REDUCE_RULES:
        got = result(compiled(reduction("max", [0, 2]), x.shape, only_rules=[rule]), x)
        np.testing.assert_array_equal(got, x.max((0, 2), keepdims=True))
    whole = RNG.integers(-100, 100, (16, 8, 16, 8)).astype(np.int32)
    for rule in REDUCE_RULES:
        for name in ("max", "sum"):
            program = compiled(reduction(name, [0, 2]), whole.shape, "int32", only_rules=[rule])
            want = getattr(whole, name)((0, 2), keepdims=True)
            np.testing.assert_array_equal(result(program, whole), want)
            assert name == "max" or chosen(program) == []


@pytest.mark.parametrize("axes", [[0, 2], [2, 3], [1, 2, 3]])
def test_sums_are_as_close_as_those_of_numpy(axes: list[int]) -> None:
    """Pairwise sums differ by chance; a sum in one go is ten times as far off."""
    x = RNG.random((8, 16, 128, 128), np.float32)
    exact = x.sum(tuple(axes), keepdims=True, dtype=np.float64)
    got = result(compiled(reduction("sum", axes), x.shape), x)
    error, theirs = (np.abs(v / exact - 1).max() for v in (got, x.sum(tuple(axes), keepdims=True)))
    assert error <= max(theirs, 2 * 2.0**-24) * 1.5


def model(op_type: str, shape: list[int], **attributes: Any) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", shape), ("y", None)))
    graph = helper.make_graph([helper.make_node(op_type, ["x"], ["y"], **attributes)], "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def test_a_model_is_lowered_too() -> None:
    program = dmlc.compile(model("ReduceMean", [8, 64, 128, 128], axes=[0, 2], keepdims=0), target="cpu")
    assert chosen(program) == ["reduce-outer-first", "sum-by-product"]
    data = RNG.random((8, 64, 128, 128), np.float32)
    np.testing.assert_allclose(result(program, data), data.mean((0, 2)), rtol=1e-5)


@pytest.mark.parametrize("rule", REDUCE_RULES)
def test_what_may_be_empty(rule: str) -> None:
    g = dmlc.Graph("m")
    g.dim("N", min=0, max=64)
    x = g.input("x", dtype="float32", shape=("N", 4, 600))
    g.output("y", dmlc.reduce_sum(x, axes=[0, 2]))
    g.output("z", dmlc.reduce_max(x, axes=[2]))
    program = dmlc.compile(g, target="cpu", only_rules=[rule])
    for size in (0, 2):
        data = RNG.standard_normal((size, 4, 600)).astype(np.float32)
        out = program.run({"x": data}, "cpu")
        np.testing.assert_allclose(out["y"], data.sum((0, 2), keepdims=True), rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(out["z"], data.max(2, keepdims=True, initial=-np.inf))
