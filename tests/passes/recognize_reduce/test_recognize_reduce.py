"""``recognize-reduce``: every spelling, its near misses, its numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from fusion_helpers import check, classes, model, node, operators, reasons
from onnx import TensorProto

import dmlc

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


@pytest.mark.parametrize("dtype", [TensorProto.INT32, TensorProto.INT64])
@pytest.mark.parametrize("target", ["onnx", "directml", "cpu"])
def test_integers_stay_where_they_may_overflow(dtype: int, target: str) -> None:
    """A product wraps, and ONNX Runtime's sums of squares and magnitudes saturate from 1.27 on."""
    numpy = onnx.helper.tensor_dtype_to_np_dtype(dtype)
    big = 2 ** (numpy.itemsize * 4)
    squares = np.array([[big, 3, big, 1]] * 3, numpy)
    lowest = np.array([[np.iinfo(numpy).min, 5, 0, 0]] * 3, numpy)
    m = model([*SQUARES["x * x"], SUM], outputs=("s",), dtype=dtype, a=[1])
    program = check(m, ["Mul", "ReduceSum"], target=target, feeds=[squares])
    assert "--allow range" in reasons(program, "sum-of-squares")
    m = model([node("Abs", ["x"], ["q"]), SUM], outputs=("s",), dtype=dtype, a=[1])
    check(m, ["Abs", "ReduceSum"], target=target, feeds=[lowest], exact=True)


def test_integers_too_where_bounds_keep_them_in_range() -> None:
    narrow = [node("Cast", ["x"], ["c"], to=TensorProto.INT32), node("Mul", ["c", "c"], ["q"]), SUM]
    m = model(narrow, outputs=("s",), dtype=TensorProto.INT8, types={"s": TensorProto.INT32}, a=[1])
    program = check(m, ["Cast", "ReduceSumSquare"], target="onnx")
    assert classes(program)["sum-of-squares"] == "exact"
    m = model([*SQUARES["x * x"], SUM], outputs=("s",), dtype=TensorProto.INT32, a=[1])
    program = check(m, ["ReduceSumSquare"], target="onnx", allow=["range"])
    assert classes(program)["sum-of-squares"] == "range"


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
    program = check(m, ["ReduceMax", "Clip", "Sub", "Exp", "ReduceLogSum", "Add"], feeds=[large])
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


# --- more spellings

EXP = [node("Exp", ["d"], ["e"]), node("ReduceSum", ["e", "a"], ["s"], keepdims=1), node("Log", ["s"], ["l"])]
EXP0 = [node("Exp", ["d"], ["e"]), node("ReduceSum", ["e", "a"], ["s"], keepdims=0), node("Log", ["s"], ["l"])]
KEPT = node("ReduceMax", ["x"], ["m"], axes=[1], keepdims=1)


def guarded(finite: Nodes, where: list[str]) -> Nodes:
    return [
        KEPT,
        *finite,
        node("Where", where, ["g"]),
        node("Sub", ["x", "g"], ["d"]),
        *EXP,
        node("Add", ["l", "g"], ["y"]),
    ]


GUARDS = {
    "not infinite and not NaN": guarded(
        [node("IsInf", ["m"], ["i"]), node("IsNaN", ["m"], ["n"]), node("Or", ["i", "n"], ["o"]),
         node("Not", ["o"], ["f"])], ["f", "m", "zero"]),
    "of infinite size": guarded([node("Abs", ["m"], ["b"]), node("Equal", ["b", "inf"], ["i"])], ["i", "zero", "m"]),
    "of finite size": guarded([node("Abs", ["m"], ["b"]), node("Less", ["b", "inf"], ["f"])], ["f", "m", "zero"]),
}  # fmt: skip
SHARED = [
    node("ReduceMax", ["x"], ["m0"], axes=[1], keepdims=0),
    node("Unsqueeze", ["m0", "a"], ["m"]),
    node("Sub", ["x", "m"], ["d"]),
    *EXP0,
    node("Add", ["m0", "l"], ["y"]),
]
SQUEEZED = [
    KEPT,
    node("Sub", ["x", "m"], ["d"]),
    *EXP,
    node("Squeeze", ["l", "a"], ["l0"]),
    node("Squeeze", ["m", "a"], ["m0"]),
    node("Add", ["l0", "m0"], ["y"]),
]
OF_OPERATOR = [
    KEPT,
    node("Sub", ["x", "m"], ["d"]),
    node("ReduceLogSumExp", ["d"], ["l"], axes=[1], keepdims=1),
    node("Add", ["l", "m"], ["y"]),
]


def weights_of(nodes: Nodes) -> dict[str, Any]:
    known = {"a": [1], "inf": np.float32(np.inf), "zero": np.float32(0), "one": np.float32(1)}
    used = {name for n in nodes for name in n.input}
    return {name: value for name, value in known.items() if name in used}


