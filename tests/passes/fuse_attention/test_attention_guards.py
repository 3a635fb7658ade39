"""Near misses of fused attention: each is refused by one guard alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from attention_models import (
    BOOL,
    LOWEST,
    B,
    H,
    N,
    S,
    Sketch,
    T,
    attention,
    feeds_of,
    fused,
    operators,
    qkv,
    same_numbers,
)
from attention_spellings import hiding, with_biases, with_scores
from onnx import ModelProto, TensorProto

import dmlc
from tests.rows import each_row

Misses = dict[str, tuple[Callable[[], ModelProto], str]]


def refused(model: ModelProto, reason: str, **sizes: int) -> None:
    """Compile with the fusion, see that nothing is fused for that reason, and compare numbers."""
    made, classes, reasons = fused(model)
    assert not classes and reason in " ".join(reasons), reasons
    assert bool(reason) == bool(reasons), reasons
    same_numbers(model, made, feeds_of(model, **sizes))


def turned(s: Sketch, k: str) -> str:
    return str(s("Transpose", k, perm=[0, 1, 3, 2]))


def apart(s: Sketch, *, batch: Any = B, length: Any = S, total: Any = T) -> tuple[str, str, str]:
    """Query, key and value, of which each takes a transpose."""
    q = s.input("q", [batch, N, length, H])
    return q, s.input("k", [batch, N, total, H]), s.input("v", [batch, N, total, H])


# --- the cost


def few_operators(
    bias: Callable[[Sketch], str] | None = None, *, scale: float | None = 0.3, batch: Any = B, merged: bool = False
) -> ModelProto:
    """Attention whose layouts take about as many operators as the fusion removes."""
    s = Sketch()
    q, k, v = apart(s, batch=batch)
    scores = s("MatMul", q, turned(s, k))
    scores = scores if scale is None else s.times(scores, scale)
    y = s("MatMul", s("Softmax", scores if bias is None else s("Add", scores, bias(s)), axis=-1), v)
    return s.done(s.merged(y) if merged else y)


def constant_mask(s: Sketch) -> str:
    return s.constant(np.where(np.tri(S, T), 0, LOWEST))


@each_row(
    ("model", "saved"),
    [
        (few_operators(scale=None), -1),
        (few_operators(), 0),
        (few_operators(lambda s: s.input("bias", [B, N, S, T])), 1),
        (few_operators(lambda s: s.input("bias", [1, N, S, T])), 0),
        (few_operators(constant_mask), 1),
        (few_operators(batch="b", merged=True), 2),
        (few_operators(batch="b", scale=None, merged=True), 1),
        (few_operators(lambda s: s.input("bias", ["b", N, S, T]), batch="b"), 1),
        (few_operators(lambda s: s.input("bias", [1, N, S, T]), batch="b", merged=True), 0),
    ],
    ids=lambda value: str(value) if isinstance(value, int) else None,
)
def test_attention_is_fused_where_that_saves_an_operator(model: ModelProto, saved: int) -> None:
    plain = dmlc.compile(model).to_onnx()
    made, classes, reasons = fused(model)
    assert bool(classes) == (saved > 0), reasons
    more = f"{-saved} more operators than" if saved < 0 else "as many operators as"
    assert saved > 0 or reasons == [f"its layouts and bias would take {more} the fusion saves"]
    assert sum(operators(plain).values()) - sum(operators(made).values()) == max(saved, 0)


def test_second_attention_pays_nothing_for_a_bias_that_the_first_one_expands() -> None:
    s = Sketch()
    bias = s.input("bias", [1, N, S, T])
    outputs = []
    for i in range(2):
        q, k, v = (s.input(f"{name}{i}", [B, N, rows, H]) for name, rows in (("q", S), ("k", T), ("v", T)))
        scores = s("Add", s.times(s("MatMul", q, turned(s, k)), 0.3), bias)
        y = s("MatMul", s("Softmax", scores, axis=-1), v)
        outputs.append(y if i else s.merged(y))
    made, classes, _ = fused(s.done(*outputs))
    assert len(classes) == 2 and operators(made)["Expand"] == 1


# --- biases


def keeping(s: Sketch) -> str:
    """A bias that only keeps or hides, with an axis that is put in behind the choice."""
    return str(s("Unsqueeze", s("Unsqueeze", hiding(s, [B, T]), s.ints(1)), s.ints(1)))


def number_of_the_run() -> ModelProto:
    """A bias of no axes, beside weights of rows that may be hidden as a whole."""
    s = Sketch()
    q, k, v = qkv(s)
    scores = s("Add", s("MatMul", q, turned(s, k)), s.input("bias", []))
    weights = s("Softmax", scores, axis=-1)
    weights = s("Where", s("IsNaN", weights), s.constant(0), weights)
    return s.done(s.merged(s("MatMul", weights, v)))


def biases_that_broadcast_scores() -> ModelProto:
    s = Sketch()
    q, k, v = (s.input(name, [1, N, rows, H]) for name, rows in (("q", S), ("k", T), ("v", T)))
    scores = s("Add", s("MatMul", q, turned(s, k)), s.input("bias", [B, 1, S, T]))
    return s.done(s.merged(s("MatMul", s("Softmax", scores, axis=-1), v)))


def condition_that_broadcasts_scores() -> ModelProto:
    """One query, and rows of a condition that make more of it."""
    s = Sketch()
    q, k, v = qkv(s, length=1)
    scores = s("Where", s.constant(np.tri(S, T), np.bool_), s("MatMul", q, turned(s, k)), s.constant(LOWEST))
    return s.done(s.merged(s("MatMul", s("Softmax", scores, axis=-1), v)))


BIASES: Misses = {
    "a number of the run": (number_of_the_run, "a bias has no axes"),
    "two biases, one of them turned": (
        lambda: with_biases(
            lambda s: (s.input("a", [S, T]), s("Transpose", s.input("b", [T, S]), perm=[1, 0])),
        ),
        "biases are added one after another",
    ),
    "a bias that broadcasts scores": (biases_that_broadcast_scores, "a bias has another shape than the scores"),
    "a condition that broadcasts scores": (condition_that_broadcasts_scores, "where is between"),
}


@each_row("name", BIASES)
def test_biases_that_the_operator_does_not_take_stay(name: str) -> None:
    make, reason = BIASES[name]
    refused(make(), reason)


def test_bias_with_an_axis_put_in_behind_its_choice_keeps_or_hides() -> None:
    model = with_biases(lambda s: (keeping(s), s.input("place", [1, N, S, T])))
    made, classes, _ = fused(model)
    assert classes == ["reassociates"]
    same_numbers(model, made, feeds_of(model))


@pytest.mark.parametrize("kind", ["biases", "choices"])
def test_long_chains_before_a_softmax_are_read_to_a_bounded_depth(kind: str) -> None:
    s = Sketch()
    q, k, v = qkv(s)
    scores = s("MatMul", q, turned(s, k))
    if kind == "biases":
        bias = s.input("bias", [S, T])
        for _ in range(700):
            scores = s("Add", scores, bias)
    else:
        bias, keeps = s.constant(np.zeros(T)), (s.input("a", [S, T], BOOL), s.input("b", [S, T], BOOL))
        for i in range(700):
            bias = s("Where", keeps[i % 2], bias, s.constant(-np.inf))
        scores = s("Add", scores, bias)
    model = s.done(s.merged(s("MatMul", s("Softmax", scores, axis=-1), v)))
    _made, classes, _reasons = fused(model)
    assert len(classes) == (kind == "choices")


# --- weights


def zeros_in_rows(
    *, other: bool = False, bound: float = -np.inf, axis: int = -1, keepdims: int = 1, result: bool = False
) -> ModelProto:
    """Weights with zeros where the maximum of a row of the bias is -inf, as opset 23 has them."""
    s = Sketch()
    q, k, v = (s.heads(s.input(name, [1, S, N * H])) for name in ("q", "k", "v"))
    bias = s.input("bias", [S, S])
    scores = s("Add", s.times(s("MatMul", q, turned(s, k)), 0.3), bias)
    weights = s("Softmax", scores, axis=-1)
    most = s("ReduceMax", s.input("other", [S, S]) if other else bias, axes=[axis], keepdims=keepdims)
    weights = s("Where", s("Equal", most, s.constant(bound)), s.constant(0), weights)
    return s.done(s.merged(s("MatMul", weights, v)), *([weights] if result else []))


def guarded(
    test: Callable[[Sketch, str], str], *, fill: Any = 0, results: Callable[[str, str], list[str]] = lambda a, b: []
) -> ModelProto:
    """Weights that are replaced where a test of them holds."""
    s = Sketch()
    q, k, v = (s.heads(s.input(name, [1, rows, H]), heads=1) for name, rows in (("q", S), ("k", T), ("v", T)))
    raw = s("Softmax", s.times(s("MatMul", q, turned(s, k)), 0.3), axis=-1)
    weights = s("Where", test(s, raw), s.constant(fill), raw)
    return s.done(s("MatMul", weights, v), *results(raw, weights))


def is_nan(s: Sketch, x: str) -> str:
    return str(s("IsNaN", x))


WEIGHTS: Misses = {
    "rows of another value": (lambda: zeros_in_rows(other=True), "rows of another value than the bias are tested"),
    "another number is tested": (lambda: zeros_in_rows(bound=0), ""),
    "columns are tested": (lambda: zeros_in_rows(axis=-2), ""),
    "rows are tested for columns": (lambda: zeros_in_rows(keepdims=0), ""),
    "tested weights are a result": (lambda: zeros_in_rows(result=True), "is used 2 times"),
    "ones instead of zeros": (lambda: guarded(is_nan, fill=1), ""),
    "zeros with an axis more": (lambda: guarded(is_nan, fill=np.zeros((1, 1, 1, 1, 1))), ""),
    "another value is tested": (lambda: guarded(lambda s, x: is_nan(s, s.input("other", [1, 1, S, T]))), ""),
    "raw weights are a result": (
        lambda: guarded(is_nan, results=lambda raw, _: [raw]),
        "the weights are used elsewhere",
    ),
    "replaced weights are a result": (lambda: guarded(is_nan, results=lambda _, weights: [weights]), "is used 2 times"),
}


@each_row("name", WEIGHTS)
def test_weights_that_are_replaced_otherwise_stay(name: str) -> None:
    make, reason = WEIGHTS[name]
    refused(make(), reason)


def test_rows_of_the_bias_are_tested() -> None:
    """The model that the near misses differ from."""
    model = zeros_in_rows()
    made, classes, _ = fused(model)
    assert classes == ["reassociates"]
    feeds = feeds_of(model)
    feeds["bias"][2] = -np.inf
    same_numbers(model, made, feeds)


# --- scales and sizes


def query_of_all_batches() -> ModelProto:
    """A query of three axes beside batch, heads and length of one size."""
    s = Sketch()
    q, k, v = s.input("q", [2, 2, H]), s.input("k", [2, 2, T, H]), s.input("v", [2, 2, T, H])
    scores = s.times(s("MatMul", q, turned(s, k)), 0.3)
    return s.done(s("Transpose", s("MatMul", s("Softmax", scores, axis=-1), v), perm=[0, 2, 1, 3]))


def pixels_in_rows() -> ModelProto:
    """One head over the pixels of an image: the reshape of the values merges no heads."""
    s = Sketch()
    q, k = s.input("q", [B, S, H]), s.input("k", [B, 12, H])
    v = s("Reshape", s.input("v", [B, 3, 4, H]), s.ints(B, 12, H))
    scores = s.times(s("MatMul", q, s("Transpose", k, perm=[0, 2, 1])), 0.3)
    return s.done(s("MatMul", s("Softmax", scores, axis=-1), v))


def no_elements(*, size: int = H, value_size: int = H, length: int = S, total: int = T) -> ModelProto:
    s = Sketch()
    q, k = s.input("q", [B, N, length, size]), s.input("k", [B, N, total, size])
    scores = s("Add", s.times(s("MatMul", q, turned(s, k)), 0.3), s.input("bias", [B, N, length, total]))
    y = s("MatMul", s("Softmax", scores, axis=-1), s.input("v", [B, N, total, value_size]))
    return s.done(s("Transpose", y, perm=[0, 2, 1, 3]))


def of_f64() -> ModelProto:
    s = Sketch(dtype=TensorProto.DOUBLE)
    return s.done(attention(s, *qkv(s), scale=None))


SIZES: Misses = {
    "a query of all batches": (query_of_all_batches, "the operands broadcast"),
    "pixels in rows": (pixels_in_rows, "heads are not apart from the batch"),
    "a scale of infinity": (lambda: with_scores(lambda s, x: s.times(s.times(x, 1e30), 1e30)), "the scale is inf"),
    "heads of no size": (lambda: no_elements(size=0), "an operand has no elements"),
    "values of no size": (lambda: no_elements(value_size=0), "an operand has no elements"),
    "no queries": (lambda: no_elements(length=0), "an operand has no elements"),
    "no keys": (lambda: no_elements(total=0), "an operand has no elements"),
    "numbers of f64": (of_f64, "directml has no MultiHeadAttention of f64"),
    "a quotient by zero": (lambda: with_scores(lambda s, x: s.times(x, 0.0, "Div")), "div is between"),
}


@each_row("name", SIZES)
def test_sizes_and_scales_that_the_operator_does_not_take_stay(name: str) -> None:
    make, reason = SIZES[name]
    refused(make(), reason)


# --- operands that are not known to fit


def concatenated(s: Sketch, q: str, k: str, v: str) -> str:
    """Scores beside those of another length, before the softmax."""
    scores = s("Concat", s("MatMul", q, turned(s, k)), s.input("sink", ["b", N, "s", "m"]), axis=-1)
    more = s("Concat", v, s.input("more", ["b", N, "m", H]), axis=2)
    return str(s("MatMul", s("Softmax", scores, axis=-1), more))


def gains(s: Sketch, q: str, k: str, v: str) -> str:
    """A product of weights and other weights, element by element, of sizes that are not known to fit."""
    return str(s("Mul", s("Softmax", s("MatMul", q, turned(s, k)), axis=-1), s.input("gain", ["b", N, "s", "m"])))


def values_of_unknown_rank(s: Sketch, q: str, k: str, v: str) -> str:
    values = s("Reshape", v, s.input("shape", ["r"], TensorProto.INT64))
    return str(s("MatMul", s("Softmax", s("MatMul", q, turned(s, k)), axis=-1), values))


@each_row(
    ("make", "reasons"),
    [
        (concatenated, ["concat is between the product and the softmax"]),
        (gains, []),
        (values_of_unknown_rank, []),
    ],
)
def test_sizes_are_named_only_where_they_keep_attention_from_being_fused(
    make: Callable[[Sketch, str, str, str], str], reasons: list[str]
) -> None:
    s = Sketch()
    y = make(s, *qkv(s, batch="b", length="s", total="t"))
    assert fused(s.done(y))[1:] == ([], reasons)


@each_row("operands", [(), ("",), ("c", "c"), ("c", "")])
def test_products_of_other_than_two_operands_are_refused(operands: tuple[str, ...]) -> None:
    """The rule takes a product that stays as it was written to have two operands."""
    s = Sketch()
    s.input("c", ["b", N, "m", H])
    weights = s("Softmax", s.input("x", ["b", N, S, "t"]), axis=-1)
    with pytest.raises(dmlc.DmlcError, match="MatMul"):
        dmlc.compile(s.done(s("MatMul", weights, *operands)), fuse=["attention"], strict=True)
