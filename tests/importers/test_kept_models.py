"""Models that cannot be said at another opset, or not as operations, are passed on as they stand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest
from import_helpers import run
from onnx import parser

import dmlc
from dmlc.diagnostics import DmlcError
from dmlc.targets import load_target, target_names
from tests.rows import each_row

#: Targets that emit ONNX.
TARGETS = [name for name in target_names() if load_target(name).kernels is not None]

RNG = np.random.default_rng(0)


def f32(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.standard_normal(shape).astype(np.float32)


def tokens_of(opset: int) -> str:
    """Data as (batch, channels, all else), its shape computed as exporters do."""
    slices = "n = Slice(s, a, b)  c = Slice(s, b, d)" if opset > 9 else "n = Gather(s, a)  c = Gather(s, b)"
    return f"s = Shape(x)  {slices}  t = Concat<axis=0>(n, c, e)  r = Reshape(x, t)"


NUMBERS = "int64[1] a = {0}, int64[1] b = {1}, int64[1] d = {2}, int64[1] e = {-1}"


def model(text: str) -> onnx.ModelProto:
    made: onnx.ModelProto = parser.parse_model(text)
    return made


def same_nodes(source: onnx.ModelProto, emitted: onnx.ModelProto) -> None:
    assert [n.SerializeToString(deterministic=True) for n in emitted.graph.node] == [
        n.SerializeToString(deterministic=True) for n in source.graph.node
    ]


def same_numbers(source: onnx.ModelProto, emitted: onnx.ModelProto, feeds: Mapping[str, Any]) -> None:
    for old, new in zip(run(source, feeds), run(emitted, feeds), strict=True):
        assert new.dtype == old.dtype
        np.testing.assert_array_equal(new, old)


#: Everything that was read as an operation whose lowering needs opset 11 or later.
AROUND = """
    s = Shape(x)  n = Gather<axis=0>(s, a)  t = Concat<axis=0>(n, e)  r = Reshape(x, t)
    l = ReduceLogSumExp<axes=[1], keepdims=0>(r)  w = Expand(l, n)  f = Cast<to=9>(r)  h = Cast<to=1>(f)
    p = Softmax<axis=1>(r)  g = Concat<axis=1>(h, p)
    o = Unsqueeze<axes=[0]>(w)