@pytest.mark.parametrize("nodes", [*GUARDS.values(), SHARED, SQUEEZED, OF_OPERATOR])
def test_more_spellings_of_the_shifted_form(nodes: Nodes) -> None:
    program = check(model(nodes, **weights_of(nodes)), ["ReduceLogSumExp"], target="onnx")
    assert classes(program)["shifted-log-sum-exp"] == "reassociates"


@pytest.mark.parametrize("nodes", GUARDS.values(), ids=list(GUARDS))
def test_a_guarded_maximum_keeps_its_infinities_on_directml(nodes: Nodes) -> None:
    low = np.full((3, 4), -np.inf, np.float32)
    high = np.array([[0, np.inf, 1, 2]] * 3, np.float32)
    m = model(nodes, **weights_of(nodes))
    program = dmlc.compile(m)
    assert "ReduceLogSumExp" not in operators(program)
    check(m, operators(program), feeds=[low, high])


@pytest.mark.parametrize(
    "nodes",
    [
        guarded([node("Abs", ["m"], ["b"]), node("Less", ["b", "one"], ["f"])], ["f", "m", "zero"]),
        guarded([node("IsInf", ["m"], ["i"])], ["i", "m", "zero"]),
        [*SHARED[:-1], node("Sub", ["l", "m0"], ["y"])],
        [*OF_OPERATOR[:-2], node("ReduceLogSumExp", ["d"], ["l"], axes=[0], keepdims=1), OF_OPERATOR[-1]],
    ],
    ids=["a guard of small numbers", "the guard the wrong way round", "taken out again", "over another axis"],
)
def test_more_near_misses_of_log_sum_exp(nodes: Nodes) -> None:
    m = model(nodes, (3, 3), **weights_of(nodes))
    program = dmlc.compile(m, target="onnx")
    assert "shifted-log-sum-exp" not in classes(program)
    check(m, operators(program), target="onnx")


def test_a_sum_over_another_axis_whose_shape_fits_is_no_log_sum_exp() -> None:
    """The maximum over one axis of a square, and the sum over the other, both without their axis."""
    nodes = [*SHARED[:4], node("ReduceSum", ["e", "other"], ["s"], keepdims=0), *SHARED[5:]]
    m = model(nodes, (3, 3), a=[1], other=[0])
    program = dmlc.compile(m, target="onnx")
    assert "shifted-log-sum-exp" not in classes(program)
    check(m, operators(program), target="onnx")


@pytest.mark.parametrize("seen", ["m", "d", "s"])
def test_a_shifted_form_with_an_output_inside_stays(seen: str) -> None:
    m = model(shifted(), outputs=("y", seen), a=[1])
    program = dmlc.compile(m, target="onnx")
    assert f"{seen} is used outside of the pattern too" in reasons(program, "shifted-log-sum-exp")
    check(m, operators(program), target="onnx")


@pytest.mark.parametrize("sign", ["Abs", "Neg"])
@pytest.mark.parametrize("norm", ["ReduceL1", "ReduceL2", "ReduceSumSquare"])
def test_signs_do_not_matter_to_norms(sign: str, norm: str) -> None:
    nodes = [node(sign, ["x"], ["q"]), node(norm, ["q"], ["y"], axes=[1])]
    program = check(model(nodes), [norm], exact=True)
    assert classes(program)["norm-of-magnitude"] == "exact"
    shared = model([*nodes[:-1], node(norm, ["q"], ["y"], axes=[1])], outputs=("y", "q"))
    check(shared, [sign, norm])
    other = model([node(sign, ["x"], ["q"]), node("ReduceMax", ["q"], ["y"], axes=[1])])
    check(other, [sign, "ReduceMax"], skip_rules=["rising-after-extreme"])


@pytest.mark.parametrize(
    ("scale", "number"), [("Mul", np.float32(0.25)), ("Div", np.float32(4)), ("Mul", np.full((1, 1), 0.25, np.float32))]
)
def test_a_sum_of_parts_is_a_mean(scale: str, number: Any) -> None:
    nodes = [node(scale, ["x", "n"], ["p"]), node("ReduceSum", ["p", "a"], ["y"])]
    check(model(nodes, n=number, a=[1]), ["ReduceMean"])
    program = check(model(nodes, n=number, a=[0]), ["ReduceSum", scale])
    wanted = "the factor 0.25 is not one over the number of elements, 3"
    if scale == "Div":
        wanted = "the divisor 4 is not the number of elements, 3"
    assert reasons(program, "mean-of-parts") == wanted


