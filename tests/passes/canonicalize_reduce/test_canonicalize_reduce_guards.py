"""Near misses of ``canonicalize-reduce`` and ``fuse-selection``: each test fails where one guard is dropped."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from pass_helpers import Building, check_numbers, ledger, names, run

import dmlc
from dmlc.diagnostics import Source
from dmlc.ir.dtype import f32, i32
from dmlc.ops.choose import CAST
from dmlc.ops.elementwise import NEG
from dmlc.ops.move import RESHAPE, SQUEEZE
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_SUM
from dmlc.ops.select import ARGMAX
from dmlc.passes.canonicalize_reduce import CanonicalizeReduce
from tests.rows import each_row


def compiled(body: str, kind: str, **options: Any) -> dmlc.Program:
    text = f"model t(x: {kind}) -> (y) {{\n    " + "\n    ".join(body.split("; ")) + "\n    return y\n}\n"
    program = dmlc.compile(Source("t.dml", text), **{"allow": ("range",), **options})
    shape = [int(str(d)) for d in program.source_graph.inputs[0].shape]
    dtype = program.source_graph.inputs[0].type.dtype.numpy
    feeds = {"x": np.random.default_rng(3).integers(-9, 9, shape).astype(dtype)}
    want, found = program.run(feeds, "reference"), program.run(feeds, "cpu")
    np.testing.assert_allclose(found["y"], want["y"], rtol=1e-5)
    assert found["y"].dtype == want["y"].dtype
    return program


def fired(program: dmlc.Program) -> set[str]:
    return {entry.rule for entry in program.ledger}


def test_what_widens_and_is_no_cast() -> None:
    """Random numbers like ``x`` have nothing of it."""
    nodes = [
        helper.make_node("RandomUniformLike", ["x"], ["r"], dtype=TensorProto.FLOAT, low=5.0, high=6.0),
        helper.make_node("ReduceMax", ["r"], ["m"], axes=[1]),
        helper.make_node("Cast", ["m"], ["y"], to=TensorProto.FLOAT16),
    ]
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT16, [2, n]) for name, n in (("x", 8), ("y", 1))]
    graph = helper.make_graph(nodes, "g", infos[:1], infos[1:])
    m = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    program = dmlc.compile(m, target="onnx")
    assert [n.op_type for n in program.to_onnx().graph.node] == ["RandomUniformLike", "ReduceMax", "Cast"]


def test_more_axes_than_directml_takes() -> None:
    shape = [2, 1, 2, 1, 2, 1, 2, 1, 2]
    program = compiled("a = reshape(x, shape=[32]); y = reduce_max(a, axes=[0])", f"f32{shape}")
    assert "drop-flatten-before-reduction" not in fired(program)
    program = compiled("a = reshape(x, shape=[32]); y = argmax(a, axes=[0])", f"f32{shape}")
    assert "arg-of-flattened" not in fired(program)


def test_a_size_of_one_that_is_only_promised() -> None:
    b = Building(n=(1, 9))
    graph = b.done(b(SQUEEZE, b(REDUCE_MAX, b.input("x", ("n", 4)), axes=[1]), axes=[0, 1]))
    run(CanonicalizeReduce(), graph)
    assert names(graph)[-1] == "squeeze"


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_a_reshape_of_nothing(shape: tuple[int, int]) -> None:
    b = Building()
    flat = b(RESHAPE, b.input("x", shape), shape=[shape[1] + 2, shape[0] * shape[1]])
    graph = b.done(b(REDUCE_SUM, flat, axes=[1]), b(REDUCE_SUM, flat, axes=[0]))
    check_numbers(CanonicalizeReduce(), graph)


def test_a_reduction_of_ones_that_a_reshape_made() -> None:
    b = Building()
    graph = b.done(b(REDUCE_MAX, b(RESHAPE, b.input("x", (4, 8)), shape=[8, 4, 1]), axes=[2]))
    ctx = check_numbers(CanonicalizeReduce(), graph)
    assert "drop-flatten-before-reduction" not in dict(ledger(ctx))


def test_a_float_that_is_cast_has_any_magnitude() -> None:
    from selection_helpers import fuse

    b = Building()
    graph = b.done(b(ARGMAX, b(NEG, b(CAST, b.input("x", (4, 8), f32), to=i32)), axes=[1]))
    fuse(graph)
    assert names(graph) == ["cast", "neg", "argmax"]


@each_row(
    ("body", "rule"),
    [
        ("a = argmax(x, axes=[0, 1], keepdims=true); y = one_hot(a, depth=32, axis=2, dtype=f32)", "hot-argmax"),
        ("a = argmax(x, axes=[1], keepdims=false); b = one_hot(a, depth=8, axis=1, dtype=i32); y = cast(b, to=f16)",
         "hot-argmax"),
        ("a = argmax(x, axes=[1], keepdims=true); y = one_hot(a, depth=8, axis=0, dtype=f32)", "hot-argmax"),
        ("a = argmax(x, axes=[1], keepdims=false); y = one_hot(a, depth=8, axis=1, on=2.0, dtype=f32)", "hot-argmax"),
        ("a = argmax(x, axes=[1], ties=last, keepdims=false); y = one_hot(a, depth=8, axis=1, dtype=f32)",
         "hot-argmax"),
        ("a = argmax(x, axes=[1], keepdims=false); y = one_hot(a, depth=9, axis=1, dtype=f32)", "hot-argmax"),
        ("a = reshape(x, shape=[2, 16]); y = argmax(a, axes=[1])", "arg-of-flattened"),
        ("a = reshape(x, shape=[2, 2, 8]); y = argmax(a, axes=[2], keepdims=false)", "arg-of-flattened"),
        ("a = softmax(x, axes=[0]); y = argmax(a, axes=[1])", "search-of-rising"),
        ("a = exp(x); y = argmin(a, axes=[1])", "search-of-rising"),
    ],
)  # fmt: skip
def test_selections_that_stay(body: str, rule: str) -> None:
    assert rule not in fired(compiled(body, "f32[4, 8]"))


@each_row(
    ("body", "kind", "rule"),
    [
        ("a = cast(x > 0.0, to=f32); y = argmax(a, axes=[1])", "f32[4, 8]", "search-of-wider"),
        ("v, i = top_k(cast(x, to=f32), k=2, axis=1); y = v + cast(i, to=f32)", "f16[4, 8]", "search-of-wider"),
        ("a = exp(x); v, i = top_k(a, k=2, axis=1); y = v + cast(i, to=f32)", "f32[4, 8]", "search-of-rising"),
        ("y = exp(x) - reduce_log_sum_exp(x, axes=[1])", "f32[4, 8]", "difference-from-log-sum-exp"),
        ("m = expand(reduce_max(x, axes=[1]), shape=[4, 8]); y = softmax(x - m, axes=[1])", "f32[1, 8]",
         "shift-before-softmax"),
        ("y = transpose(hardmax(transpose(x, perm=[1, 0]), axes=[0, 1]), perm=[1, 0])", "f32[4, 8]",
         "softmax-of-transpose"),
        ("m = reduce_min(x, axes=[1]); y = softmax(x - m, axes=[1])", "f32[4, 8]", "shift-before-softmax"),
        ("m = reduce_max(x, axes=[0]); y = softmax(x - m, axes=[1])", "f32[4, 8]", "shift-before-softmax"),
    ],
)  # fmt: skip
def test_more_that_stays(body: str, kind: str, rule: str) -> None:
    assert rule not in fired(compiled(body, kind))


def test_two_searches_of_one_value() -> None:
    body = "a = cast(x, to=f32); y = argmax(a, axes=[1]) + argmin(a, axes=[1])"
    assert "search-of-wider" in fired(compiled(body, "f16[4, 8]"))


@each_row(
    ("body", "kind", "rule"),
    [
        ("a = argmax(x, axes=[1], keepdims=true); b = one_hot(a, depth=8, axis=0, dtype=f32); "
         "y = transpose(b, perm=[1, 2, 0])", "f32[4, 8]", "hot-argmax"),
        ("a = argmax(x, axes=[0, 1], keepdims=true); y = one_hot(a, depth=32, axis=0, dtype=f32)", "f32[4, 8]",
         "hot-argmax"),
        ("a = reshape(x, shape=[4, 2, 4]); b = softmax(a, axes=[0, 2]); y = reshape(b, shape=[4, 8])", "f32[4, 8]",
         "softmax-of-reshape"),
        ("a = reshape(x, shape=[1, 8, 4]); y = argmax(a, axes=[1, 2], keepdims=false)", "f32[2, 4, 4]",
         "arg-of-flattened"),
        ("y = exp(x) / sqrt(reduce_sum(exp(x), axes=[1]))", "f32[4, 8]", "written-out-softmax"),
        ("y = x - (reduce_max(x, axes=[0]) + log(reduce_sum(exp(x - reduce_max(x, axes=[1])), axes=[1])))", "f32[4, 4]",
         "difference-from-log-sum-exp"),
        ("y = x - (reduce_max(x, axes=[1]) + log(reduce_sum(exp(x - reduce_min(x, axes=[1])), axes=[1])))", "f32[4, 4]",
         "difference-from-log-sum-exp"),
        ("m = reduce_max(x, axes=[1], keepdims=false); y = softmax(x - m, axes=[1])", "f32[4, 4]",
         "shift-before-softmax"),
    ],
)  # fmt: skip
def test_axes_that_do_not_meet(body: str, kind: str, rule: str) -> None:
    assert rule not in fired(compiled(body, kind))


def test_two_negated_values_of_a_search_stay() -> None:
    text = (
        "model t(x: i32[4, 8]) -> (v, n, i) {\n    v, i = top_k(-clip(x, min=-9, max=9), k=2, axis=1)\n"
        "    n = -v\n    return v, n, i\n}\n"
    )
    program = dmlc.compile(Source("t.dml", text))
    assert "top-k-of-negation" not in fired(program)
