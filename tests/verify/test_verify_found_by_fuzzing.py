"""Models whose two right results a fuzzer called different, each with a result that is different."""

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
from dmlc.verifying.onnx_subject import OnnxSubject
from dmlc.verifying.subject import Subject
from dmlc.verifying.tolerance import REASSOCIATES
from tests.rows import each_row

pytestmark = pytest.mark.usefixtures("sessions_here")

NAN, INF, HUGE = np.nan, np.inf, 1.7014117e38


def subject_of(text: str) -> Subject:
    """A program's graph, or an ONNX model."""
    if text.startswith("model"):
        return GraphSubject(dmlc.compile(Source("m.dml", text), target="onnx").source_graph)
    return OnnxSubject(parser.parse_model(text))


def status_of(subject: Subject, feeds: Feeds, result: Array) -> str:
    own = subject.run(feeds)
    (found,) = compare(own, {"y": result}).values()
    terms = Terms(classes(REASSOCIATES), {}, None, frozenset())
    judge = Judge(subject, None, feeds, own, terms)
    return judge.judge(found, result)[0] if found.status == DIFFERENT else found.status


def program(types: str, *lines: str) -> str:
    return "\n".join([f"model m({types}) -> (y) {{", *lines, "return y", "}"])


#: A text, an input and another right result, its status, and an input on which that result, or the row's last, is
#: different.
ROWS: dict[str, tuple[str, dict[str, Any], Any, str, dict[str, Any]]] = {
    "the signs of zeros next to a NaN": (
        program("x: f32[4], v: f32[4]", "y = clip(v / relu(x), min=-0.25, max=3.0)"),
        {"x": [-0.0, -1, 0.0, 2], "v": [-0.5, 0, 1, 1]},
        [3, NAN, 3, 0.5],
        "unspecified",
        {"x": [1, 1, 1, 1], "v": [-0.5, 0, 1, 1]},
    ),
    "the signs of zeros, one by one": (
        program("x: f32[4]", "y = hardmax(clip(0.1 / relu(x), min=-0.25, max=3.0), axes=[0])"),
        {"x": [-0.0, -0.0, 0.0, 0.0]},
        [0, 0, 1, 0],
        "unspecified",
        {"x": [1, 2, 3, 4]},
    ),
    "the places of overflows": (
        program("x: f32[1, 3]", "n = layer_norm(x, x, x, axis=0)", "y = n[0, 0] < n[0, 1]"),
        {"x": [[-2 * HUGE, 1, -HUGE]]},
        np.array(True),
        "overflowed",
        {"x": [[3, 1, 2]]},
    ),
    "each place behind two selections": (
        program("x: f32[2, 7, 7]", "y = hardmax(hardmax(x, axes=[0, 1]), axes=[1, 2])"),
        {"x": np.full((2, 7, 7), NAN)},
        np.eye(49)[[1, 47]].reshape(2, 7, 7),
        "unspecified",
        {"x": np.arange(98.0).reshape(2, 7, 7)},
    ),
    "terms that cancel, where inputs keep their order": (
        program("x: f32[2, 2]", "v, i = top_k(x, k=2, axis=0)", "y = reduce_mean(v)"),
        {"x": [[-HUGE, 0], [HUGE, 1]]},
        [[0]],
        "within",
        {"x": [[-3, 0], [3, 1]]},
    ),
    "what becomes undefined by other elements": (
        program("x: f32[4]", "h = hardmax(sqrt(x), axes=[0])", "y = hardmax(cos(reduce_log_sum(h)), axes=[0])"),
        {"x": [-1, -2, -3, -4]},
        [0],
        "unspecified",
        {"x": [1, 2, 3, 4]},
    ),
    "places of NaN behind the axis, one by one": (
        """<ir_version: 9, opset_import: ["": 18]> g (float[1, 3] x) => (float[1, 3] y)
        <float[2] hot = {0, 1}, int64[1] depth = {1}, int64[1] last = {1}> {
            i = ArgMax <axis = 0, keepdims = 0> (x) h = OneHot <axis = 0> (i, depth, hot)
            m = ReduceMean (h, last) y = Sub (h, m) }""",
        {"x": [[1, NAN, 2]]},
        [[1 / 3, -2 / 3, 1 / 3]],
        "unspecified",
        {"x": [[1, 3, 2]]},
    ),
    "a mean of infinities": (
        """<ir_version: 9, opset_import: ["": 17]> g (float[3] x) => (float[1] y) <float[3] s = {1, 1, 1}>
        { r = Reciprocal (x) b = Reciprocal (r) n, y, d = LayerNormalization (b, s, s) }""",
        {"x": [-INF, -INF, -INF]},
        [-INF],
        "unspecified",
        {"x": [1, 2, 3]},
    ),
    "whether an exponent is an integer": (
        program("x: f32[2, 2]", "m = reduce_mean(x, axes=[1])", "y = m ** m"),
        {"x": [[-774650.375, -774650.375], [1.3, 2.2]]},
        [[0], [1.75**1.75]],
        "within",
        {"x": [[-1.5, -1.25], [1.3, 2.2]]},
    ),
    "a logarithm of a sum near 1": (
        """<ir_version: 9, opset_import: ["": 17]> g (float[2] x) => (float y)
        { y = ReduceLogSumExp <keepdims = 0> (x) }""",
        {"x": [0, -12.4995]},
        3.9e-6,
        "within",
        {"x": [0, -9]},
    ),
    "a place of many, in each of several results": (
        program("x: f32[2, 21]", "y = one_hot(argmin(x, axes=[1]), depth=21, dtype=i32)"),
        {"x": np.where(np.arange(42) % 7 == 3, NAN, np.arange(42.0) % 21).reshape(2, 21)},
        np.eye(21, dtype=np.int32)[[[19], [20]]],
        "unspecified",
        {"x": np.arange(42.0).reshape(2, 21)},
    ),
    "numbers that a normalization makes equal": (
        """<ir_version: 9, opset_import: ["": 17]> g (float[1, 1, 8] x) => (int64[1, 1] y)
        <float[1] s = {1e-5}, float[1] b = {0.5}>
        { n = InstanceNormalization (x, s, b) y = ArgMin <axis = 2, keepdims = 0> (n) }""",
        {"x": [[[1, 0.0036, 0.0035, 1, 2, 3, 1, 2]]]},
        np.array([[2]]),
        "within",
        {"x": [[[1, 0.0035, 0.0035, 1, 2, 3, 1, 2]]]},
    ),
    "a sum that overflows in another order, of which a logarithm is taken": (
        program("x: f32[4]", "y = reduce_log_sum(x)"),
        {"x": [-2 * HUGE, 2 * HUGE, -HUGE, HUGE * 0.5]},
        [88.03],
        "overflowed",
        {"x": [-2, 2, -1, 0.5]},
    ),
    "a sum of large numbers times 0": (
        program("x: f32[3, 1]", "y = reduce_sum(x * transpose(x), axes=[0], keepdims=false)"),
        {"x": [[-2 * HUGE], [0], [-2 * HUGE]]},
        [INF, NAN, INF],
        "overflowed",
        {"x": [[-2], [0], [-2]]},
    ),
    "an order of infinities": (
        program("x: f32[2, 4]", "y = argmin(log(reduce_sum(exp(x), axes=[1])), axes=[0])"),
        {"x": np.full((2, 4), 2e4)},
        np.array([[1]], np.uint32),
        "overflowed",
        {"x": [[1, 1, 1, 1], [2, 2, 2, 2]]},
    ),
    "how many numbers are equal": (
        """<ir_version: 9, opset_import: ["": 17]> g (float[5, 2] x) => (float[N] y) {
            q = Mul (x, x) m = ReduceMean <axes = [1]> (q) r = Sqrt (m) d = Div (x, r) y = Unique (d) }""",
        {"x": [[1, 1.5], [0.3, 0.45], [0.1, 0.7], [0.7, 0.1], [0.35, 0.05]]},
        [0.2, 0.784, 1.17, 1.4],
        "within",
        {"x": [[1, 1], [1, 1], [1, 1], [1, 1], [1, 1]]},
    ),
    "a NaN inside a function": (
        """<ir_version: 9, opset_import: ["": 17, "f": 1]> g (float[3] x) => (int64[1] y)
        { s = Sqrt (x) y = f.best (s) }
        <domain: "f", opset_import: ["": 17]> best (x) => (y) { y = ArgMax <axis = 0> (x) }""",
        {"x": [-1, 4, 2]},
        np.array([2]),
        "unspecified",
        {"x": [1, 4, 2]},
    ),
    "a NaN inside a loop inside a branch": (
        """<ir_version: 9, opset_import: ["": 17]>
        g (bool c, int64 n, float[3] x) => (int64 y) <float[3] z = {0, 0, 0}> {
            y = If (c) <
                then_branch = t () => (int64 a) {
                    s = Loop (n, c) <body = b (int64 i, bool k) => (bool k2, int64 o) {
                        k2 = Identity (k) r = Sqrt (x) o = ArgMax <axis = 0, keepdims = 0> (r) }>
                    a = ReduceMax <keepdims = 0> (s) },
                else_branch = e () => (int64 d) { d = ArgMax <axis = 0, keepdims = 0> (z) }> }""",
        {"c": np.array(True), "n": np.array(2), "x": [-1, 4, 2]},
        np.array(2),
        "unspecified",
        {"c": np.array(True), "n": np.array(2), "x": [1, 4, 2]},
    ),
    "a loop that makes no turn": (
        """<ir_version: 9, opset_import: ["": 17]> g (int64 n, bool c, float[2] x) => (float y) {
            s, y = Loop (n, c, x) <body = b (int64 i, bool k, float[2] a) => (bool k2, float[2] a2, float[2] o) {
                k2 = Identity (k) a2 = Identity (a) o = Identity (a) }> }""",
        {"n": np.array(0), "c": np.array(True), "x": [1, 2]},
        np.zeros((0, 5)),
        "unspecified",
        {"n": np.array(2), "c": np.array(True), "x": [1, 2]},
    ),
    "a selection before a cast that no integer holds": (
        program("x: f32[3]", "y = reduce_min(cast(x, to=u64), axes=[0])"),
        {"x": [-1, 0, 2]},
        np.array([2**64 - 1], np.uint64),
        "unspecified",
        {"x": [1, 0, 2]},
    ),
    "a number next to 1 raised to NaN": (
        program("x: f32[2], n: f32[2]", "y = sqrt(x) ** n"),
        {"x": [0.9999998, 4], "n": [NAN, 2]},
        [1, 4],
        "overflowed",
        {"x": [0.99, 4], "n": [NAN, 2]},
    ),
    "one of many numbers that kernels round apart": (
        program("x: f32[20]", "y = argmax(softsign(x), axes=[0])"),
        {"x": np.arange(20.0) + 20000},
        np.array([7], np.uint32),
        "unspecified",
        {"x": np.arange(20.0)},
    ),
    "a limit that a quotient may miss": (
        program("x: f32[8]", "y = argmax(softsign(x), axes=[0])"),
        {"x": [6.9e7, 1e8, 1, 2, 3, 4, 5, 6]},
        np.array([1], np.uint32),
        "within",
        {"x": [6.9e7, 1, 1, 2, 3, 4, 5, 6]},
    ),
    "a logarithm of terms that cancel": (
        program("x: f32[2]", "y = hardmax(reduce_log_sum(x, axes=[0]), axes=[0])"),
        {"x": [-0.3, 0.3]},
        [0],
        "overflowed",
        {"x": [-1, 1]},
    ),
    "a normalization of equal numbers": (
        """<ir_version: 9, opset_import: ["": 17]> g (int64[1, 2, 5] x) => (float[1, 2, 5] y)
        <float[2] s = {1, 1}, float[2] b = {0, 0}, float[2, 1] c = {0.00001, 2}>
        { f = Cast <to = 1> (x) n = InstanceNormalization (f, s, b) y = Add (n, c) }""",
        {"x": np.ones((1, 2, 5), np.int64)},
        [[[0] * 5, [2] * 5]],
        "within",
        {"x": np.zeros((1, 2, 5), np.int64)},
    ),
    "a mean of infinities inside a loop": (
        """<ir_version: 10, opset_import: ["": 17]> g (int64 n, float[2] x) => (float[1] y) <float[2] s = {1, 1}> {
            r = Reciprocal (x)
            z, y = Loop (n, "", r) <body = b (int64 i, bool k, float[2] a) => (bool k, float[2] o, float[1] m) {
                o, m, d = LayerNormalization (a, s) }> }""",
        {"n": np.array(1), "x": [0, 0]},
        [[INF]],
        "unspecified",
        {"n": np.array(1), "x": [1, 2]},
    ),
    "numbers that cancel inside a branch": (
        """<ir_version: 9, opset_import: ["": 17]> g (bool c, float[3] x) => (float[3] y) {
            y = If (c) <
                then_branch = t () => (float[3] a) { e = Exp (x) l = Log (e) a = Sub (x, l) },
                else_branch = f () => (float[3] d) { d = Neg (x) }> }""",
        {"c": np.array(True), "x": [0.7, 1.3, 2.1]},
        [1.2e-7, 1.2e-7, 2.4e-7],
        "within",
        {"c": np.array(False), "x": [0.7, 1.3, 2.1]},
    ),
    "equal products, which Unique keeps apart if they are rounded otherwise": (
        """<ir_version: 9, opset_import: ["": 17]> g (float[2] x, float[2] v) => (float[n] y) {
            r = Reciprocal (v) p = Mul (x, r) y = Unique (p) }""",
        {"x": [1, 7], "v": [3, 21]},
        [0.33333334, 0.33333337],
        "within",
        {"x": [1, 7], "v": [3, 3]},
    ),
    "a mean of nothing inside a branch": (
        """<ir_version: 9, opset_import: ["": 17]> g (bool c, float[n] x) => (float y) {
            y = If (c) <
                then_branch = t () => (float a) { m = ReduceMean <keepdims = 0> (x) a = Sqrt (m) },
                else_branch = f () => (float d) { d = ReduceSum <keepdims = 0> (x) }> }""",
        {"c": np.array(True), "x": []},
        NAN,
        "unspecified",
        {"c": np.array(True), "x": [1]},
    ),
    "a norm of equal numbers, of which the shift is left": (
        program("x: f32[27]", "y = layer_norm(x, x, x, axis=0) != x"),
        {"x": [7.3e8] * 27},
        np.zeros(27, bool),
        "within",
        {"x": [*[0.5] * 26, 1]},
    ),
    "equal logarithms of sums": (
        program("x: f32[3, 15]", "y = argmax(reduce_log_sum_exp(x, axes=[0]), axes=[1])"),
        {"x": [[1] * 15, [0] * 15, [1] * 15]},
        np.array([[14]], np.uint32),
        "within",
        {"x": [[2, *[1] * 14], [0] * 15, [1] * 15]},
    ),
    "equal products that keep their axes and do not": (
        program("x: f32[2, 2], v: f32[2, 2]", "y = reduce_prod(x) < reduce_prod(v, keepdims=false)"),
        {"x": [[0.3, 0.7], [1.1, 1.3]], "v": [[0.3, 0.7], [1.1, 1.3]]},
        np.array([[True]]),
        "within",
        {"x": [[0.3, 0.7], [1.1, 1.3]], "v": [[0.3, 0.7], [1.1, 1.2]]},
    ),
    "f16 that a function keeps in f32": (
        """<ir_version: 9, opset_import: ["": 17, "f": 1]> g (float16[3] x) => (float y) { y = f.product (x) }
        <domain: "f", opset_import: ["": 17]> product (x) => (y)
        { p = ReduceProd <keepdims = 0> (x) y = Cast <to = 1> (p) }""",
        {"x": np.array([300, 20, 20], np.float16)},
        INF,
        "overflowed",
        {"x": np.array([3, 2, 2], np.float16)},
    ),
}