@pytest.mark.parametrize("scale", ["Mul", "Div"])
def test_a_sum_of_nothing_is_no_mean(scale: str) -> None:
    """It is 0, the mean NaN; a factor that is one over no whole number was once taken for one over none."""
    number = np.float32(-2.5)
    before = model([node(scale, ["x", "n"], ["p"]), node("ReduceSum", ["p", "a"], ["y"])], (3, 0), n=number, a=[1])
    after = model([node("ReduceSum", ["x", "a"], ["p"]), node(scale, ["p", "n"], ["y"])], (3, 0), n=number, a=[1])
    for m in (before, after):
        for target in ("directml", "onnx"):
            program = dmlc.compile(m, target=target)
            assert not {"mean-of-parts", "mean-from-sum"} & set(classes(program))
            got = program.run({"x": np.zeros((3, 0), np.float32)}, "cpu")["y"]
            np.testing.assert_array_equal(got, np.zeros((3, 1)))


def test_a_mean_times_its_count_is_a_sum() -> None:
    nodes = [node("ReduceMean", ["x"], ["p"], axes=[1]), node("Mul", ["n", "p"], ["y"])]
    check(model(nodes, n=np.float32(4)), ["ReduceSum"])
    program = check(model(nodes, n=np.float32(3)), ["ReduceMean", "Mul"])
    assert "the factor 3 is not the number of elements, 4" in reasons(program, "sum-from-mean")
    check(model(nodes, n=np.int32(4), dtype=TensorProto.INT32), ["ReduceMean", "Mul"], target="onnx")


# --- x over its norm

L2 = node("ReduceL2", ["x"], ["n"], axes=[1], keepdims=1)
SQ = node("ReduceSumSquare", ["x"], ["q"], axes=[1], keepdims=1)


@pytest.mark.parametrize(
    ("nodes", "want"),
    [
        ([L2, node("Reciprocal", ["n"], ["r"]), node("Mul", ["r", "x"], ["y"])], ["ReduceL2", "Div"]),
        ([SQ, node("Pow", ["q", "minus"], ["r"]), node("Mul", ["x", "r"], ["y"])], ["ReduceL2", "Div"]),
        ([SQ, node("Sqrt", ["q"], ["s"]), node("Reciprocal", ["s"], ["r"]), node("Mul", ["x", "r"], ["y"])],
         ["ReduceL2", "Div"]),
        ([SQ, node("Add", ["q", "eps"], ["p"]), node("Sqrt", ["p"], ["s"]), node("Reciprocal", ["s"], ["r"]),
          node("Mul", ["x", "r"], ["y"])], ["ReduceSumSquare", "Add", "Sqrt", "Div"]),
    ],
)  # fmt: skip
def test_times_the_inverse_of_a_norm_is_a_division(nodes: Nodes, want: list[str]) -> None:
    known = {"minus": np.float32(-0.5), "eps": np.float32(1e-6)}
    used = {name for n in nodes for name in n.input}
    feeds = [np.array([[3, 4, 0, 0], [-1, 2, -2, 4], [1e-3, 0, 0, -2e-3]], np.float32), np.zeros((3, 4), np.float32)]
    check(model(nodes, **{k: v for k, v in known.items() if k in used}), want, feeds=feeds)


def test_an_inverse_that_is_no_norm_or_is_shared_stays() -> None:
    check(model([node("Reciprocal", ["x"], ["r"]), node("Mul", ["r", "w"], ["y"])], w=np.full((3, 4), 3, np.float32)),
          ["Reciprocal", "Mul"])  # fmt: skip
    shared = [L2, node("Reciprocal", ["n"], ["r"]), node("Mul", ["r", "x"], ["y"]), node("Add", ["r", "x"], ["z"])]
    program = check(model(shared, outputs=("y", "z")), ["ReduceL2", "Reciprocal", "Mul", "Add"])
    assert "is used outside" in reasons(program, "divide-by-norm")


@pytest.mark.parametrize("norm", ["ReduceL1", "ReduceL2"])
def test_a_normalization_is_one_operator_only_where_range_is_allowed(norm: str) -> None:
    """Over zeros the division gives NaN and the operator 0."""
    nodes = [node(norm, ["x"], ["n"], axes=[1], keepdims=1), node("Div", ["x", "n"], ["y"])]
    whole: dict[str, Any] = {"skip_rules": ["lp-norm-in-parts"]}  # DirectML's epsilon asks for that rule
    program = check(model(nodes), [norm, "Div"], feeds=[np.zeros((3, 4), np.float32)], **whole)
    assert "--allow range" in reasons(program, "normalize-by-norm")
    feeds = [np.array([[3, 4, 0, 0], [-1, 2, -2, 4], [1, 1, 1, 1]], np.float32)]
    program = check(model(nodes), ["LpNormalization"], feeds=feeds, allow=["range"], **whole)
    assert classes(program)["normalize-by-norm"] == "range"


