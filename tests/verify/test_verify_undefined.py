"""An undefined integer excuses the elements that depend on it, and no other difference of the model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from model_pairs import verify_graph, verify_models
from onnx import ModelProto, parser

import dmlc
from dmlc.verifying.dependence import dependent
from dmlc.verifying.graph_subject import GraphSubject
from dmlc.verifying.onnx_subject import OnnxSubject
from dmlc.verifying.subject import TraceStep
from dmlc.verifying.undefined import UndefinedElements, divisions_by_zero, unspecified_casts
from tests.rows import each_row

pytestmark = pytest.mark.usefixtures("sessions_here")

#: Positions of a bucket as T5 makes them: the logarithm of 0 is cast, and the cast element is never selected.
BUCKETS = """<ir_version: 8, opset_import: ["" : 17]> g (float[6, 4] x) => (float[6, 4] y)
<int64[6] n = {0, 1, 2, 3, 4, 5}, int64 two = {2}> {
    f = Cast<to=1>(n)
    l = Log(f)
    c = Cast<to=7>(l)
    small = Less(n, two)
    bucket = Where(small, n, c)
    row = Gather<axis=0>(x, bucket)
    r = Relu(x)
    y = Add(r, row)
}"""

SELECTED_CAST = """<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (int32[4] y)
<float k = {1e20}, int32 one = {1}> {
    big = Mul(x, k)
    c = Cast<to=6>(big)
    y = Add(c, one)
}"""

QUANTIZED = """<ir_version: 10, opset_import: ["" : 17]> g (float[4, 4] x) => (float[4, 4] y)
<float s = {4.0}, int8 z = {0}, float k = {40.0}> {
    big = Mul(x, k)
    q = QuantizeLinear(big, s, z)
    d = DequantizeLinear(q, s, z)
    y = Relu(d)
}"""


def found_in(find: Callable[..., Any], steps: list[TraceStep] | None) -> list[UndefinedElements]:
    return [one for step in steps or () for one in find(step)]


def with_operator(text: str, old: str, new: str) -> tuple[ModelProto, ModelProto]:
    a, b = parser.parse_model(text), parser.parse_model(text)
    next(node for node in b.graph.node if node.op_type == old).op_type = new
    return a, b


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [(BUCKETS, "Relu", "Identity"), (BUCKETS, "Add", "Sub"), (QUANTIZED, "Relu", "Neg")],
)
def test_faults_beside_an_undefined_integer_that_is_not_used(text: str, old: str, new: str) -> None:
    verdict = verify_models(*with_operator(text, old, new), inputs=8)
    assert verdict.status == "different", verdict.to_text()
    assert verify_models(parser.parse_model(text), parser.parse_model(text)).status == "equal"


def test_output_that_is_excused_on_every_input_is_not_verified() -> None:
    verdict = verify_models(*with_operator(SELECTED_CAST, "Add", "Sub"), inputs=1)
    assert verdict.status == "not verified"
    assert "y differs on every input, and is comparable on none" in verdict.reason


def test_fault_of_a_program_beside_an_undefined_integer() -> None:
    text = """
model m(x: f32[4], n: f32[4]) -> (y) {
    c = cast(log(n * 0.0), to=i32)
    kept = where(n == n, 0, c)
    y = sigmoid(x) + (kept as f32)
    return y
}
"""
    program = dmlc.compile(dmlc.Source(text), target="onnx")
    model = program.to_onnx()
    for node in model.graph.node:
        node.op_type = "Tanh" if node.op_type == "Sigmoid" else node.op_type
    verdict = verify_graph(program.source_graph, model, inputs=8)
    assert verdict.status == "different", verdict.to_text()


def test_index_that_is_undefined_excuses_what_it_selects() -> None:
    text = """<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) <int64 zero = {0}> {
        c = Cast<to=7>(x)
        i = Max(c, zero)
        y = Gather<axis=0>(x, i)
    }"""
    side, feeds = OnnxSubject(parser.parse_model(text)), {"x": np.array([1, np.nan, 2, 0], np.float32)}
    reached = dependent(found_in(unspecified_casts, side.trace(feeds, "y")), side, feeds, "y")
    assert np.asarray(reached).tolist() == [False, True, False, False]


@pytest.mark.parametrize(
    ("find", "numbers", "expected"),
    [
        (unspecified_casts, {"x": [1, np.inf, 3], "n": [1, 2, 3]}, [False, True, False]),
        (divisions_by_zero, {"x": [1, 2, 3], "n": [1, 2, 0]}, [False, False, True]),
    ],
)
def test_places_that_depend_on_undefined_elements(
    find: Callable[..., Any], numbers: dict[str, list[float]], expected: list[bool]
) -> None:
    text = """
