"""``fuse-softmax``: every spelling, its near misses, its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from fusion_helpers import check, classes, model, node, reasons

Nodes = list[onnx.NodeProto]


def written(axis: int = -1, *, swapped: bool = False, reciprocal: bool = False, negated: bool = False) -> Nodes:
    shift = [node("Sub", ["x", "m"], ["d"])]
    if negated:
        shift = [node("Neg", ["m"], ["n"]), node("Add", ["n", "x"] if swapped else ["x", "n"], ["d"])]
    end = [node("Div", ["e", "s"], ["y"])]
    if reciprocal:
        end = [node("Reciprocal", ["s"], ["r"]), node("Mul", ["r", "e"] if swapped else ["e", "r"], ["y"])]
    return [
        node("ReduceMax", ["x"], ["m"], axes=[axis], keepdims=1),
        *shift,
        node("Exp", ["d"], ["e"]),
        node("ReduceSum", ["e", "axis"], ["s"], keepdims=1),
        *end,
    ]


@pytest.mark.parametrize("axis", [-1, 0, 1])
@pytest.mark.parametrize("spelling", [{}, {"reciprocal": True}, {"negated": True}, {"negated": True, "swapped": True}])
def test_with_the_maximum_taken_out(axis: int, spelling: Any) -> None:
    program = check(model(written(axis, **spelling), axis=[axis]), ["Softmax"])
    assert classes(program)["written-out-softmax"] == "reassociates"


def test_moves_between_are_looked_through() -> None:
    """As JAX writes it: reductions that drop their axis, a maximum with -inf, reshapes and expands."""
    nodes = [
        node("ReduceMax", ["x"], ["m"], axes=[1], keepdims=0),
        node("Max", ["low", "m"], ["m1"]),
        node("Reshape", ["m1", "column"], ["m2"]),
        node("Expand", ["m2", "full"], ["m3"]),
        node("Sub", ["x", "m3"], ["d"]),
        node("Exp", ["d"], ["e"]),
        node("ReduceSum", ["e", "one"], ["s"], keepdims=0),
        node("Unsqueeze", ["s", "one"], ["s1"]),
        node("Expand", ["s1", "full"], ["s2"]),
        node("Div", ["e", "s2"], ["y"]),
    ]
    check(model(nodes, low=np.float32(-np.inf), column=[3, 1], full=[3, 4], one=[1]), ["Softmax"])


def test_two_axes_at_once() -> None:
    nodes = [
        node("ReduceMax", ["x"], ["m"], axes=[1, 2], keepdims=1),
        node("Sub", ["x", "m"], ["d"]),
        node("Exp", ["d"], ["e"]),
        node("ReduceSum", ["e", "axes"], ["s"], keepdims=1),
        node("Div", ["e", "s"], ["y"]),
    ]
    check(model(nodes, (2, 3, 4), axes=[1, 2]), ["Reshape", "Softmax", "Reshape"])


def test_the_logarithm_too() -> None:
    nodes = [*written()[:-1], node("Log", ["s"], ["l"]), node("Sub", ["d", "l"], ["y"])]
    program = check(model(nodes, axis=[-1]), ["LogSoftmax"])
    assert classes(program)["written-out-softmax"] == "reassociates"


@pytest.mark.parametrize(
    ("nodes", "weights", "words"),
    [
        ([node("ReduceMax", ["x"], ["m"], axes=[0], keepdims=1), *written()[1:]], {}, "the maximum is over axes [0]"),
        ([*written()[:-2], node("Add", ["s0", "one"], ["s"]), node("ReduceSum", ["e", "axis"], ["s0"], keepdims=1),
          written()[-1]], {"one": np.float32(1)}, ""),
        ([*written()[:-1], node("Exp", ["x"], ["f"]), node("Div", ["f", "s"], ["y"])], {}, "not the same powers"),
        ([*written()[:3], node("ReduceMean", ["e"], ["s"], axes=[-1], keepdims=1), written()[-1]], {}, ""),
    ],
)  # fmt: skip
def test_near_misses(nodes: Nodes, weights: Any, words: str) -> None:
    m = model(nodes, axis=[-1], **weights)
    program = check(m, [n.op_type for n in _sorted(m).graph.node])
    assert words in reasons(program, "written-out-softmax")


def _sorted(m: onnx.ModelProto) -> onnx.ModelProto:
    import dmlc

    return dmlc.compile(m, only_rules=["dce"]).to_onnx()


def test_an_intermediate_that_is_an_output_stays() -> None:
    m = model(written(), outputs=("y", "s"), axis=[-1])
    program = check(m, ["ReduceMax", "Sub", "Exp", "ReduceSum", "Div"])
    assert "s is used outside" in reasons(program, "written-out-softmax")


def test_without_the_shift_only_where_range_is_allowed() -> None:
    nodes = [node("Exp", ["x"], ["e"]), node("ReduceSum", ["e", "axis"], ["s"]), node("Div", ["e", "s"], ["y"])]
    check(model(nodes, axis=[-1]), ["Exp", "ReduceSum", "Div"], feeds=[np.full((3, 4), 100, np.float32)])
    program = check(model(nodes, axis=[-1]), ["Softmax"], allow=["range"])
    assert classes(program)["written-out-softmax"] == "range"


def test_the_logarithm_of_a_softmax_only_where_range_is_allowed() -> None:
    nodes = [node("Softmax", ["x"], ["s"], axis=-1), node("Log", ["s"], ["y"])]
    check(model(nodes), ["Softmax", "Log"], feeds=[np.array([[0, 200, 0, 0]] * 3, np.float32)])
    check(model(nodes), ["LogSoftmax"], allow=["range"])


def test_a_difference_from_log_sum_exp() -> None:
    nodes = [node("ReduceLogSumExp", ["x"], ["l"], axes=[1], keepdims=1), node("Sub", ["x", "l"], ["y"])]
    check(model(nodes), ["LogSoftmax"])
    dropped = [node("ReduceLogSumExp", ["x"], ["l"], axes=[1], keepdims=0), node("Sub", ["x", "l"], ["y"])]
    check(model(dropped, (4, 4)), ["ReduceLogSumExp", "Sub"], target="onnx")


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax", "Hardmax"])
def test_transposes_that_undo_each_other(op: str) -> None:
    nodes = [
        node("Transpose", ["x"], ["t"], perm=[0, 2, 1]),
        node(op, ["t"], ["s"], axis=-1),
        node("Transpose", ["s"], ["y"], perm=[0, 2, 1]),
    ]
    check(model(nodes, (2, 3, 4)), [op], target="onnx")
    nodes[-1] = node("Transpose", ["s"], ["y"], perm=[1, 2, 0])
    program = check(model(nodes, (2, 3, 4)), ["Transpose", op, "Transpose"], target="onnx")
    assert "do not undo each other" in reasons(program, "softmax-of-transpose")


def test_a_masked_row_stays_nan() -> None:
    masked = np.array([[-np.inf] * 4, [0, 1, 2, -np.inf], [0, 0, 0, 0]], np.float32)
    check(model(written(), axis=[-1]), ["Softmax"], feeds=[masked])


@pytest.mark.parametrize("keeps", [(1, 0), (0, 1), (0, 0)])
def test_a_dropped_axis_of_a_square_stretches_along_another(keeps: tuple[int, int]) -> None:
    nodes = [
        node("ReduceMax", ["x"], ["m"], axes=[1], keepdims=keeps[0]),
        node("Sub", ["x", "m"], ["d"]),
        node("Exp", ["d"], ["e"]),
        node("ReduceSum", ["e", "axis"], ["s"], keepdims=keeps[1]),
        node("Div", ["e", "s"], ["y"]),
    ]
    check(model(nodes, (3, 3), axis=[1]), ["ReduceMax", "Sub", "Exp", "ReduceSum", "Div"])
