"""``fuse-softmax``: every spelling, its near misses, its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from fusion_helpers import check, classes, model, node, operators, reasons
from onnx import TensorProto

import dmlc
from tests.rows import each_row

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


@each_row("axis", [-1, 0, 1])
@each_row("spelling", [{}, {"reciprocal": True}, {"negated": True}, {"negated": True, "swapped": True}])
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
    check(model(nodes, (2, 3, 4)), [op, "Transpose"], target="onnx", exact=True)


def test_a_masked_row_stays_nan() -> None:
    masked = np.array([[-np.inf] * 4, [0, 1, 2, -np.inf], [0, 0, 0, 0]], np.float32)
    check(model(written(), axis=[-1]), ["Softmax"], feeds=[masked])


# --- more spellings

MAX = node("ReduceMax", ["x"], ["m"], axes=[1], keepdims=1)
SHIFT = [MAX, node("Sub", ["x", "m"], ["d"])]
TOTAL = [node("Exp", ["d"], ["e"]), node("ReduceSum", ["e", "axis"], ["s"], keepdims=1)]
LOG = node("Log", ["s"], ["l"])
#: x - (m + log(sum(exp(x - m))))
LESS_SHIFTED = [*SHIFT, *TOTAL, LOG, node("Add", ["l", "m"], ["t"]), node("Sub", ["x", "t"], ["y"])]


@each_row(
    "nodes",
    [
        [*SHIFT, *TOTAL, LOG, node("Neg", ["l"], ["n"]), node("Add", ["n", "d"], ["y"])],
        [*SHIFT, node("Exp", ["d"], ["e"]), node("ReduceSum", ["e", "axis"], ["s"], keepdims=0), LOG,
         node("Unsqueeze", ["l", "axis"], ["l1"]), node("Sub", ["d", "l1"], ["y"])],
        [*SHIFT, node("ReduceLogSumExp", ["d"], ["l"], axes=[1], keepdims=1), node("Sub", ["d", "l"], ["y"])],
        [*SHIFT, node("LogSoftmax", ["d"], ["y"], axis=1)],
        LESS_SHIFTED,
    ],
    ids=["negated", "unsqueezed after the logarithm", "of log-sum-exp", "shifted twice", "less a shifted one"],
)  # fmt: skip
@each_row("target", ["onnx", "directml", "cpu"])
def test_more_spellings_of_the_logarithm(nodes: Nodes, target: str) -> None:
    used = {name for n in nodes for name in n.input}
    check(model(nodes, **({"axis": [1]} if "axis" in used else {})), ["LogSoftmax"], target=target)


def test_without_the_shift_the_difference_is_of_class_range() -> None:
    nodes = [node("Exp", ["x"], ["e"]), TOTAL[1], LOG, node("Sub", ["x", "l"], ["y"])]
    program = dmlc.compile(model(nodes, axis=[1]))
    assert "LogSoftmax" not in operators(program)
    assert "--allow range" in reasons(program, "difference-from-log-sum-exp")
    check(model(nodes, axis=[1]), ["LogSoftmax"], allow=["range"])


@pytest.mark.parametrize(
    "nodes",
    [
        [node("LogSoftmax", ["x"], ["l"], axis=1), node("Exp", ["l"], ["y"])],
        [*LESS_SHIFTED[:-1], node("Sub", ["x", "t"], ["u"]), node("Exp", ["u"], ["y"])],
        [*SHIFT, node("Softmax", ["d"], ["y"], axis=1)],
    ],
    ids=["power of the logarithm", "power of a difference", "shifted twice"],
)
def test_more_spellings(nodes: Nodes) -> None:
    used = {name for n in nodes for name in n.input}
    check(model(nodes, **({"axis": [1]} if "axis" in used else {})), ["Softmax"])


@pytest.mark.parametrize(
    ("nodes", "want"),
    [
        ([node("ReduceMax", ["x"], ["m"], axes=[0], keepdims=1), *SHIFT[1:], node("Softmax", ["d"], ["y"], axis=1)],
         ["ReduceMax", "Sub", "Softmax"]),
        ([*SHIFT[:1], node("Sub", ["m", "x"], ["d"]), node("Softmax", ["d"], ["y"], axis=1)],
         ["ReduceMax", "Sub", "Softmax"]),
        ([node("ReduceMin", ["x"], ["m"], axes=[1], keepdims=1), *SHIFT[1:], node("Softmax", ["d"], ["y"], axis=1)],
         ["ReduceMin", "Sub", "Softmax"]),
        ([MAX, node("Sin", ["x"], ["z"]), node("Sub", ["z", "m"], ["d"]), node("Softmax", ["d"], ["y"], axis=1)],
         ["ReduceMax", "Sin", "Sub", "Softmax"]),
        ([node("LogSoftmax", ["x"], ["l"], axis=1), node("Exp", ["l"], ["p"]), node("Mul", ["p", "l"], ["y"])],
         ["LogSoftmax", "Exp", "Mul"]),
    ],
    ids=["another axis", "the other way round", "the minimum", "of another value", "the logarithm is used"],
)  # fmt: skip
def test_more_near_misses(nodes: Nodes, want: list[str]) -> None:
    check(model(nodes, (3, 3)), want)


# --- through reshapes


@each_row("op", ["Softmax", "LogSoftmax", "Hardmax"])
@each_row(
    ("shape", "flat", "axis"), [((2, 3, 4), [6, 4], 1), ((2, 3, 4), [2, 3, 4, 1], 2), ((2, 3, 4, 5), [2, 3, 20], 1)]
)
def test_reshapes_that_keep_the_groups(op: str, shape: tuple[int, ...], flat: list[int], axis: int) -> None:
    nodes = [
        node("Reshape", ["x", "flat"], ["r"]),
        node(op, ["r"], ["s"], axis=axis),
        node("Reshape", ["s", "back"], ["y"]),
    ]
    program = check(model(nodes, shape, flat=flat, back=list(shape)), [op], target="onnx", exact=True)
    assert classes(program)["softmax-of-reshape"] == "exact"
    other = model(nodes, shape, flat=flat, back=[shape[1], shape[0], *shape[2:]])
    check(other, [op, "Reshape"], target="onnx", exact=True)


@pytest.mark.parametrize(
    ("flat", "axis", "words"),
    [([2, 12], 1, "no fewer than"), ([8, 3], 1, "are not axes of"), ([4, 6], 0, "are not axes of")],
)
def test_reshapes_that_group_anew_stay(flat: list[int], axis: int, words: str) -> None:
    nodes = [
        node("Reshape", ["x", "flat"], ["r"]),
        node("Softmax", ["r"], ["s"], axis=axis),
        node("Reshape", ["s", "back"], ["y"]),
    ]
    program = check(model(nodes, (2, 3, 4), flat=flat, back=[2, 3, 4]), ["Reshape", "Softmax", "Reshape"])
    assert words in reasons(program, "softmax-of-reshape")


def test_a_reshape_with_a_symbolic_size() -> None:
    nodes = [
        node("Reshape", ["x", "flat"], ["r"]),
        node("Softmax", ["r"], ["s"], axis=1),
        node("Reshape", ["s", "back"], ["y"]),
    ]
    check(model(nodes, ("n", 3, 4), flat=[-1, 4], back=[-1, 3, 4]), ["Softmax"], shape=(2, 3, 4))


# --- what would cost more than it saves


def test_axes_apart_stay_written_out() -> None:
    nodes = [
        node("ReduceMax", ["x"], ["m"], axes=[0, 2], keepdims=1),
        node("Sub", ["x", "m"], ["d"]),
        node("Exp", ["d"], ["e"]),
        node("ReduceSum", ["e", "axes"], ["s"], keepdims=1),
        node("Div", ["e", "s"], ["y"]),
    ]
    program = check(model(nodes, (2, 3, 4), axes=[0, 2]), ["ReduceMax", "Sub", "Exp", "ReduceSum", "Div"])
    assert "would be 5 nodes" in reasons(program, "written-out-softmax")


def test_half_precision_costs_casts_where_there_is_no_kernel() -> None:
    half = {"dtype": TensorProto.FLOAT16}
    check(model(written(), axis=[-1], **half), ["Softmax"], target="directml")
    check(model(written(), axis=[-1], **half), ["Cast", "Softmax", "Cast"], target="cpu")
    two = model([node("LogSoftmax", ["x"], ["l"], axis=1), node("Exp", ["l"], ["y"])], **half)
    check(two, ["Softmax"], target="directml")
    program = check(two, ["LogSoftmax", "Exp"], target="cpu")
    assert "would be 3 nodes" in reasons(program, "power-of-log-softmax")


def test_a_sum_in_wider_floats_is_looked_through_and_a_narrower_one_is_not() -> None:
    powers = [*SHIFT, node("Exp", ["d"], ["e"])]
    end = node("Div", ["e", "t"], ["y"])
    wide, narrow = TensorProto.FLOAT, TensorProto.FLOAT16

    def total(inner: int, outer: int) -> Nodes:
        return [
            node("Cast", ["e"], ["c"], to=inner),
            node("ReduceSum", ["c", "axis"], ["s"], keepdims=1),
            node("Cast", ["s"], ["t"], to=outer),
        ]

    half = model([*powers, *total(wide, narrow), end], dtype=narrow, axis=[1])
    check(half, ["Softmax"])
    rounded = [
        node("ReduceSum", ["e", "axis"], ["s"], keepdims=1),
        node("Cast", ["s"], ["c"], to=narrow),
        node("Cast", ["c"], ["t"], to=wide),
    ]
    for nodes in (total(narrow, wide), rounded):
        program = dmlc.compile(model([*powers, *nodes, end], axis=[1]))
        assert "Softmax" not in operators(program)


def test_a_logarithm_of_double_precision_stays_what_it_is() -> None:
    """ONNX Runtime's kernel of f64 leaves -inf beside a +inf, so no rule makes it; and a model that has it keeps it,
    although its form changed with opset 13."""
    double = {"dtype": TensorProto.DOUBLE}
    infinite = np.array([[0, np.inf, 1, 2]] * 3)
    nodes = [*written()[:-1], node("Log", ["s"], ["l"]), node("Sub", ["d", "l"], ["y"])]
    program = check(
        model(nodes, axis=[-1], **double), ["ReduceMax", "Sub", "Exp", "ReduceLogSum", "Sub"], feeds=[infinite]
    )
    assert "has no kernel" in reasons(program, "written-out-softmax")
    m = model([node("LogSoftmax", ["x"], ["y"], axis=1)], opset=12, **double)
    program = check(m, ["LogSoftmax"])
    want = session(m).run(None, {"x": infinite})[0]
    np.testing.assert_array_equal(program.run({"x": infinite}, "cpu")["y"], want)


def session(m: onnx.ModelProto) -> onnxruntime.InferenceSession:
    return onnxruntime.InferenceSession(m.SerializeToString(), providers=["CPUExecutionProvider"])


@pytest.mark.parametrize("keeps", [(1, 0), (0, 1), (0, 0)])
def test_a_dropped_axis_of_a_square_broadcasts_along_another(keeps: tuple[int, int]) -> None:
    nodes = [
        node("ReduceMax", ["x"], ["m"], axes=[1], keepdims=keeps[0]),
        node("Sub", ["x", "m"], ["d"]),
        node("Exp", ["d"], ["e"]),
        node("ReduceSum", ["e", "axis"], ["s"], keepdims=keeps[1]),
        node("Div", ["e", "s"], ["y"]),
    ]
    check(model(nodes, (3, 3), axis=[1]), ["ReduceMax", "Sub", "Exp", "ReduceSum", "Div"])
