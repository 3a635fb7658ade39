"""Variances and deviations that stay written out: how few nodes they take, near misses, numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from fusion_helpers import check, classes, model, node, reasons
from onnx import TensorProto

Nodes = list[onnx.NodeProto]
F = np.float32
CENTRED = ["ReduceMean", "Sub"]
UNBIASED = [node("Mul", ["v", "n"], ["a"]), node("Div", ["a", "less"], ["u"])]


def variance(*tail: onnx.NodeProto, keepdims: int = 1, square: str = "Mul") -> Nodes:
    return [
        node("ReduceMean", ["x"], ["m"], axes=[1], keepdims=1),
        node("Sub", ["x", "m"], ["d"]),
        node("Mul", ["d", "d"], ["q"]) if square == "Mul" else node("Pow", ["d", "two"], ["q"]),
        node("ReduceMean", ["q"], ["v"], axes=[1], keepdims=keepdims),
        *tail,
    ]


def built(nodes: Nodes, shape: tuple[Any, ...] = (3, 8), dtype: Any = F, **extra: Any) -> onnx.ModelProto:
    """``n`` elements, and one less."""
    used = {name for n in nodes for name in n.input}
    constants = {"n": dtype(8), "less": dtype(7), "two": dtype(2), "axis": np.array([1]), "eps": dtype(1e-3)}
    kept = {k: v for k, v in constants.items() if k in used}
    outputs = extra.pop("outputs", ("y",))
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    return model(nodes, shape, outputs=outputs, dtype=kind, **{**kept, **extra})


@pytest.mark.parametrize("square", ["Mul", "Pow"])
def test_an_unbiased_variance(square: str) -> None:
    nodes = variance(node("Mul", ["v", "n"], ["a"]), node("Div", ["a", "less"], ["y"]), square=square)
    program = check(built(nodes), [*CENTRED, "ReduceSumSquare", "Div"])
    assert classes(program) == {"scaled-statistic": "reassociates"}


def test_an_unbiased_variance_of_one_factor() -> None:
    nodes = variance(node("Mul", ["ratio", "v"], ["y"]))
    check(built(nodes, ratio=F(8 / 7)), [*CENTRED, "ReduceSumSquare", "Mul"])


@pytest.mark.parametrize("root", ["Sqrt", "Pow"])
def test_an_unbiased_deviation(root: str) -> None:
    last = node("Sqrt", ["u"], ["y"]) if root == "Sqrt" else node("Pow", ["u", "half"], ["y"])
    extra = {"half": F(0.5)} if root == "Pow" else {}
    program = check(built(variance(*UNBIASED, last), **extra), [*CENTRED, "ReduceL2", "Mul"])
    assert classes(program)["root-of-statistic"] == "reassociates"


def test_a_biased_deviation() -> None:
    check(built(variance(node("Sqrt", ["v"], ["y"]))), [*CENTRED, "ReduceL2", "Mul"])


def test_standardisation_with_its_axis_put_back() -> None:
    tail = [
        *UNBIASED,
        node("Unsqueeze", ["u", "axis"], ["k"]),
        node("Sqrt", ["k"], ["s"]),
        node("Add", ["s", "eps"], ["e"]),
        node("Div", ["d", "e"], ["y"]),
    ]
    check(built(variance(*tail, keepdims=0)), [*CENTRED, "ReduceL2", "Mul", "Add", "Div"])


def test_over_two_axes() -> None:
    nodes = [
        node("Mul", ["x", "x"], ["q"]),
        node("ReduceMean", ["q"], ["v"], axes=[0, 2], keepdims=0),
        *UNBIASED,
        node("Sqrt", ["u"], ["y"]),
    ]
    check(built(nodes, (2, 3, 4)), ["ReduceL2", "Mul"])


def test_variance_and_deviation_of_one_input_share_their_sum() -> None:
    nodes = variance(*UNBIASED, node("Sqrt", ["u"], ["y"]))
    check(built(nodes, outputs=("u", "y")), [*CENTRED, "ReduceSumSquare", "Div", "Sqrt"])
    # written twice, as an exporter does
    again = [onnx.NodeProto.FromString(n.SerializeToString()) for n in nodes[:-2]]
    for n in again:
        n.input[:] = [f"{i}2" if i in "mdqva" else i for i in n.input]
        n.output[:] = [f"{o}2" for o in n.output]
    twice = [*nodes, *again, node("Div", ["a2", "less"], ["u2"])]
    check(built(twice, outputs=("u2", "y")), [*CENTRED, "ReduceSumSquare", "Div", "Sqrt"])


def test_a_biased_and_an_unbiased_variance_share_their_mean() -> None:
    check(built(variance(*UNBIASED), outputs=("u", "v")), [*CENTRED, "Mul", "ReduceMean", "Mul"])


def test_sums_and_means() -> None:
    def scaled(op: str, *steps: tuple[str, float]) -> onnx.ModelProto:
        nodes, value, extra = [node(op, ["x"], ["r"], keepdims=0)], "r", {}
        for i, (kind, number) in enumerate(steps):
            extra[f"c{i}"] = F(number)
            nodes.append(node(kind, [value, f"c{i}"], [f"s{i}"]))
            value = f"s{i}"
        nodes[-1].output[0] = "y"
        return built(nodes, **extra)

    check(scaled("ReduceMean", ("Mul", 24)), ["ReduceSum"])
    check(scaled("ReduceSum", ("Mul", 2), ("Div", 48)), ["ReduceMean"])
    check(scaled("ReduceSum", ("Mul", 3), ("Div", 6)), ["ReduceSum", "Div"])
    check(scaled("ReduceMean", ("Mul", 3), ("Mul", -1.5)), ["ReduceMean", "Mul"])
    check(scaled("ReduceMean", ("Mul", 3)), ["ReduceMean", "Mul"])


@pytest.mark.parametrize(
    "last",
    [
        node("Div", ["a", "zero"], ["y"]),  # one element: divided by 0
        node("Div", ["less", "a"], ["y"]),  # one over it
        node("Div", ["a", "row"], ["y"]),  # broadcast
        node("Add", ["a", "less"], ["y"]),
    ],
)
def test_the_last_step_is_no_factor(last: onnx.NodeProto) -> None:
    extra = {name: value for name, value in (("zero", F(0)), ("row", np.full((1, 1, 1), 7, F))) if name in last.input}
    nodes = variance(node("Mul", ["v", "n"], ["a"]), last)
    check(built(nodes, **extra), [*CENTRED, "ReduceSumSquare", last.op_type])


def test_a_factor_of_zero_keeps_what_is_not_a_number() -> None:
    nodes = variance(node("Mul", ["v", "zero"], ["a"]), node("Div", ["a", "less"], ["y"]))
    x = np.arange(24, dtype=F).reshape(3, 8)
    x[1, 2], x[2, 3] = np.nan, np.inf
    check(built(nodes, zero=F(0)), [n.op_type for n in nodes], feeds=[x])


def test_what_is_not_a_number_comes_through() -> None:
    x = np.arange(24, dtype=F).reshape(3, 8)
    x[1, 2], x[2, 3] = np.nan, -np.inf
    check(built(variance(*UNBIASED, node("Sqrt", ["u"], ["y"]))), [*CENTRED, "ReduceL2", "Mul"], feeds=[x])


def test_a_negative_factor_under_the_root_stays() -> None:
    nodes = variance(node("Mul", ["v", "minus"], ["a"]), node("Sqrt", ["a"], ["y"]))
    check(built(nodes, minus=F(-2)), [*CENTRED, "ReduceSumSquare", "Div", "Sqrt"], feeds=[np.zeros((3, 8), F)])


def test_what_is_used_elsewhere_stays() -> None:
    nodes = variance(*UNBIASED, node("Sqrt", ["u"], ["y"]))
    check(built(nodes, outputs=("y", "q")), [*CENTRED, "Mul", "ReduceMean", "Mul", "Sqrt"])
    check(built(nodes, outputs=("y", "a")), [*CENTRED, "ReduceSumSquare", "Div", "Sqrt"])


def test_factors_are_multiplied_where_the_count_is_not_known() -> None:
    nodes = variance(*UNBIASED, node("Sqrt", ["u"], ["y"]))
    check(built(nodes, ("N", "M")), [*CENTRED, "Mul", "ReduceMean", "Mul", "Sqrt"], shape=(3, 8))


def test_a_factor_out_of_range_stays() -> None:
    nodes = variance(node("Mul", ["v", "big"], ["a"]), node("Mul", ["a", "big"], ["y"]))
    program = check(built(nodes, big=F(1e30)), [n.op_type for n in nodes], feeds=[np.ones((3, 8), F)])
    assert "out of the range of f32" in reasons(program, "scaled-statistic")


def test_halves_on_directml_only_where_a_sum_was_as_large() -> None:
    half = np.float16
    unbiased = built(variance(node("Mul", ["v", "n"], ["a"]), node("Div", ["a", "less"], ["y"])), dtype=half)
    check(unbiased, [*CENTRED, "ReduceSumSquare", "Div"])
    ratio = built(variance(node("Mul", ["v", "r"], ["y"])), dtype=half, r=half(0.5))
    program = check(ratio, [*CENTRED, "Mul", "ReduceMean", "Mul"])
    assert "may overflow where their mean does not" in reasons(program, "scaled-statistic")
    check(built(variance(node("Sqrt", ["v"], ["y"])), dtype=half), [*CENTRED, "ReduceL2", "Mul"])
    # elsewhere new nodes of f16 stand between casts
    check(unbiased, [n.op_type for n in unbiased.graph.node], target="cpu")


def test_integers_stay() -> None:
    nodes = [node("ReduceMean", ["x"], ["r"], axes=[1], keepdims=1), node("Mul", ["r", "k"], ["y"])]
    check(model(nodes, (3, 4), dtype=TensorProto.INT32, k=np.int32(4)), ["ReduceMean", "Mul"], target="onnx")


def test_numpy_code_takes_them_too() -> None:
    import dmlc

    nodes = variance(*UNBIASED, node("Sqrt", ["u"], ["y"]))
    program = dmlc.compile(built(nodes), target="numpy")
    assert {"root-of-statistic"} <= set(classes(program))
    x = np.random.default_rng(3).normal(size=(3, 8)).astype(F)
    np.testing.assert_allclose(program.run({"x": x}, "numpy")["y"], x.std(1, ddof=1, keepdims=True), rtol=1e-5)