@each_row("name", ROWS)
def test_right_results_and_wrong_ones(name: str) -> None:
    text, feeds, result, status, other = ROWS[name]
    subject = subject_of(text)

    given, made = ({key: array_of(x) for key, x in fed.items()} for fed in (feeds, other))
    right = array_of(result)
    assert status_of(subject, given, right) == status
    assert status_of(subject, made, right) == "different"


def array_of(x: Any) -> Array:
    """Numbers as f32; arrays of f16, integers and truth values stay."""
    found = np.asarray(x)
    keeps = isinstance(x, np.ndarray) and (found.dtype.kind in "iub" or found.dtype == np.float16)
    return found if keeps else found.astype(np.float32)


@each_row(
    "text, x, wrong",
    [
        (program("x: f32[2]", "y = is_inf(silu(x * 2))"), [-INF, 1], [True, False]),
        (
            program("x: f32[1]", "y = reduce_l2(matmul(reduce_log_sum(x - x), iota(length=1, dtype=f32) - 2))"),
            [1],
            -INF,
        ),
    ],
)
def test_wrong_results_beside_infinities(text: str, x: Any, wrong: Any) -> None:
    """The largest number replaces an infinity. Infinities that it makes excuse nothing. The logarithm of 0 has
    one sign."""
    result = np.array(wrong) if isinstance(wrong, list) else array_of(wrong)
    assert status_of(subject_of(text), {"x": array_of(x)}, result) == "different"
