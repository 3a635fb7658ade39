"""Normalizations whose means may be over a single element, or a few: default rewrites against f64, one plane at a time.

Of one element the deviation is 0, and the result is the bias to the last place, however large the element is.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import dmlc
from tests.kit import run
from tests.rows import each_row
from tests.versions import NEEDS_EXACT_LAYER_NORM

EPSILON = 1e-5
SCALE, BIAS = np.array([2.0, 3.0, 1.0, 0.5]), np.array([0.3, -0.1, 0.0, 7.0])
_CORE = """m = ReduceMean<axes=[AXES]>(x) d = Sub(x, m) q = Pow(d, two) v = ReduceMean<axes=[AXES]>(q) w = Add(v, e)
r = Sqrt(w)"""
_WEIGHTS = "float e={0.00001}, float two={2}, float[1,4,1,1] s={2,3,1,0.5}, float[1,4,1,1] b={0.3,-0.1,0,7}"
_OPERATOR = "i = InstanceNormalization<epsilon=0.00001>(x, ones, zeros)"
_PLAIN = f"{_WEIGHTS}, float[4] ones={{1,1,1,1}}, float[4] zeros={{0,0,0,0}}"
_GROUPS = f"{_PLAIN}, int64[3] g={{0,4,-1}}"
#: Bodies of models from x to y, each a normalization of planes with one scale and one bias for each of four channels.
PLANES = {
    "written out": (_WEIGHTS, f"{_CORE} n = Div(d, r) t = Mul(n, s) y = Add(t, b)"),
    "written out, bias taken off": (_WEIGHTS, f"{_CORE} n = Div(d, r) t = Mul(n, s) o = Neg(b) y = Sub(t, o)"),
    "the root's reciprocal": (_WEIGHTS, f"{_CORE} k = Reciprocal(r) n = Mul(d, k) t = Mul(n, s) y = Add(b, t)"),
    "the operator": (_PLAIN, f"{_OPERATOR} t = Mul(i, s) y = Add(t, b)"),
    "the operator and a bias": (_PLAIN, f"{_OPERATOR} t = Add(i, b) u = Sub(t, b) v = Mul(u, s) y = Add(v, b)"),
    "groups of one channel": (
        _GROUPS,
        "r = Reshape(x, g) i = InstanceNormalization<epsilon=0.00001>(r, ones, zeros) h = Shape(x)"
        " k = Reshape(i, h) t = Mul(k, s) y = Add(t, b)",
    ),
}
ROWS = {
    "written out": f"{_CORE} n = Div(d, r) t = Mul(n, s) y = Add(t, b)",
    "the root's reciprocal": f"{_CORE} k = Reciprocal(r) n = Mul(d, k) t = Mul(n, s) y = Add(b, t)",
}
GROUP_NORM = "y = GroupNormalization<num_groups=4, epsilon=0.00001>(x, one_s, one_b)"


def planes(form: str, height: int | str, width: int | str) -> onnx.ModelProto:
    weights, body = PLANES[form]
    return read(f"(float[N,4,{height},{width}] x) => (float[N,4,{height},{width}] y)", weights, body, "2,3")


def rows(form: str, count: int | str) -> onnx.ModelProto:
    weights = "float e={0.00001}, float two={2}, float[1] s={2}, float[1] b={0.3}"
    return read(f"(float[N,{count}] x) => (float[N,{count}] y)", weights, ROWS[form], "1")


def group_norm(height: int | str, width: int | str) -> onnx.ModelProto:
    weights = "float[4] one_s={2,3,1,0.5}, float[4] one_b={0.3,-0.1,0,7}"
    head = f"(float[N,4,{height},{width}] x) => (float[N,4,{height},{width}] y)"
    return read(head, weights, GROUP_NORM, "2,3", opset=21)


def read(head: str, weights: str, body: str, axes: str, opset: int = 17) -> onnx.ModelProto:
    text = f'<ir_version: 8, opset_import: ["":{opset}]> g {head} <{weights}> {{ {body.replace("AXES", axes)} }}'
    return parser.parse_model(text)


def expected(plane: Any, scale: float, bias: float) -> tuple[np.ndarray[Any, Any], float]:
    """The normalized plane in f64, and how far roundings of its elements to f32 may move it."""
    numbers = plane.astype(np.float64)
    steep = scale / np.sqrt(numbers.var() + EPSILON)
    known = 2.0**-24 * np.abs(numbers).max() * steep if numbers.size > 1 else 0.0
    return (numbers - numbers.mean()) * steep + bias, 16 * known + 64 * 2.0**-24 * (scale + abs(bias))


TARGETS: tuple[dmlc.TargetName, ...] = ("directml", "cpu", "onnx")
OPEN_OR_FIXED: list[tuple[int | str, int | str]] = [("H", "W"), (1, 1), (1, "W"), ("H", 2), (1, 2)]
SIZES = [(1, 1), (1, 2), (2, 1), (2, 2), (1, 5)]


@NEEDS_EXACT_LAYER_NORM
@each_row("turn", [0, 1])
@each_row("sizes", OPEN_OR_FIXED)
@each_row("form", [*PLANES, "GroupNormalization"])
def test_planes(form: str, sizes: tuple[int | str, int | str], turn: int) -> None:
    """Two of the targets for each form and sizes; the next sizes take others."""
    target = TARGETS[(len(form) + OPEN_OR_FIXED.index(sizes) + turn) % 3]
    source = group_norm(*sizes) if form == "GroupNormalization" else planes(form, *sizes)
    made = dmlc.compile(source, target=target).to_onnx()
    if any(node.op_type == "GroupNormalization" for node in made.graph.node):
        return  # by whose definition the variance is E[x^2] - E[x]^2
    generator = np.random.default_rng(7)
    for height, width in SIZES:
        if sizes[0] not in ("H", height) or sizes[1] not in ("W", width):
            continue
        for centre in (0.0, 1.0, -300.0, 19000.3):
            x = (centre + generator.standard_normal((3, 4, height, width))).astype(np.float32)
            x[1] = centre
            y = run(made, x=x)["y"]
            for image, channel in np.ndindex(3, 4):
                want, slack = expected(x[image, channel], SCALE[channel], BIAS[channel])
                assert np.abs(y[image, channel] - want).max() <= slack, (centre, image, channel)


@NEEDS_EXACT_LAYER_NORM
@each_row("target", ["directml", "cpu", "onnx"])
@each_row("count", ["C", 1, 2, 5])
@each_row("form", ROWS)
def test_rows(form: str, count: int | str, target: str) -> None:
    made = dmlc.compile(rows(form, count), target=target).to_onnx()
    generator = np.random.default_rng(7)
    for width in (1, 2, 5) if count == "C" else (count,):
        for centre in (0.0, 1.0, -300.0):
            x = (centre + generator.standard_normal((3, int(width)))).astype(np.float32)
            y = run(made, x=x)["y"]
            for row in range(3):
                want, slack = expected(x[row], 2.0, 0.3)
                assert np.abs(y[row] - want).max() <= slack, (centre, row)


@pytest.mark.usefixtures("sessions_here")
@each_row(("turn", "sizes"), enumerate([("H", "W"), (1, 1), ("H", 2)]))
@each_row("form", PLANES)
def test_verify_agrees(form: str, turn: int, sizes: tuple[int | str, int | str]) -> None:
    target = TARGETS[(turn + list(PLANES).index(form)) % 2]
    verdict = dmlc.compile(planes(form, *sizes), target=target).verify(4)
    assert verdict.ok, verdict.to_text()


@pytest.mark.parametrize(
    ("height", "width", "nodes"),
    [("H", "W", 2), (1, "W", 2), (1, 1, 2), ("H", 2, 1), (2, "W", 1), (3, 5, 1)],
)
def test_the_bias_joins_where_planes_have_several_elements(height: Any, width: Any, nodes: int) -> None:
    program = dmlc.compile(planes("the operator", height, width), target="directml")
    assert len(program.to_onnx().graph.node) == nodes
    said = [remark.rule for remark in program.remarks]
    assert ("absorb-channel-bias" in said) == (nodes == 2)
