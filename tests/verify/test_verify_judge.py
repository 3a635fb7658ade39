"""One judge for the command, the fuzzers and the tests: rounding and what is not defined count, and nothing more."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import parser

import dmlc
from dmlc.diagnostics import Source
from dmlc.ir import Array
from dmlc.verifying.comparison import DIFFERENT, classes, compare
from dmlc.verifying.graph_subject import GraphSubject
from dmlc.verifying.inputs import Feeds
from dmlc.verifying.judge import Judge, Terms
from dmlc.verifying.models import verify_models
from dmlc.verifying.onnx_subject import OnnxSubject
from dmlc.verifying.subject import Subject
from dmlc.verifying.tolerance import REASSOCIATES
from tests.rows import each_row

pytestmark = pytest.mark.usefixtures("sessions_here")


def judged(subject: Subject, feeds: Feeds, results: dict[str, Array]) -> dict[str, str]:
    """The status of each output of other results on one input."""
    own = subject.run(feeds)
    judge = Judge(subject, None, feeds, own, Terms(classes(REASSOCIATES), {}, None, frozenset()))
    return {
        name: judge.judge(found, results[name])[0] if found.status == DIFFERENT else found.status
        for name, found in compare(own, results).items()
    }


@pytest.mark.parametrize("opset", [8, 13, 17, 22])
def test_rounding_is_a_few_units_and_nothing_more(opset: int) -> None:
    text = f"""<ir_version: 8, opset_import: ["": {opset}]>
    g (float[2,8] x) => (float[2,8] y, int64[2,1] i)
    {{ e = Exp (x) y = Softmax (e) i = ArgMax <axis: int = 1> (y) }}"""
    subject = OnnxSubject(parser.parse_model(text))
    feeds = {"x": np.random.default_rng(0).normal(0, 1.5, (2, 8)).astype(np.float32)}
    own = subject.run(feeds)
    same = {"y": "within", "i": "exact"}
    assert judged(subject, feeds, {**own, "y": own["y"] * np.float32(1 + 1e-6)}) == same
    assert judged(subject, feeds, {**own, "y": own["y"] * np.float32(1.1)})["y"] == "different"
    assert judged(subject, feeds, {**own, "i": (own["i"] + 1) % 8})["i"] == "different"


def test_a_sum_that_overflows_in_another_order_is_not_comparable() -> None:
    """A kernel that adds the large numbers of one sign first gets an infinity, whose sigmoid is 1."""
    text = """model m(x: f32[3, 2, 2]) -> (y) {
    y = cast(sigmoid(reduce_mean(x, keepdims=false)), to=u8)
    return y
}"""
    subject = GraphSubject(dmlc.compile(Source("m.dml", text), target="cpu").source_graph)
    parts = [-0.5, 0, 0.5, -0.5, 0, 0, 0.5, 0, -0.5, 0, 1, -0.5]
    feeds = {"x": (np.array(parts) * np.finfo(np.float32).max).astype(np.float32).reshape(3, 2, 2)}
    one: dict[str, Any] = {"y": np.array(1, np.uint8)}
    assert judged(subject, feeds, one) == {"y": "overflowed"}
    small = {"x": np.array(parts, np.float32).reshape(3, 2, 2)}
    assert judged(subject, small, one) == {"y": "different"}


def test_a_mask_of_the_lowest_number_excuses_what_it_masks_alone() -> None:
    """The lowest number overflows to -infinity in another order: its power of e is 0 all the same."""
    text = """<ir_version: 8, opset_import: ["": 17]>
    g (float[2, 3] x, bool[2, 3] m) => (float[2, 3] y) <float one = {1}, float lowest = {-3.4028235e+38}>
    { f = Cast <to = 1> (m) k = Sub (one, f) b = Mul (k, lowest) s = Add (x, b) y = Softmax (s) }"""
    subject = OnnxSubject(parser.parse_model(text))
    x = np.array([[1, 2, 3], [3, 1, 2]], np.float32)
    causal = {"x": x, "m": np.array([[1, 0, 0], [1, 1, 0]], bool)}
    own = subject.run(causal)["y"]
    assert judged(subject, causal, {"y": own[:, ::-1]}) == {"y": "different"}
    nothing = {"x": x, "m": np.array([[0, 0, 0], [1, 1, 0]], bool)}
    own = subject.run(nothing)["y"]
    assert judged(subject, nothing, {"y": np.where(own == own[0, 0], np.nan, own)}) == {"y": "overflowed"}
    assert judged(subject, nothing, {"y": own[:, ::-1]}) == {"y": "different"}


def test_a_product_that_loses_digits_in_another_order_is_not_comparable() -> None:
    """The small numbers make one below the least normal one first, of which a large one makes many again."""
    subject = OnnxSubject(
        parser.parse_model("""<ir_version: 8, opset_import: ["": 13]> g (float[4] x) => (float y)
    { y = ReduceProd <keepdims = 0> (x) }""")
    )
    made = {"y": np.array(1.2e-23, np.float32)}
    assert judged(subject, {"x": np.array([1e20, 1e-22, 1e-22, 1.1], np.float32)}, made) == {"y": "overflowed"}
    assert judged(subject, {"x": np.array([1e-22, 0.1, 1, 1.1], np.float32)}, made) == {"y": "different"}


def test_where_quotients_by_zero_are_compared_each_may_win() -> None:
    text = """model m(x: i32[16, 2], z: i32[16, 2]) -> (y) {
    y = argmin(x // z, axes=[1])
    return y
}"""
    subject = GraphSubject(dmlc.compile(Source("m.dml", text), target="onnx").source_graph)
    x = np.arange(32, dtype=np.int32).reshape(16, 2)
    with_zeros, ones = {"x": x, "z": np.zeros_like(x)}, {"x": x, "z": np.ones_like(x)}
    assert judged(subject, with_zeros, {"y": 1 - subject.run(with_zeros)["y"]}) == {"y": "unspecified"}
    assert judged(subject, ones, {"y": 1 - subject.run(ones)["y"]}) == {"y": "different"}


@pytest.mark.parametrize("function", ["reduce_min(x, axes=[1])", "min(x, reduce_min(x, axes=[1]))"])
def test_a_kernel_may_pass_over_nan(function: str) -> None:
    text = f"model m(x: f32[2, 3]) -> (y) {{\n    y = x == {function}\n    return y\n}}"
    subject = GraphSubject(dmlc.compile(Source("m.dml", text), target="onnx").source_graph)
    feeds = {"x": np.array([[-2.25, np.nan, 5], [4, 3.5, np.nan]], np.float32)}
    chosen = feeds["x"] == np.fmin.reduce(feeds["x"], axis=1, keepdims=True)
    assert judged(subject, feeds, {"y": chosen}) == {"y": "unspecified"}
    numbers = {"x": np.nan_to_num(feeds["x"], nan=7)}
    assert judged(subject, numbers, {"y": ~subject.run(numbers)["y"]}) == {"y": "different"}


def test_each_place_of_a_hardmax_of_nan_may_be_the_largest() -> None:
    text = """<ir_version: 8, opset_import: ["": 13]> g (float[40, 5] x) => (float[40, 5] y)
    { h = Hardmax <axis = 1> (x) y = Hardmax <axis = 1> (h) }"""
    subject = OnnxSubject(parser.parse_model(text))
    feeds = {"x": np.full((40, 5), np.nan, np.float32)}
    assert judged(subject, feeds, {"y": np.roll(subject.run(feeds)["y"], 4, axis=1)}) == {"y": "unspecified"}


def test_a_softmax_makes_operands_that_are_nearly_equal_equal() -> None:
    """-2.6e-7 and -1.8e-7 among larger ones: a kernel may round their powers to one number, or to two."""
    text = """model m(x: f32[6]) -> (y) {
    v, y = top_k(softmax(x), k=6)
    return y
}"""
    subject = GraphSubject(dmlc.compile(Source("m.dml", text), target="onnx").source_graph)
    near = np.array([-5.35730351e-06, -9.6387364e-02, -2.55946617e-07, -1385, -1.09377515e-05, -1.84419974e-07])
    turned = {"y": np.array([5, 2, 0, 4, 1, 3], np.uint32)}
    assert judged(subject, {"x": near.astype(np.float32)}, turned) == {"y": "within"}
    tied = np.where(np.abs(near) < 1e-6, 0, near)
    assert judged(subject, {"x": tied.astype(np.float32)}, turned) == {"y": "different"}


def test_the_place_of_a_nan_among_several_axes() -> None:
    text = """model m(x: f32[2, 3]) -> (y) {
    y = one_hot(argmin(x, axes=[0, 1]), depth=6, dtype=i32)
    return y
}"""
    subject = GraphSubject(dmlc.compile(Source("m.dml", text), target="onnx").source_graph)
    place = {"y": np.array([[[0, 0, 0, 0, 1, 0]]], np.int32)}
    assert judged(subject, {"x": np.array([[1, 0, np.nan], [-1, -2, 0]], np.float32)}, place) == {"y": "unspecified"}
    assert judged(subject, {"x": np.array([[1, 0, -3], [-1, -2, 0]], np.float32)}, place) == {"y": "different"}


def test_numbers_beside_nan_move_as_others_do() -> None:
    """No sample moves the sum of the fourth row."""
    text = """<ir_version: 8, opset_import: ["": 10]> g (float[8, 2] x) => (float[8, 1] y)
    { l = LogSoftmax <axis = 1> (x) e = Exp (l) s = ReduceSum <axes = [1]> (e) y = Log (s) }"""
    subject = OnnxSubject(parser.parse_model(text))
    x = [[np.nan, 1], [1.4903497, -0.6011138], [-0.66955960, -0.85461414], [0.0012314935, 0.26604787]]
    feeds = {"x": np.array([*x, *[[np.nan, 1]] * 2, [-2.114645, 2.4451966], [np.nan, 1]], np.float32)}
    made = subject.run(feeds)["y"]
    made[3] -= np.float32(2**-24)
    assert judged(subject, feeds, {"y": made}) == {"y": "within"}


def test_where_places_of_nan_are_compared_each_may_win() -> None:
    text = """model m(x: f32[4, 7]) -> (y) {
    i = argmax(x, axes=[1], dtype=i32)
    y = i[1] > i[0] + 1
    return y
}"""
    subject = GraphSubject(dmlc.compile(Source("m.dml", text), target="onnx").source_graph)
    nan = {"x": np.full((4, 7), np.nan, np.float32)}
    assert judged(subject, nan, {"y": ~subject.run(nan)["y"]}) == {"y": "unspecified"}
    one = {"x": np.eye(4, 7, dtype=np.float32)}
    assert judged(subject, one, {"y": ~subject.run(one)["y"]}) == {"y": "different"}


def test_a_comparison_of_f16_that_a_runtime_keeps_in_f32() -> None:
    """ONNX Runtime has Min of f16 at opset 13, and compares its result with a number that it did not round to f16."""
    text = """<ir_version: 8, opset_import: ["": %d]> g (float x) => (bool y) <float c = {30000}>
    { h = Cast <to = 10> (x) k = Cast <to = 10> (c) m = Min (h, k) y = Less (m, h) }"""
    old, new = (OnnxSubject(parser.parse_model(text % opset)) for opset in (11, 13))
    feeds = {"x": np.array(-19483.764, np.float32)}
    own, other = old.run(feeds), new.run(feeds)
    assert own["y"] != other["y"]
    (found,) = compare(own, other).values()
    terms = Terms(classes(REASSOCIATES), {}, None, frozenset())
    assert Judge(old, new, feeds, own, terms).judge(found, other["y"])[0] == "within"


def test_a_kernel_rounds_before_it_takes_a_mean_away() -> None:
    """Numbers that are nearly equal lose digits in the mean, and so in their deviation."""
    text = """model m(x: f32[3]) -> (y) {
    c = layer_norm(x, x, x)
    y = reduce_mean((c - reduce_mean(c)) ** 2)
    return y
}"""
    subject = GraphSubject(dmlc.compile(Source("m.dml", text), target="onnx").source_graph)
    for x, status in (([19482.691, 19484.541, 19483.65], "within"), ([-1.2, 1, 0.3], "different")):
        feeds = {"x": np.array(x, np.float32)}
        assert judged(subject, feeds, {"y": subject.run(feeds)["y"] * np.float32(1.001)}) == {"y": status}


def test_a_result_over_nothing_does_not_overflow() -> None:
    text = """<ir_version: 8, opset_import: ["": 13]> g (float[3, 0] x) => (float[1, 1] y)
    { c = ReduceMax <axes = [0]> (x) m = ReduceMax <axes = [1]> (c) y = Relu (m) }"""
    subject, feeds = OnnxSubject(parser.parse_model(text)), {"x": np.zeros((3, 0), np.float32)}
    assert judged(subject, feeds, {"y": np.full((1, 1), -np.inf, np.float32)}) == {"y": "unspecified"}


def test_a_log_softmax_of_an_infinity_may_be_nan() -> None:
    """A relu makes 0 of the -infinity that x less the logarithm of the sum is."""
    text = """<ir_version: 8, opset_import: ["": 17]> g (float[N, 3] x) => (float[N, 3] y)
    { s = ReduceLogSumExp <axes = [1]> (x) d = Sub (x, s) y = Relu (d) }"""
    subject = OnnxSubject(parser.parse_model(text))
    nan = {"y": np.full((1, 3), np.nan, np.float32)}
    assert judged(subject, {"x": np.array([[1, np.inf, 2]], np.float32)}, nan) == {"y": "overflowed"}
    assert judged(subject, {"x": np.array([[1, 4, 2]], np.float32)}, nan) == {"y": "different"}


def test_a_long_sum_may_be_added_one_by_one() -> None:
    """ONNX Runtime adds 74,000 numbers one by one over some axes: the last digits of each are lost."""
    text = """<ir_version: 8, opset_import: ["": 13]> g (float[N] x) => (float y)
    { s = ReduceSumSquare <keepdims: int = 0> (x) y = Sqrt (s) }"""
    subject = OnnxSubject(parser.parse_model(text))
    x = np.random.default_rng(1).uniform(0, 3, 74_000).astype(np.float32)
    total = np.cumsum(x * x, dtype=np.float32)[-1]
    assert judged(subject, {"x": x}, {"y": np.sqrt(total)}) == {"y": "within"}
    assert judged(subject, {"x": x}, {"y": np.sqrt(total) * np.float32(1.01)}) == {"y": "different"}
    few = x[:64]
    near = np.sqrt(np.sum(few * few)) * np.float32(1 + 4e-4)
    assert judged(subject, {"x": few}, {"y": near}) == {"y": "different"}


def test_each_place_of_an_axis_may_win_beside_a_nan() -> None:
    """The sum of two places is 1 in any order of them, and 0 or 2 if both are the same."""
    text = """model m(x: f32[1, 2, 2]) -> (y) {
    y = reduce_sum(argmin(x - x, axes=[0, 1]), keepdims=false)
    return y
}"""
    subject = GraphSubject(dmlc.compile(Source("m.dml", text), target="onnx").source_graph)
    x = np.array([[[np.inf, 0], [-1, -np.inf]]], np.float32)
    assert judged(subject, {"x": x}, {"y": np.array(0, np.uint32)}) == {"y": "unspecified"}
    plain = np.nan_to_num(x, posinf=1, neginf=1)
    assert judged(subject, {"x": plain}, {"y": np.array(1, np.uint32)}) == {"y": "different"}


def test_a_number_that_rounding_makes_may_be_divided_by() -> None:
    """Its sign is rounding too, and whether it is 0: infinite elements and large ones of both signs."""
    subject = GraphSubject(graph_of("1 / reduce_sum((x - reduce_mean(x, axes=[1])) * w, axes=[1])"))
    other = GraphSubject(graph_of("1 / (reduce_sum(x - reduce_mean(x, axes=[1]), axes=[1]) * w)"))
    rng = np.random.default_rng(0)
    feeds = {"x": rng.standard_normal((99, 3)).astype(np.float32), "w": rng.random((99, 1)).astype(np.float32)}
    results = other.run(feeds)
    assert np.isinf(subject.run(feeds)["y"]).any()
    assert judged(subject, feeds, results) != {"y": DIFFERENT}


def graph_of(y: str) -> Any:
    text = f"model m(x: f32[99, 3], w: f32[99, 1]) -> (y) {{\n    y = {y}\n    return y\n}}\n"
    return dmlc.compile(Source("m.dml", text)).source_graph


KEPT_WIDE = """<ir_version: 10, opset_import: ["" : 17]> m (float16[4, 2] x) => (float[2, 4] y) {
    a = Cast<to = 1>(x)  s = Sin(a)  h = Cast<to = 10>(s)  c = Cos(h)  PLACE
}"""


@each_row("operator,status", [("Cos", "within"), ("Sin", "different")])
def test_f16_that_one_model_keeps_in_f32_is_the_same_bits_if_rounded(operator: str, status: str) -> None:
    """ONNX Runtime drops the rounding where a Cast follows the Cos, without optimizations too."""
    first = KEPT_WIDE.replace("PLACE", "f = Cast<to = 1>(c)  y = Transpose(f)")
    second = KEPT_WIDE.replace("PLACE", "f = Transpose(c)  y = Cast<to = 1>(f)").replace("Cos", operator)
    models = (parser.parse_model(first), parser.parse_model(second))
    for a, b in (models, models[::-1]):
        assert verify_models(a, b, inputs=2, allowed="exact").status == status