model m(x: f32[3], n: i32[3]) -> (y, z) {
    y = cast(x, to=i32) + 7 // n
    z = (y * 0) + n
    return y, z
}
"""
    side = GraphSubject(dmlc.compile(dmlc.Source(text), target="onnx").source_graph)
    feeds = {"x": np.array(numbers["x"], np.float32), "n": np.array(numbers["n"], np.int32)}
    found = found_in(find, side.trace(feeds, "y"))
    assert np.asarray(dependent(found, side, feeds, "y")).tolist() == expected
    assert not np.any(dependent(found, side, feeds, "z"))


def test_quantizing_a_finite_number_is_defined() -> None:
    x, made = np.array([1e9, -1e9, 3], np.float32), np.array([127, -128, 3], np.int8)
    step = TraceStep("quantizelinear", (x, np.float32(1)), (made,), writes=("q",))  # type: ignore[arg-type]
    assert not list(unspecified_casts(step))
    x[1] = np.nan
    assert next(unspecified_casts(step)).places.tolist() == [False, True, False]
    dynamic = TraceStep("dynamicquantizelinear", (x,), (made,), writes=("q",))
    assert next(unspecified_casts(dynamic)).places.all()


CHAINS = {
    "of one dtype": """<ir_version: 8, opset_import: ["" : 17]> g (float[3] x, int32[3] n) => (int32[3] y) {
        c = Cast<to=6>(x)
        y = Div(c, n)
    }""",
    "of a dtype that Where has no kernel for": """<ir_version: 8, opset_import: ["" : 17]>
    g (float[3] x, int32[3] n) => (int32[3] y) {
        c = Cast<to=4>(x)
        w = Cast<to=6>(c)
        y = Div(w, n)
    }""",
}


@each_row("text", CHAINS.values(), ids=CHAINS.keys())
@each_row("kind", [GraphSubject, OnnxSubject])
def test_an_undefined_element_behind_another_hides_nothing(kind: Any, text: str) -> None:
    """The quotient is undefined in one place, and depends on the cast in another."""
    model = parser.parse_model(text)
    side = OnnxSubject(model) if kind is OnnxSubject else GraphSubject(dmlc.compile(model, target="onnx").source_graph)
    x, n = np.array([np.nan, 5, 6], np.float32), np.array([1, 1, 0], np.int32)
    feeds = {"x": x, "n": np.array([1, 1, 1], np.int32)}
    steps = side.trace(feeds, "y") or []
    quotient = next(step for step in steps if step.op == "div")
    at_the_end = UndefinedElements(quotient.writes[0], np.array([0, 5, 9], np.int32), n == 0, "")
    found = [*found_in(unspecified_casts, steps), at_the_end]
    assert len(found) == 2
    assert np.asarray(dependent(found, side, feeds, "y")).tolist() == [True, False, True]


def test_undefined_integers_whose_square_wraps_to_one() -> None:
    """The largest unsigned number squared is 1, as that of the lowest is, once a clip has raised it."""
    text = """
model m(n: u32[2, 2]) -> (y) {
    q = clip(7 // n, min=1)
    y = matmul(q, q)
    return y
}
"""
    side = GraphSubject(dmlc.compile(dmlc.Source(text), target="onnx").source_graph)
    feeds = {"n": np.zeros((2, 2), np.uint32)}
    found = found_in(divisions_by_zero, side.trace(feeds, "y"))
    assert np.all(dependent(found, side, feeds, "y"))
