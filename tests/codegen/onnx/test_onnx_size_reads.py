"""Sizes are read in the fewest nodes: at once, from a value that has them, and only once."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import parser
from onnx_cases import Bench, evaluate
from onnx_session import assert_same, kinds, lower, run, session

import dmlc
from dmlc.ir import symbol
from dmlc.ir.dtype import f32, i64
from dmlc.ops import elementwise, index, move
from tools.canonical_form import operators

N, M, K = symbol("N"), symbol("M"), symbol("K")
OPSETS = (11, 13, 15, 21)


def counts(bench: Bench, opset: int) -> list[str]:
    """The operators that read or compute sizes, after the results were compared with the reference."""
    graph = bench.done()
    want = evaluate(graph, bench.feeds)
    artifact = lower(graph, "cpu", opset)
    assert_same(run(session(artifact.payload), bench.feeds), want)
    sized = {"Shape", "Gather", "Slice", "Concat", "Add", "Sub", "Mul", "Div", "Mod"}
    return sorted(kind for kind in kinds(artifact) if kind in sized)


def filled(opset: int, *shapes: list[object], feed: list[object] | None = None) -> Bench:
    bench = Bench(opset)
    for name in "NMK":
        bench.graph.declare_dim(name, (1, 9))
    have = feed or ["N", "M", 4, "K"]
    sizes = [{"N": 3, "M": 2, "K": 5}.get(str(d), d) for d in have]
    x = bench.feed(np.ones([int(str(d)) for d in sizes], np.float32), have)
    bench.show("y", bench(elementwise.EXP, x), *[bench(index.FULL, shape=s, value=2, dtype=f32) for s in shapes])
    return bench


@pytest.mark.parametrize("opset", OPSETS)
def test_the_whole_shape_of_a_value_is_one_node(opset: int) -> None:
    assert counts(filled(opset, [N, M, 4, K]), opset) == ["Shape"]


@pytest.mark.parametrize("opset", OPSETS)
def test_consecutive_sizes_are_read_at_once(opset: int) -> None:
    more = [] if opset >= 15 else ["Slice"]
    assert counts(filled(opset, [N, M]), opset) == ["Shape", *more]
    assert counts(filled(opset, [7, N, M, 4]), opset) == ["Concat", "Shape", *more]


@pytest.mark.parametrize("opset", OPSETS)
def test_sizes_that_do_not_stand_side_by_side_are_read_one_by_one(opset: int) -> None:
    found = counts(filled(opset, [M, N]), opset)
    assert found == (["Concat", "Shape", "Shape"] if opset >= 15 else ["Concat", "Gather", "Gather", "Shape"])


@pytest.mark.parametrize("opset", OPSETS)
def test_sizes_are_read_once_for_several_lists(opset: int) -> None:
    found = counts(filled(opset, [N, M], [N, M, 7], [N, M]), opset)
    assert found == ["Concat", "Shape", *([] if opset >= 15 else ["Slice"])]


@pytest.mark.parametrize("opset", OPSETS)
def test_an_expression_is_read_from_a_value_that_has_it(opset: int) -> None:
    """A padded value has N + 3 elements: nothing is added to find that out."""
    bench = Bench(opset)
    x = bench.feed(np.ones((4, 2), np.float32), ["N", 2])
    padded = bench(move.PAD, x, pads=[1, 0, 2, 0])
    bench.show("y", padded, bench(index.IOTA, length=N + 3, dtype=i64))
    assert counts(bench, opset) == (["Shape"] if opset >= 15 else ["Gather", "Shape"])


def test_an_expression_that_no_value_has_is_computed() -> None:
    bench = Bench(21)
    x = bench.feed(np.ones((4, 2), np.float32), ["N", 2])
    bench.show("y", bench(elementwise.EXP, x), bench(index.IOTA, length=N + 3, dtype=i64))
    assert counts(bench, 21) == ["Add", "Shape"]


def test_a_size_that_is_divided_is_inferred() -> None:
    """[N, M] in rows of K: K is not 0, or N * M // K would have no value, so that -1 stands for the quotient."""
    bench = Bench(18)
    for name in "NMK":
        bench.graph.declare_dim(name, (0, 9))
    x = bench.feed(np.arange(12, dtype=np.float32).reshape(4, 3), ["N", "M"])
    z = bench.feed(np.ones(6, np.float32), ["K"])
    bench.show("y", bench(move.RESHAPE, x, shape=[N * M // K, K]), bench(elementwise.EXP, z))
    graph = bench.done()
    artifact = lower(graph, "cpu", 18)
    assert "Div" not in kinds(artifact)
    found = run(session(artifact.payload), bench.feeds)
    np.testing.assert_array_equal(next(iter(found.values())), np.arange(12).reshape(2, 6))


@pytest.mark.parametrize("opset", [14, 15, 21])
def test_a_size_that_joins_axes_is_their_product(opset: int) -> None:
    """Two sizes of (N + 1) // 2 and one of M are multiplied as they stand, not as sums of products."""
    bench = Bench(opset)
    for name in "NM":
        bench.graph.declare_dim(name, (0, 9))
    half = (N + 1) // 2 + 1
    x = bench.feed(np.ones((5, 3), np.float32), ["N", "M"])
    wide = bench(index.FULL, shape=[N, half, M + 1, 2], value=2, dtype=f32)
    flat = bench(move.RESHAPE, bench(elementwise.EXP, wide), shape=[N, half * (M + 1), 2])
    bench.show("y", bench(elementwise.EXP, x), flat)
    graph = bench.done()
    want = evaluate(graph, bench.feeds)
    artifact = lower(graph, "cpu", opset)
    assert_same(run(session(artifact.payload), bench.feeds), want)
    assert kinds(artifact).count("ReduceProd") == 1
    assert "Mul" not in kinds(artifact)


_LISTED = """<ir_version: 8, opset_import: ["" : 17]>
g (float[b, t, 16] x) => (float[m, n, p] y, float[q, r, s, v] z, int64[1] batch) {
  i0 = Constant<value = int64 {0}>()
  i1 = Constant<value = int64 {1}>()
  axes = Constant<value_ints = [0]>()
  four = Constant<value_ints = [4]>()
  times = Constant<value = int64 {4}>()
  turned = Transpose<perm = [1, 0, 2]>(x)
  sizes = Shape(turned)
  t = Gather(sizes, i0)
  b = Gather(sizes, i1)
  heads = Mul(b, times)
  heads1 = Unsqueeze(heads, axes)
  t1 = Unsqueeze(t, axes)
  shape = Concat<axis = 0>(t1, heads1, four)
  y = Reshape(turned, shape)
  b1 = Unsqueeze(b, axes)
  other = Concat<axis = 0>(b1, four, t1, four)
  c = Transpose<perm = [1, 0, 2]>(y)
  z = Reshape(c, other)
  batch = Identity(b1)
}"""


@pytest.mark.parametrize("target", ["onnx", "directml"])
def test_a_list_of_sizes_that_is_there_stands_for_a_node_that_computes_it_again(target: str) -> None:
    model = parser.parse_model(_LISTED)
    feeds = {"x": np.arange(96, dtype=np.float32).reshape(2, 3, 16)}
    assert_same(run(session(dmlc.compile(model, target=target).to_onnx()), feeds), run(session(model), feeds))
    del model.graph.output[2]
    del model.graph.node[-1]
    once = dmlc.compile(model, target=target).to_onnx()
    assert_same(run(session(once), feeds), run(session(model), feeds))
    assert operators(once)[":Gather"] == 1
    assert operators(dmlc.compile(once, target=target).to_onnx()) == operators(once)


_INSIDE = """<ir_version: 8, opset_import: ["" : 17]>
g (float[b, t] x, bool c) => (float[m] y) {
  sizes = Shape(x)
  start = Constant<value = int64 {0}>()
  axes = Constant<value_ints = [0]>()
  all = Constant<value_ints = [-1]>()
  filled = ConstantOfShape(sizes)
  flat = Reshape(filled, all)
  y = If(c) <
    then_branch = yes () => (float[k] u) {
      n = Gather(sizes, start)
      n1 = Unsqueeze(n, axes)
      v = ConstantOfShape(n1)
      w = Gather(sizes, start)
      w1 = Unsqueeze(w, axes)
      f = ConstantOfShape<value = float[1] {2}>(w1)
      u = Add(v, f)
    },
    else_branch = no () => (float[h] o) { o = Identity(flat) }
  >
}"""


def test_a_graph_inside_a_node_lists_a_size_once() -> None:
    model = parser.parse_model(_INSIDE)
    once = dmlc.compile(model, target="onnx").to_onnx()
    assert operators(dmlc.compile(once, target="onnx").to_onnx()) == operators(once)
    for chosen in (True, False):
        feeds = {"x": np.ones((2, 3), np.float32), "c": np.array(chosen)}
        assert_same(run(session(once), feeds), run(session(model), feeds))


_SLICED = """<ir_version: 8, opset_import: ["" : 18]> g (float[N, M] x) => (float[N, K] y, int64[1] z)
<int64[1] one = {1}, int64[1] two = {2}, int64[3] zeros = {0, 0, 0}> {
  s = Shape (x)
  m = Slice (s, one, two)
  pads = Concat <axis = 0> (zeros, m)
  y = Pad (x, pads)
  z = Neg (m)
}"""
_MERGED = """<ir_version: 8, opset_import: ["" : 18]> g (float[N, M] x) => (int64[2, K] y, int64[2, K] z)
<float one = {1}, int64[1, 1] three = {3}> {
  same = Mul (x, one)
  y = NonZero (x)
  j = NonZero (same)
  s = Shape (j)
  z = Expand (three, s)
}"""


@pytest.mark.parametrize("target", ["onnx", "directml"])
@pytest.mark.parametrize("text", [_SLICED, _MERGED])
def test_a_size_that_a_slice_lists_or_a_merged_node_finds_is_read_once(text: str, target: str) -> None:
    source = parser.parse_model(text)
    model = dmlc.compile(source, target=target).to_onnx()
    assert operators(model)[":Shape"] == 1
    assert operators(model)[":Concat"] == operators(model)[":Pad"]
    assert operators(dmlc.compile(model, target=target).to_onnx()) == operators(model)
    feeds = {"x": np.eye(3, 4, dtype=np.float32)}
    assert_same(run(session(model), feeds), run(session(source), feeds))