"""


#: Nodes without an equal at any later opset.
STUCK = {
    7: "q, m, v, m2, v2 = BatchNormalization<spatial=0>(x, i, i, i, i)",
    8: "q, m, v, m2, v2 = BatchNormalization<spatial=0>(x, i, i, i, i)",
    9: "q, m = Dropout(x)  v = Relu(m)",
}


@each_row("target", TARGETS)
@each_row("opset", STUCK)
def test_a_model_below_the_opsets_of_a_target_keeps_every_node(opset: int, target: str) -> None:
    source = model(f"""
        <ir_version: 4, opset_import: ["": {opset}]>
        g (float[N, 3] x) => (float[?, ?] g, float[?, ?] o, float[N, 3] q, float[?, ?] m, float[?, ?] v)
        <int64[1] a = {{0}}, int64[1] e = {{-1}}, float[3] i = {{1, 2, 3}}> {{ {AROUND} {STUCK[opset]} }}
    """)
    program = dmlc.compile(source, target=target)
    emitted = program.to_onnx()
    assert program.opset == opset
    same_nodes(source, emitted)
    assert any("nothing is rewritten" in note for note in program.artifact("onnx").report)
    if opset == 9:
        same_numbers(source, emitted, {"x": f32(2, 3)})


@each_row("target", TARGETS)
def test_scan_of_batches_keeps_its_opset_and_its_numbers(target: str) -> None:
    source = model("""
        <ir_version: 4, opset_import: ["": 8]>
        g (float[B, 2] h, float[B, T, 2] x) => (float[?, ?] g, float[B, 2] y, float[B, T, 2] ys)
        <int64[1] a = {0}, int64[1] e = {-1}> {
            s = Shape(x)  n = Gather<axis=0>(s, a)  t = Concat<axis=0>(n, e)  g = Reshape(x, t)
            y, ys = Scan<num_scan_inputs = 1, body = step (float[2] i, float[2] j) => (float[2] o, float[2] p)
                { o = Add(i, j)  p = Identity(o) }>(, h, x)
        }
    """)
    emitted = dmlc.compile(source, target=target).to_onnx()
    same_nodes(source, emitted)
    same_numbers(source, emitted, {"h": f32(2, 2), "x": f32(2, 5, 2)})


@each_row("target", TARGETS)
@each_row("opset", [11, 12])
def test_a_reshape_by_sizes_of_its_operand_copies_them(opset: int, target: str) -> None:
    """Below opset 14 no reshape says a size that may be 0; one that is copied in its place needs not."""
    source = model(f"""
        <ir_version: 6, opset_import: ["": {opset}]>
        g (float[B, C, H, W] x) => (float[?, ?, ?] y, float[?, ?, ?, ?] q)
        <{NUMBERS}, float[0] o = {{}}, float[4] u = {{1, 1, 2, 2}}> {{
            {tokens_of(opset)}  y = Softmax<axis=2>(r)
            q = Resize<mode="nearest", coordinate_transformation_mode="tf_half_pixel_for_nn">(x, o, u)
        }}
    """)
    emitted = dmlc.compile(source, target=target, opset=opset).to_onnx()
    assert [node.op_type for node in emitted.graph.node] == ["Reshape", "Softmax", "Resize"]
    same_numbers(source, emitted, {"x": f32(2, 3, 2, 4)})


@each_row("target", TARGETS)
def test_a_reshape_to_a_computed_size_that_fails_where_that_is_0_needs_no_computing(target: str) -> None:
    """As PyTorch exports MultiheadAttention of an open batch: [time, batch, 8] by way of [time * batch, 8]."""
    source = model("""
        <ir_version: 8, opset_import: ["": 17]>
        g (float[4, B, 2, 4] x) => (float[?, 8] y)
        <int64[1] one = {1}, int64[1] two = {2}, int64[1] four = {4}, int64[1] eight = {8}> {
            s = Shape(x)  b = Slice(s, one, two)  n = Mul(b, four)  t = Concat<axis=0>(n, eight)  y = Reshape(x, t)
        }
    """)
    emitted = dmlc.compile(source, target=target).to_onnx()
    assert [node.op_type for node in emitted.graph.node] == ["Reshape"]
    same_numbers(source, emitted, {"x": f32(4, 3, 2, 4)})


@each_row("target", TARGETS)
@each_row("rest", ["z", "minus"])
def test_a_reshape_to_a_computed_size_that_may_copy_is_carried(rest: str, target: str) -> None:
    """With another size of 0, or one that is left over, a size of 0 gives a result of another shape."""
    source = model(f"""
        <ir_version: 8, opset_import: ["": 17]>
        g (float[2, B, C] x) => (float[?, ?, ?] y)
        <int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] three = {{3}}, int64[1] minus = {{-1}}> {{
            s = Shape(x)  b = Slice(s, one, two)  z = Slice(s, two, three)  n = Mul(b, two)
            t = Concat<axis=0>(n, {rest}, one)  y = Reshape(x, t)
        }}
    """)
    emitted = dmlc.compile(source, target=target).to_onnx()
    assert "Mul" in [node.op_type for node in emitted.graph.node]
    same_numbers(source, emitted, {"x": f32(2, 3, 4)})


@each_row("target", TARGETS)
@each_row(
    ("opset", "nodes", "kept"),
    [
        (17, 'y = Pad <mode = "reflect"> (x, none)', []),
        (17, 'y = Pad <mode = "edge"> (x, one)', ["Pad"]),
        (10, 'y = Pad <mode = "reflect", pads = [0, 0, 0, 0, 0, 0]> (x)', []),
        (10, 'y = Pad <mode = "edge", pads = [0, 0, 1, 0, 0, 1]> (x)', ["Pad"]),
        (17, 'y = Resize <mode = "linear"> (x, "", ones)', []),
        (17, 'y = Resize <mode = "linear", coordinate_transformation_mode = "align_corners"> (x, "", "", same)', []),
        (17, 'y = Resize <mode = "linear"> (x, "", "", other)', ["Resize"]),
        (17, 'y = Resize <mode = "linear"> (x, "", twos)', ["Resize"]),
        (19, 'y = Resize <axes = [2], mode = "linear"> (x, "", "", last)', []),
        (17, 'y = Resize <coordinate_transformation_mode = "tf_crop_and_resize"> (x, roi, ones)', ["Resize"]),
    ],
)
def test_pads_of_nothing_and_a_resize_to_the_same_sizes_are_no_nodes(
    opset: int, nodes: str, kept: list[str], target: str
) -> None:
    weights = (
        "int64[6] none = {0, 0, 0, 0, 0, 0}, int64[6] one = {0, 0, 1, 0, 0, 1}, float[3] ones = {1, 1, 1}, "
        "float[3] twos = {1, 1, 2}, int64[3] same = {2, 3, 5}, int64[3] other = {2, 3, 7}, int64[1] last = {5}, "
        "float[6] roi = {0, 0, 0.5, 1, 1, 1}"
    )
    source = model(f"""
        <ir_version: 7, opset_import: ["": {opset}]>
        g (float[2, 3, 5] x) => (float[?, ?, ?] z) <{weights}> {{ {nodes}  z = Tanh(y) }}
    """)
    emitted = dmlc.compile(source, target=target).to_onnx()
    assert [node.op_type for node in emitted.graph.node] == [*kept, "Tanh"]
    same_numbers(source, emitted, {"x": f32(2, 3, 5)})


@each_row("target", TARGETS)
def test_what_was_asked_for_and_cannot_be_said_is_refused(target: str) -> None:
    source = model("""
        <ir_version: 4, opset_import: ["": 9]>
        g (float[N, 3] x) => (float[N, 3] y, float[N, 3] k) { y, k = Dropout(x) }
    """)
    assert dmlc.compile(source, target=target).opset == 9
    with pytest.raises(DmlcError) as caught:
        dmlc.compile(source, target=target, opset=14)
    assert caught.value.diagnostics[0].code.id == "E0501"


@each_row("target", TARGETS)
@each_row("asked", [None, 14, 17])
@each_row("axis", [0, 1, 2])
def test_a_recognition_head_of_unknown_rank(axis: int, asked: int | None, target: str) -> None:
    """As Paddle exports it: reshapes to computed lists, recurrent layers aside, and a softmax of opset 12."""
    source = model(f"""
        <ir_version: 7, opset_import: ["": 12]>
        g (float[B, C, H, W] x, int64[K] k) => (float y, float z) <{NUMBERS}> {{
            {tokens_of(12)}  u = Reshape(r, k)  y = Softmax<axis={axis}>(u)  z = LogSoftmax<axis={axis}>(u)
        }}
    """)
    emitted = dmlc.compile(source, target=target, opset=asked).to_onnx()
    for shape, want in (((2, 3, 2, 4), (2, 3, 8)), ((1, 3, 1, 5), (5, 1, 3)), ((2, 2, 3, 3), (2, 2, 3, 3))):
        same_numbers(source, emitted, {"x": f32(*shape), "k": np.array(want)})


@each_row("target", TARGETS)
@each_row("axis", [0, 1, 2])
def test_a_softmax_of_nothing_and_of_unknown_rank(axis: int, target: str) -> None:
    source = model(f"""
        <ir_version: 7, opset_import: ["": 12]> g (float[n] x, int64[K] k, int64[1] from, int64[1] to, int64[1] a)
        => (float[?, ?, ?] y) {{ u = Reshape(x, k)  v = Slice(u, from, to, a)  y = Softmax<axis={axis}>(v) }}
    """)
    emitted = dmlc.compile(source, target=target, opset=14).to_onnx()
    for empty in range(3):
        feeds = {"from": np.array([1]), "to": np.array([1]), "a": np.array([empty])}
        same_numbers(source, emitted, {"x": f32(24), "k": np.array([2, 3, 4]), **feeds})


@each_row("target", TARGETS)
@each_row("mode", ["nearest", "linear"])
@each_row("op", ["Upsample", "Resize"])
def test_computed_scales_are_raised(op: str, mode: str, target: str) -> None:
    """As old exporters write interpolation: the scale is a quotient of sizes."""
    source = model(f"""
        <ir_version: 5, opset_import: ["": {9 if op == "Upsample" else 10}]>
        g (float[1, C, H, W] x, float[2] q) => (float[?, ?, ?, ?] y, float[?, ?] z)
        <float[2] one = {{1, 1}}, int64[1] a = {{0}}, int64[1] e = {{-1}}> {{
            k = Concat<axis=0>(one, q)  y = {op}<mode="{mode}">(x, k)
            s = Shape(y)  n = Gather<axis=0>(s, a)  t = Concat<axis=0>(n, e)  z = Reshape(y, t)
        }}
    """)
    program = dmlc.compile(source, target=target)
    assert program.opset >= 11
    kinds = [(2.0, 3.0), (1.5, 1.3), (0.5, 0.6), (2.0, 0.5)] if op == "Resize" else [(2.0, 3.0), (1.5, 1.3)]
    for scales in kinds:
        same_numbers(source, program.to_onnx(), {"x": f32(1, 2, 5, 7), "q": np.array(scales, np.float32)})


@each_row("target", TARGETS)
def test_statistics_of_each_element_are_raised(target: str) -> None:
    source = model("""
        <ir_version: 3, opset_import: ["": 7]>
        g (float[N, 2, 3] x, float[2, 3] a, float[2, 3] b, float[2, 3] c, float[2, 3] d) => (float[N, 2, 3] y)
        { y = BatchNormalization<spatial = 0>(x, a, b, c, d) }
    """)
    program = dmlc.compile(source, target=target)
    assert program.opset >= 11
    feeds = {"a": f32(2, 3), "b": f32(2, 3), "c": f32(2, 3), "d": np.abs(f32(2, 3)) + 1}
    for batch in (0, 4):
        feeds["x"] = f32(batch, 2, 3)
        (old,), (new,) = run(source, feeds), run(program.to_onnx(), feeds)
        np.testing.assert_allclose(new, old, rtol=1e-6, atol=1e-6)
