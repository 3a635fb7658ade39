"""``recognize-reduce``: every spelling, its near misses, its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from fusion_helpers import check, classes, model, node, reasons
from onnx import TensorProto

Nodes = list[onnx.NodeProto]
SQUARES = {
    "x * x": [node("Mul", ["x", "x"], ["q"])],
    "x ** 2": [node("Pow", ["x", "two"], ["q"])],
}
SUM = node("ReduceSum", ["q", "a"], ["s"], keepdims=1)


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("square", SQUARES)
def test_sums_of_squares_and_their_roots(square: str, keepdims: int) -> None:
    total = node("ReduceSum", ["q", "a"], ["s"], keepdims=keepdims)
    weights: dict[str, Any] = {"a": [1]}
    if square == "x ** 2":
        weights["two"] = np.float32(2)
    plain = [*SQUARES[square], total]
    check(model(plain, outputs=("s",), **weights), ["ReduceSumSquare"])
    check(model([*plain, node("Sqrt", ["s"], ["y"])], **weights), ["ReduceL2"])
    half = [*plain, node("Pow", ["s", "half"], ["y"])]
    check(model(half, half=np.float32(0.5), **weights), ["ReduceL2"])


def test_integers_too() -> None:
    m = model([*SQUARES["x * x"], SUM], outputs=("s",), dtype=TensorProto.INT32, a=[1])
    program = check(m, ["ReduceSumSquare"], target="onnx")
    assert classes(program)["sum-of-squares"] == "exact"


def test_sums_of_magnitudes_and_logarithms() -> None:
    check(model([node("Abs", ["x"], ["q"]), SUM], outputs=("s",), a=[0]), ["ReduceL1"])
    nodes = [node("Exp", ["x"], ["e"]), node("Mul", ["e", "e"], ["p"]), node("ReduceSum", ["p", "a"], ["s"]),
             node("Log", ["s"], ["y"])]  # fmt: skip
    program = check(model(nodes, a=[0]), ["Exp", "ReduceSumSquare", "Log"])
    assert "log-of-sum" not in classes(program)
    check(model([node("Relu", ["x"], ["r"]), node("ReduceSum", ["r", "a"], ["s"]), node("Log", ["s"], ["y"])], a=[1]),
          ["Relu", "ReduceLogSum"])  # fmt: skip


@pytest.mark.parametrize(
    ("nodes", "want"),
    [
        ([node("Mul", ["x", "w"], ["q"]), SUM], ["Mul", "ReduceSum"]),
        ([node("Pow", ["x", "three"], ["q"]), SUM], ["Pow", "ReduceSum"]),
        ([node("Mul", ["x", "x"], ["q"]), node("ReduceMean", ["q"], ["s"], axes=[1])], ["Mul", "ReduceMean"]),
    ],
)
def test_near_misses_of_squares(nodes: Nodes, want: list[str]) -> None:
    weights = {"w": np.ones((3, 4), np.float32) * 2, "three": np.float32(3), "a": [1]}
    used = {name for n in nodes for name in n.input}
    check(model(nodes, outputs=("s",), **{k: v for k, v in weights.items() if k in used}), want)


def test_what_is_used_elsewhere_stays() -> None:
    program = check(model([*SQUARES["x * x"], SUM], outputs=("s", "q"), a=[1]), ["Mul", "ReduceSum"])
    assert "q is used 2 times" in reasons(program, "sum-of-squares")


# --- means


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_a_sum_over_its_count(shape: tuple[int, ...]) -> None:
    total = node("ReduceSum", ["x", "a"], ["s"], keepdims=1)
    check(model([total, node("Div", ["s", "n"], ["y"])], a=[1], n=np.full(shape, 4, np.float32)), ["ReduceMean"])
    inverse = np.full(shape, 1 / 3, np.float32)
    check(model([total, node("Mul", ["n", "s"], ["y"])], a=[0], n=inverse), ["ReduceMean"])


@pytest.mark.parametrize(
    ("shape", "number", "words"),
    [((3, 4), 5, "is not the number of elements, 4"), (("n", 4), 3, "only for some sizes"), ((3, 4), -4, "is not")],
)
def test_another_divisor_is_no_mean(shape: Any, number: float, words: str) -> None:
    axis = 0 if shape[0] == "n" else 1
    nodes = [node("ReduceSum", ["x", "a"], ["s"]), node("Div", ["s", "n"], ["y"])]
    program = check(model(nodes, shape, a=[axis], n=np.float32(number)), ["ReduceSum", "Div"], shape=(3, 4))
    assert words in reasons(program, "mean-from-sum")


def test_integers_have_no_mean() -> None:
    nodes = [node("ReduceSum", ["x", "a"], ["s"]), node("Div", ["s", "n"], ["y"])]
    check(model(nodes, dtype=TensorProto.INT32, a=[1], n=np.int32(4)), ["ReduceSum", "Div"], target="onnx")


# --- log-sum-exp

PLAIN = [node("Exp", ["x"], ["e"]), node("ReduceSum", ["e", "a"], ["s"], keepdims=1), node("Log", ["s"], ["y"])]


def shifted(keepdims: int = 1, back: str = "m") -> Nodes:
    squeeze = [node("Squeeze", ["m", "a"], ["m0"])] if not keepdims else []
    return [
        node("ReduceMax", ["x"], ["m"], axes=[1], keepdims=1),
        node("Sub", ["x", "m"], ["d"]),
        node("Exp", ["d"], ["e"]),
        node("ReduceSum", ["e", "a"], ["s"], keepdims=keepdims),
        node("Log", ["s"], ["l"]),
        *squeeze,
        node("Add", ["l", back if keepdims else "m0"], ["y"]),
    ]


@pytest.mark.parametrize("nodes", [PLAIN, shifted(), shifted(0)])
def test_log_sum_exp_is_one_node_where_it_stays_one(nodes: Nodes) -> None:
    check(model(nodes, a=[1]), ["ReduceLogSumExp"], target="onnx")


def test_on_directml_it_stays_as_it_is_written() -> None:
    """Its own operator takes no maximum out: the plain form overflows alike, the shifted one may not be lost."""
    check(model(PLAIN, a=[1]), ["Exp", "ReduceLogSum"])
    check(model(shifted(), a=[1]), ["ReduceMax", "Sub", "Exp", "ReduceLogSum", "Add"])


def test_on_directml_the_operator_is_written_with_the_shift() -> None:
    m = model([node("ReduceLogSumExp", ["x", "a"], ["y"], keepdims=1)], opset=18, a=[1])
    large = np.full((3, 4), 200, np.float32)
    program = check(m, ["ReduceMax", "Max", "Min", "Sub", "Exp", "ReduceSum", "Log", "Add"], feeds=[large])
    assert np.isfinite(program.run({"x": large}, "cpu")["y"]).all()
    check(m, ["ReduceLogSumExp"], target="onnx")


@pytest.mark.parametrize(
    ("nodes", "want"),
    [
        ([*PLAIN[:1], node("ReduceMean", ["e"], ["s"], axes=[1]), PLAIN[-1]], ["Exp", "ReduceMean", "Log"]),
        (shifted(back="x"), ["ReduceMax", "Sub", "Exp", "ReduceLogSum", "Add"]),
        ([node("ReduceMax", ["x"], ["m"], axes=[0], keepdims=1), *shifted()[1:]],
         ["ReduceMax", "Sub", "Exp", "ReduceLogSum", "Add"]),
    ],
)  # fmt: skip
def test_near_misses_of_log_sum_exp(nodes: Nodes, want: list[str]) -> None:
    weights = {"a": [1]} if any("a" in n.input for n in nodes) else {}
    check(model(nodes, **weights), want, target="onnx")