def test_a_division_by_the_norm_of_another_value_stays() -> None:
    nodes = [
        node("Neg", ["x"], ["w"]),
        node("ReduceL2", ["x"], ["n"], axes=[1], keepdims=1),
        node("Div", ["w", "n"], ["y"]),
    ]
    check(model(nodes), ["Neg", "ReduceL2", "Div"], allow=["range"], skip_rules=["lp-norm-in-parts"])


def test_a_norm_along_another_axis_is_no_normalization() -> None:
    dropped = [node("ReduceL2", ["x"], ["n"], axes=[1], keepdims=0), node("Div", ["x", "n"], ["y"])]
    feeds = [np.arange(1, 17, dtype=np.float32).reshape(4, 4)]
    program = check(model(dropped, (4, 4)), ["ReduceL2", "Div"], allow=["range"], feeds=feeds)
    assert "does not keep it" in reasons(program, "normalize-by-norm")
    both = [node("ReduceL2", ["x"], ["n"], axes=[0, 1], keepdims=1), node("Div", ["x", "n"], ["y"])]
    check(model(both, (4, 4)), ["ReduceL2", "Div"], allow=["range"], feeds=feeds)


# --- what would cost more than it saves


@pytest.mark.parametrize(
    ("nodes", "alone"),
    [
        ([*SQUARES["x * x"], SUM], "ReduceSumSquare"),
        ([node("Abs", ["x"], ["q"]), SUM], "ReduceL1"),
        ([node("ReduceSum", ["x", "a"], ["t"], keepdims=1), node("Mul", ["t", "quarter"], ["s"])], "ReduceMean"),
    ],
)
def test_half_precision_costs_casts_where_there_is_no_kernel(nodes: Nodes, alone: str) -> None:
    quarter = {"quarter": np.float16(0.25)} if "quarter" in nodes[-1].input else {}
    m = model(nodes, outputs=("s",), dtype=TensorProto.FLOAT16, a=[1], **quarter)
    check(m, [alone], target="directml")
    program = check(m, [n.op_type for n in nodes], target="cpu")
    assert "would be 3 nodes" in " ".join(r.reason() for r in program.remarks)


@pytest.mark.parametrize("norm", ["ReduceL1", "ReduceL2"])
def test_a_normalization_that_a_repair_would_write_out_stays_a_quotient(norm: str) -> None:
    """DirectML adds an epsilon to the norm, so that the operator would become four nodes there."""
    nodes = [node(norm, ["x"], ["n"], axes=[1], keepdims=1), node("Div", ["x", "n"], ["y"])]
    feeds = [np.array([[3, 4, 0, 0], [-1, 2, -2, 4], [1, 1, 1, 1]], np.float32)]
    program = check(model(nodes), [norm, "Div"], allow=["range"], feeds=feeds)
    assert "would be 4 nodes" in reasons(program, "normalize-by-norm")


# --- the square of a root

L2 = node("ReduceL2", ["x"], ["n"], axes=[1], keepdims=1)
SQUARED = {"n ** 2": node("Pow", ["n", "two"], ["y"]), "n * n": node("Mul", ["n", "n"], ["y"])}


@pytest.mark.parametrize("target", ["onnx", "directml", "cpu"])
@pytest.mark.parametrize("spelling", SQUARED)
def test_the_square_of_a_root_is_the_sum_of_squares(spelling: str, target: str) -> None:
    weights: dict[str, Any] = {"two": np.float32(2)} if "**" in spelling else {}
    program = check(model([L2, SQUARED[spelling]], opset=13, **weights), ["ReduceSumSquare"], target=target)
    assert classes(program)["square-of-root"] == "reassociates"


@pytest.mark.parametrize("spelling", SQUARED)
def test_squares_of_roots_that_stay(spelling: str) -> None:
    weights: dict[str, Any] = {"two": np.float32(2)} if "**" in spelling else {}
    used = model([L2, SQUARED[spelling]], outputs=("n", "y"), opset=13, **weights)
    operator = SQUARED[spelling].op_type
    program = check(used, ["ReduceL2", operator])
    assert "used outside" in reasons(program, "square-of-root")
    kept = dmlc.compile(model([L2, SQUARED[spelling]], opset=13, **weights), exact=True)
    assert operators(kept) == ["ReduceL2", operator]


def test_other_powers_of_roots_stay() -> None:
    check(model([L2, SQUARED["n ** 2"]], opset=13, two=np.float32(3)), ["ReduceL2", "Pow"])
    product = node("Mul", ["n", "x"], ["y"])
    check(model([L2, product], opset=13), ["ReduceL2", "Mul"])
