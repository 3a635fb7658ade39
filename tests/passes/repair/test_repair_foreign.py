"""Repairs of nodes whose operand has an unknown rank, or whose axes are computed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import repair_helpers as r
from onnx import numpy_helper, parser

import dmlc
from tests.rows import each_row

FLOATS = {"float16": np.float16, "float": np.float32, "double": np.float64}
NUMBERS = np.array([[0.25, -3, 0], [np.inf, -0.0, 100]])


def model(text: str, opset: int) -> Any:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> {text}')


def compiled(made: Any, rule: str, *feeds: dict[str, Any], rtol: float = 0.0, **options: Any) -> dmlc.Program:
    program = dmlc.compile(made, **options)
    assert rule in dict(r.fired(program))
    program.require_sound()
    for feed in feeds:
        r.same(r.run(made, feed), program.run(feed, backend="cpu"), rtol)
    return program


@each_row("kind", FLOATS)
@each_row("opset", [13, 17, 21])
def test_a_cast_to_bool(kind: str, opset: int) -> None:
    """The fed shape hides the rank."""
    body = f"g ({kind}[2,3] x, int64[k] s) => (bool y) {{ h = Reshape(x, s) y = Cast<to = 9>(h) }}"
    made = model(body, opset)
    made.graph.output[0].type.tensor_type.ClearField("shape")
    x = NUMBERS.astype(FLOATS[kind])
    feeds = [{"x": x, "s": np.array(s, np.int64)} for s in ([6], [3, 2], [1, 2, 3])]
    program = compiled(made, "truth-of-unknown-rank", *feeds, exact=True)
    assert r.operators(program) == ["Reshape", "Equal", "Not"]


def test_a_cast_of_integers() -> None:
    made = model("g (int32[2,3] x, int64[k] s) => (bool y) { h = Reshape(x, s) y = Cast<to = 9>(h) }", 18)
    made.graph.output[0].type.tensor_type.ClearField("shape")
    feed = {"x": np.array([[0, 1, 5], [256, -1, 0]], np.int32), "s": np.array([3, 2])}
    for target in ("directml:ort-1.20", "directml"):
        compiled(made, "truth-of-unknown-rank", feed, target=target)


#: Nodes of ``h`` of unknown rank that stay, with the rule that is about them, the dtype of ``h`` and other inputs.
OF_UNKNOWN_RANK = {
    "cast of bytes": ("truth-of-unknown-rank", "uint8", "Cast<to = 9>(h)", ""),
    "mean of floats": ("exact-mean-of-unknown-rank", "float", "ReduceMean(h)", ""),
    "power": ("power-by-products", "int32", "Pow(h, two)", ", int32 two"),
    "exponent": ("power-by-products", "int32", "Pow(two, h)", ", int32 two"),
    "einsum": ("matmul-of-letters", "float", 'Einsum<equation = "abc,bcd->ad">(h, a)', ", float[3,4,5] a"),
    "einsum of three": ("einsum-of-pairs", "float", 'Einsum<equation = "ab,bc,cd->ad">(h, a, a)', ", float[3,3] a"),
    "einsum of one number": ("matmul-of-letters", "float", f'Einsum<equation = ",{"abcdefgh"}->ah">(h, a)',
                             ", float[2,1,2,1,2,1,2,1] a"),
    "ellipsis": ("spell-ellipsis", "float", 'Einsum<equation = "...ij,...jk->...ik">(h, h)', ""),
    "Trilu": ("merge-trilu-batch", "float", "Trilu(h)", ""),
    "LRN": ("merge-lrn-axes", "float", "LRN<size = 3>(h)", ""),
    "Gelu": ("gelu-operator", "float", "Gelu(h)", ""),
    "FastGelu": ("gelu-operator", "float", "com.microsoft.FastGelu(h)", ""),
    "product": ("merge-product-batch", "float", "com.microsoft.FusedMatMul(h, a)", ", float[2,2,2,3,4] a"),
    "normalization": ("plain-skip-norm", "float", "com.microsoft.SkipLayerNormalization(h, a, g)",
                      ", float[2,3,4] a, float[4] g"),
    "skip": ("plain-skip-norm", "float", "com.microsoft.SkipLayerNormalization(a, h, g)",
             ", float[2,3,4] a, float[4] g"),
    "attention": ("full-attention-bias", "float",
                  "com.microsoft.MultiHeadAttention<num_heads = 2>(h, h, h, , , b)", ", float[1,1,2,2] b"),
    "attention bias": ("full-attention-bias", "float",
                       "com.microsoft.MultiHeadAttention<num_heads = 2>(q, q, q, , , h)", ", float[3,2,8] q"),
    "pooling": ("reduce-many-axes", "float", "GlobalMaxPool(h)", ""),
    "Tile": ("tile-by-expand", "double", "Tile(h, repeats)", ""),
    "Resize": ("merge-resize-axes", "float", "Resize(h, , factors)", ""),
    "Resize to sizes": ("merge-resize-axes", "float", "Resize(h, , , sizes)", ""),
    "Pad of too few counts": ("slice-negative-pads", "float", "Pad(h, odd)", ""),
    "Pad of too few axes": ("slice-negative-pads", "float", "Pad(h, counts, , axes)", ""),
}  # fmt: skip
COUNTS = {
    "repeats": [2, 2], "sizes": [2, 2, 2, 4, 4], "factors": np.float32([1, 1, 1, 2, 2]), "odd": [-1, 2, 1],
    "counts": [-1, 2, 1, 0], "axes": [0],
}  # fmt: skip


@each_row("name", OF_UNKNOWN_RANK)
def test_what_needs_the_rank_stays_without_it(name: str) -> None:
    rule, kind, body, more = OF_UNKNOWN_RANK[name]
    text = f"g ({kind}[24] x, int64[k] s{more}) => ({kind} y) {{ h = Reshape(x, s) y = {body} }}"
    made = parser.parse_model(f'<ir_version: 8, opset_import: ["": 20, "com.microsoft": 1]> {text}')
    made.graph.output[0].type.tensor_type.ClearField("shape")
    if name == "cast of bytes":
        made.graph.output[0].type.tensor_type.elem_type = r.BOOL
    used = set(made.graph.node[1].input) & COUNTS.keys()
    made.graph.initializer.extend([numpy_helper.from_array(np.asarray(COUNTS[n]), n) for n in sorted(used)])
    program = r.left_alone(made, rule)
    assert r.operators(program) == ["Reshape", made.graph.node[1].op_type]


def test_zero_points_of_unknown_rank() -> None:
    body = "h = Reshape(x, k) y = com.microsoft.QLinearSigmoid(h, s, , s)"
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 20, "com.microsoft": 1]>'
        f"g (uint8[4] x, int64[r] k, float s) => (uint8 y) {{ {body} }}"
    )
    made.graph.output[0].type.tensor_type.ClearField("shape")
    program = dmlc.compile(made)
    assert ("explicit-zero-points", "exact") in r.fired(program)
    assert len(program.to_onnx().graph.node[1].input) == 5


VALUES = np.array([[[100, 100, -100], [-200, -200, -300]], [[1, 2, 3], [-np.inf, 0.5, 80]]])


@each_row("keepdims", [0, 1])
@each_row("kind", ["float16", "float"])
@each_row("opset", [18, 21])
def test_log_sum_exp_over_computed_axes(keepdims: int, kind: str, opset: int) -> None:
    made = model(
        f"g ({kind}[2,2,3] x, int64[k] a) => ({kind} y) {{ y = ReduceLogSumExp<keepdims={keepdims}>(x, a) }}", opset
    )
    made.graph.output[0].type.tensor_type.ClearField("shape")
    x = VALUES.astype(FLOATS[kind])
    feeds = [{"x": x, "a": np.array(a, np.int64)} for a in ([0], [-1], [1, 2], [], [0, 1, 2])]
    program = compiled(made, "shift-log-sum-exp-of-unknown-rank", *feeds, rtol=2e-3 if kind == "float16" else 1e-5)
    assert "ReduceLogSumExp" not in r.operators(program)


@each_row("opset", [13, 17, 18, 21])
@each_row("axes", [[-1], [0], None])
@each_row("keepdims", [0, 1])
def test_log_sum_exp_of_unknown_rank(opset: int, axes: list[int] | None, keepdims: int) -> None:
    given = "" if axes is None else f"axes={axes}, "
    if opset < 18:
        node = f"y = ReduceLogSumExp<{given}keepdims={keepdims}>(h)"
    elif axes is None:
        node = f"y = ReduceLogSumExp<keepdims={keepdims}>(h)"
    else:
        node = f"a = Constant<value = int64[1] {{{axes[0]}}}>() y = ReduceLogSumExp<keepdims={keepdims}>(h, a)"
    made = model(f"g (float[2,2,3] x, int64[k] s) => (float y) {{ h = Reshape(x, s) {node} }}", opset)
    made.graph.output[0].type.tensor_type.ClearField("shape")
    feeds = [{"x": VALUES.astype(np.float32), "s": np.array(s, np.int64)} for s in ([12], [3, 4], [2, 3, 2])]
    compiled(made, "shift-log-sum-exp-of-unknown-rank", *feeds, rtol=1e-5)


def test_an_axis_that_is_left_alone() -> None:
    """noop_with_empty_axes: no axes are reduced."""
    node = "y = ReduceLogSumExp<noop_with_empty_axes=1>(x, a)"
    made = model(f"g (float[2,3] x, int64[k] a) => (float[?,?] y) {{ {node} }}", 18)
    x = np.array([[1, 200, -300], [0, 5, 7]], np.float32)
    program = dmlc.compile(made)
    np.testing.assert_allclose(program.run({"x": x, "a": np.zeros(0, np.int64)}, "cpu")["y"], x, rtol=1e-6)


#: dtype, and numbers around its ends, whose sums do not fit it.
INTEGERS = {"int32": np.int32, "int64": np.int64, "uint32": np.uint32, "uint64": np.uint64}


def truncated_means(x: np.ndarray[Any, Any], axes: tuple[int, ...], keepdims: bool) -> np.ndarray[Any, Any]:
    """The means of Python's integers, towards zero; 0 of nothing."""
    total = np.asarray(x.astype(object).sum(axis=axes, keepdims=keepdims), object)
    count = max(x.size // max(total.size, 1), 1)
    flat = [abs(n) // count * (1 if n >= 0 else -1) for n in total.ravel().tolist()]
    return np.array(flat, object).reshape(total.shape).astype(x.dtype)


@each_row("keepdims", [0, 1])
@each_row("kind", INTEGERS)
@each_row("opset", [18, 20, 21])
def test_means_of_integers_over_computed_axes(keepdims: int, kind: str, opset: int) -> None:
    """The opsets that are asked for take turns, so that each meets each opset of the model and each type."""
    text = f"g ({kind}[A,B,C] x, int64[k] a) => ({kind} y) {{ y = ReduceMean<keepdims={keepdims}>(x, a) }}"
    made = model(text, opset)
    made.graph.output[0].type.tensor_type.ClearField("shape")
    asked = (None, 18, 21)[([*INTEGERS].index(kind) + opset + keepdims) % 3]
    program = dmlc.compile(made, opset=asked)
    program.require_sound()
    assert dict(r.fired(program))["exact-mean-of-unknown-rank"] == "exact"
    rng, ends = np.random.default_rng(opset), np.iinfo(INTEGERS[kind])
    for low, high in ((ends.min, ends.max), (max(ends.min, -9), 9), (ends.max - 5, ends.max), (ends.min, 5)):
        x = rng.integers(low, high, (3, 2, 5), INTEGERS[kind], endpoint=True)
        for axes in ((0,), (-1,), (0, 2), (0, 1, 2)):
            got = program.run({"x": x, "a": np.array(axes, np.int64)}, "cpu")["y"]
            np.testing.assert_array_equal(got, truncated_means(x, axes, bool(keepdims)), strict=True)


def test_a_mean_of_integers_over_no_axes_and_of_none() -> None:
    for noop, axes in ((1, ()), (0, (0, 1))):
        node = f"y = ReduceMean<keepdims=1, noop_with_empty_axes={noop}>(x, a)"
        made = model(f"g (int64[A,3] x, int64[k] a) => (int64[?,?] y) {{ {node} }}", 18)
        program = dmlc.compile(made)
        program.require_sound()
        x = np.array([[1, -200, 2**62], [0, -(2**63), 2**63 - 1]])
        got = program.run({"x": x, "a": np.zeros(0, np.int64)}, "cpu")["y"]
        np.testing.assert_array_equal(got, truncated_means(x, axes, True))
        empty = program.run({"x": x[:0], "a": np.array([1])}, "cpu")["y"]
        np.testing.assert_array_equal(empty, np.zeros((0, 1), np.int64), strict=True)


def test_a_mean_of_integers_over_the_axes_of_an_overridable_initializer() -> None:
    made = model(
        "g (int64[3,2] x, int64[1] a) => (int64[?] y) <int64[1] a = {0}> { y = ReduceMean<keepdims=0>(x, a) }", 20
    )
    program = dmlc.compile(made)
    program.require_sound()
    x = np.array([[1, -2], [3, -4], [4, -5]])
    assert program.run({"x": x}, "cpu")["y"].tolist() == [2, -3]
    assert program.run({"x": x, "a": np.array([1])}, "cpu")["y"].tolist() == [0, 0, 0]


@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_a_mean_of_integers_of_unknown_rank(kind: str) -> None:
    """No opset is left for it: newer ones are repaired."""
    made = model(
        f"g ({kind}[2,3] x, int64[k] s) => ({kind} y) {{ h = Reshape(x, s) y = ReduceMean<keepdims=0>(h) }}", 18
    )
    made.graph.output[0].type.tensor_type.ClearField("shape")
    feeds = [
        {"x": np.arange(-7, 5, 2, INTEGERS[kind]).reshape(2, 3), "s": np.array(s)} for s in ([6], [3, 2], [1, 2, 3])
    ]
    assert "ReduceMean" not in r.operators(compiled(made, "exact-mean-of-unknown-rank", *feeds))


@pytest.mark.parametrize(("op", "kind"), [("ReduceMax", "double"), ("ReduceMin", "double")])
def test_what_fails_at_a_newer_opset_stays_below_it(op: str, kind: str) -> None:
    """Below it no kernel of the provider takes the dtype, and the node runs on the CPU."""
    made = model(f"g ({kind}[2,3] x, int64[k] s) => ({kind} y) {{ h = Reshape(x, s) y = {op}<keepdims=0>(h) }}", 18)
    made.graph.output[0].type.tensor_type.ClearField("shape")
    program = dmlc.compile(made)
    program.require_sound()
    assert program.opset < 20
