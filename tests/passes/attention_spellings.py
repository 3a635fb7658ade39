"""Models that are attention in each spelling, near misses, and models of random choices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from attention_models import BOOL, HALF, LOWEST, B, H, N, S, Sketch, T, attention, qkv
from onnx import ModelProto

SPELLINGS: dict[str, Callable[[], ModelProto]] = {}
MISSES: dict[str, tuple[Callable[[], ModelProto], str]] = {}


def spelling(make: Callable[[], ModelProto]) -> Callable[[], ModelProto]:
    SPELLINGS[make.__name__] = make
    return make


def near_miss(reason: str) -> Callable[[Callable[[], ModelProto]], Callable[[], ModelProto]]:
    def register(make: Callable[[], ModelProto]) -> Callable[[], ModelProto]:
        MISSES[make.__name__] = make, reason
        return make

    return register


def of_bias(shape: list[int]) -> Callable[[], ModelProto]:
    def make() -> ModelProto:
        s = Sketch()
        return s.done(attention(s, *qkv(s), bias=s.input("bias", shape)))

    return make


for _shape in ([B, N, S, T], [1, N, S, T], [B, 1, S, T], [B, 1, 1, T], [1, 1, S, 1], [N, S, T], [S, T], [T]):
    SPELLINGS[f"bias of {_shape}"] = of_bias(_shape)


@spelling
def scale_behind_the_product() -> ModelProto:
    s = Sketch()
    return s.done(attention(s, *qkv(s)))


@spelling
def no_scale() -> ModelProto:
    s = Sketch()
    return s.done(attention(s, *qkv(s), scale=None))


@spelling
def quotient_behind_the_product() -> ModelProto:
    s = Sketch()
    q, k, v = qkv(s)
    scores = s.times(s("MatMul", q, s("Transpose", k, perm=[0, 1, 3, 2])), 2.5, "Div")
    return s.done(s.merged(s("MatMul", s("Softmax", scores, axis=3), v)))


@spelling
def scale_of_query() -> ModelProto:
    s = Sketch()
    q, k, v = qkv(s)
    return s.done(attention(s, s.times(q, 0.4), k, v, scale=None))


@spelling
def scale_with_more_axes_than_scores_of_heads_in_the_batch() -> ModelProto:
    s = Sketch()
    q, k, v = (s("Reshape", x, s.ints(N, -1, H)) for x in qkv(s, batch=1))
    scores = s("Mul", s("MatMul", q, s("Transpose", k, perm=[0, 2, 1])), s.constant([[[[0.3]]]]))
    return s.done(s.merged(s("MatMul", s("Softmax", scores, axis=-1), v)))


@spelling
def scale_with_more_axes_than_the_query() -> ModelProto:
    s = Sketch()
    turned = s("Transpose", s.input("x", [S, N, H]), perm=[1, 0, 2])
    _, k, v = qkv(s, batch=1)
    return s.done(attention(s, s("Div", turned, s.constant([[[[2.5]]]])), k, v, scale=None))


@spelling
def root_of_scale_on_query_and_key() -> ModelProto:
    s = Sketch()
    q, k, v = qkv(s)
    key = s.times(s("Transpose", k, perm=[0, 1, 3, 2]), 0.6)
    return s.done(s.merged(s("MatMul", s("Softmax", s("MatMul", s.times(q, 0.6), key), axis=-1), v)))


@spelling
def scale_before_heads_are_split() -> ModelProto:
    s = Sketch()
    x = s.times(s.input("q", [B, S, N * H]), 0.5)
    k, v = s.heads(s.input("k", [B, T, N * H])), s.heads(s.input("v", [B, T, N * H]))
    return s.done(attention(s, s.heads(x), k, v, scale=None))


@spelling
def key_of_one_transpose() -> ModelProto:
    s = Sketch()
    q, v = s.heads(s.input("q", [B, S, N * H])), s.heads(s.input("v", [B, T, N * H]))
    split = s("Reshape", s.input("k", [B, T, N * H]), s.ints(0, 0, N, H))
    scores = s.times(s("MatMul", q, s("Transpose", split, perm=[0, 2, 3, 1])), 0.3)
    return s.done(s.merged(s("MatMul", s("Softmax", scores, axis=-1), v)))


@spelling
def key_turned_with_heads_in_the_batch() -> ModelProto:
    s = Sketch()
    q, k, v = qkv(s)
    turned = s("Transpose", s("Reshape", k, s.ints(B * N, T, H)), perm=[0, 2, 1])
    key = s("Reshape", turned, s.ints(B, N, H, T))
    return s.done(s.merged(s("MatMul", s("Softmax", s("MatMul", s.times(q, 0.3), key), axis=-1), v)))


@spelling
def values_of_another_size() -> ModelProto:
    s = Sketch()
    return s.done(attention(s, *qkv(s, value_size=3), size=3))


@spelling
def heads_that_stay_apart() -> ModelProto:
    s = Sketch()
    q, k, v = qkv(s)
    scores = s.times(s("MatMul", q, s("Transpose", k, perm=[0, 1, 3, 2])), 0.3)
    return s.done(s("MatMul", s("Softmax", scores, axis=-1), v))


@spelling
def operands_that_are_apart_already() -> ModelProto:
    s = Sketch()
    q, k, v = (s.input(name, [B, N, length, H]) for name, length in (("q", S), ("k", T), ("v", T)))
    bias = s.input("bias", [B, N, S, T])
    scores = s("Add", s.times(s("MatMul", q, s("Transpose", k, perm=[0, 1, 3, 2])), 0.3), bias)
    return s.done(s.merged(s("MatMul", s("Softmax", scores, axis=-1), v)))


@spelling
def packed_projection() -> ModelProto:
    s = Sketch()
    split = s("Reshape", s.input("x", [B, S, 3 * N * H]), s.ints(0, 0, 3, N, H))
    parts = s("Split", s("Transpose", split, perm=[2, 0, 3, 1, 4]), results=3, axis=0)
    q, k, v = (s("Squeeze", part, s.ints(0)) for part in parts)
    return s.done(attention(s, q, k, v, bias=s.input("bias", [B, N, S, S])))


def with_biases(biases: Callable[[Sketch], Sequence[str]]) -> ModelProto:
    s = Sketch()
    q, k, v = qkv(s)
    scores = s.times(s("MatMul", q, s("Transpose", k, perm=[0, 1, 3, 2])), 0.3)
    for i, bias in enumerate(biases(s)):
        scores = s("Add", *((scores, bias) if i else (bias, scores)))
    return s.done(s.merged(s("MatMul", s("Softmax", scores, axis=-1), v)))


def hiding(s: Sketch, shape: list[int], fill: float = -np.inf) -> str:
    return str(s("Where", s.input("keep", shape, BOOL), s.constant(0), s.constant(fill)))


@spelling
def two_biases() -> ModelProto:
    """The second only keeps or hides, so that the sum of both rounds nothing."""
    mask = np.where(np.tri(S, T), 0, LOWEST)
    return with_biases(lambda s: (s.input("place", [1, N, S, T]), s.constant(mask)))


@spelling
def two_biases_of_which_one_hides_by_a_condition() -> ModelProto:
    return with_biases(lambda s: (hiding(s, [B, 1, 1, T]), s.input("place", [1, N, S, T])))


@spelling
def causal_constant_of_infinities() -> ModelProto:
    s = Sketch()
    mask = np.triu(np.full((S, T), -np.inf, np.float32), 1)
    return s.done(attention(s, *qkv(s), bias=s.constant(mask)))


@spelling
def constant_condition_that_hides_no_row() -> ModelProto:
    s = Sketch()
    q, k, v = qkv(s)
    scores = s.times(s("MatMul", q, s("Transpose", k, perm=[0, 1, 3, 2])), 0.3)
    chosen = s("Where", s.constant(np.tri(S, T, dtype=bool), np.bool_), scores, s.constant(LOWEST))
    return s.done(s.merged(s("MatMul", s("Softmax", chosen, axis=-1), v)))


def in_batch(bias: list[int] | None, *, through: bool) -> ModelProto:
    """Heads merged into the batch, as older exports of BART and M2M have them; ``through`` adds the mask in between,
    beside which the bias only keeps or hides."""
    s = Sketch()
    q, k, v = (s("Reshape", x, s.ints(B * N, -1, H)) for x in qkv(s))
    scores = s("MatMul", s.times(q, 0.3), s("Transpose", k, perm=[0, 2, 1]))
    if through:
        scores = s("Add", s("Reshape", scores, s.ints(B, N, S, T)), s.input("mask", [B, 1, S, T]))
        scores = s("Reshape", scores, s.ints(B * N, S, T))
    if bias is not None:
        scores = s("Add", scores, hiding(s, bias) if through else s.input("bias", bias))
    y = s("MatMul", s("Softmax", scores, axis=-1), v)
    return s.done(s.merged(s("Reshape", y, s.ints(B, N, S, H))))


SPELLINGS["heads in the batch"] = lambda: in_batch(None, through=False)
SPELLINGS["heads in the batch, a mask for each"] = lambda: in_batch([B * N, S, T], through=False)
SPELLINGS["heads in the batch, one mask for all"] = lambda: in_batch([1, S, T], through=False)
SPELLINGS["heads in the batch, apart for the mask"] = lambda: in_batch(None, through=True)
SPELLINGS["heads in the batch, two masks"] = lambda: in_batch([B * N, 1, T], through=True)


def safe(s: Sketch, *, heads: int = 1, fill: float = -np.inf) -> ModelProto:
    """Attention of torch: a row that is hidden as a whole has NaN as weights, which become zeros."""
    q, k, v = qkv(s)
    keep = s.input("keep", [B, heads, S, T], BOOL)
    bias = s("Where", keep, s.constant(0), s.constant(fill))
    scores = s("Add", s("MatMul", s.times(q, 0.5), s("Transpose", s.times(k, 0.5), perm=[0, 1, 3, 2])), bias)
    weights = s("Softmax", scores, axis=-1)
    weights = s("Where", s("IsNaN", weights), s.constant(0), weights)
    return s.done(s.merged(s("MatMul", weights, v)))


@spelling
def safe_softmax() -> ModelProto:
    return safe(Sketch())


@spelling
def safe_softmax_with_a_mask_for_each_head() -> ModelProto:
    return safe(Sketch(), heads=N)


@spelling
def safe_softmax_of_a_finite_fill() -> ModelProto:
    return safe(Sketch(), fill=LOWEST)


@spelling
def attention_of_opset_23() -> ModelProto:
    s = Sketch(opset=23)
    q, k, v = (s.input(name, [B, length, N * H]) for name, length in (("q", S), ("k", T), ("v", T)))
    keep = s.input("keep", [B, 1, S, T], BOOL)
    return s.done(s("Attention", q, k, v, keep, q_num_heads=N, kv_num_heads=N))


# --- near misses


@near_miss("the softmax is not over the last axis")
def softmax_over_queries() -> ModelProto:
    s = Sketch()
    q, k, v = qkv(s)
    weights = s("Softmax", s("MatMul", q, s("Transpose", k, perm=[0, 1, 3, 2])), axis=2)
    return s.done(s.merged(s("MatMul", weights, v)))


@near_miss("")
def logarithm_of_softmax() -> ModelProto:
    s = Sketch()
    q, k, v = qkv(s)
    weights = s("LogSoftmax", s("MatMul", q, s("Transpose", k, perm=[0, 1, 3, 2])), axis=-1)
    return s.done(s.merged(s("MatMul", weights, v)))


def with_weights(change: Callable[[Sketch, str], str], *, total: int = T) -> ModelProto:
    s = Sketch()
    q, k, v = qkv(s)
    weights = s("Softmax", s.times(s("MatMul", q, s("Transpose", k, perm=[0, 1, 3, 2])), 0.3), axis=-1)
    return s.done(s.merged(s("MatMul", change(s, weights), v)))


@near_miss("is used 2 times")
def weights_that_are_a_result() -> ModelProto:
    s = Sketch()
    q, k, v = qkv(s)
    weights = s("Softmax", s("MatMul", q, s("Transpose", k, perm=[0, 1, 3, 2])), axis=-1)
    return s.done(s.merged(s("MatMul", weights, v)), weights)


@near_miss("")
def scaled_weights() -> ModelProto:
    return with_weights(lambda s, w: s("Mul", w, s.input("gain", [B, N, S, T])))


@near_miss("")
def weights_mixed_over_heads() -> ModelProto:
    return with_weights(lambda s, w: s("Conv", w, s.input("mix", [N, N, 1, 1])))


@near_miss("")
def weights_without_their_sink() -> ModelProto:
    s = Sketch()
    q, k, v = qkv(s)
    scores = s("MatMul", q, s("Transpose", k, perm=[0, 1, 3, 2]))
    weights = s("Softmax", s("Concat", scores, s.input("sink", [B, N, S, 1]), axis=-1), axis=-1)
    kept = s("Slice", weights, s.ints(0), s.ints(T), s.ints(3))
    return s.done(s.merged(s("MatMul", kept, v)))


def with_scores(change: Callable[[Sketch, str], str], *, scale: float | None = None) -> ModelProto:
    s = Sketch()
    q, k, v = qkv(s)
    scores = s("MatMul", q, s("Transpose", k, perm=[0, 1, 3, 2]))
    scores = change(s, scores)
    if scale is not None:
        scores = s.times(scores, scale)
    return s.done(s.merged(s("MatMul", s("Softmax", scores, axis=-1), v)))


@near_miss("tanh is between")
def capped_scores() -> ModelProto:
    return with_scores(lambda s, x: s.times(s("Tanh", s.times(x, 0.02)), 50))


@near_miss("mul is between")
def temperature_for_each_head() -> ModelProto:
    return with_scores(lambda s, x: s("Mul", x, s.constant(np.arange(1.0, N + 1).reshape(N, 1, 1))))


@near_miss("mul is between")
def mask_that_multiplies() -> ModelProto:
    return with_scores(lambda s, x: s("Mul", x, s.input("mask", [B, 1, S, T])))


@near_miss("a mask is inside the scale")
def mask_inside_the_scale() -> ModelProto:
    return with_scores(lambda s, x: s("Add", x, s.input("mask", [B, N, S, T])), scale=0.3)


@near_miss("does not hide every score")
def fill_that_does_not_hide() -> ModelProto:
    keep = np.tri(S, T, dtype=bool)
    return with_scores(lambda s, x: s("Where", s.constant(keep, np.bool_), x, s.constant(-100.0)))


@near_miss("masked_fill is there, where(mask, fill, scores)")
def masked_fill() -> ModelProto:
    return with_scores(lambda s, x: s("Where", s.input("mask", [B, 1, S, T], BOOL), s.constant(LOWEST), x))


@near_miss("--allow range")
def condition_that_may_hide_rows() -> ModelProto:
    return with_scores(lambda s, x: s("Where", s.input("keep", [B, 1, S, T], BOOL), x, s.constant(LOWEST)))


@near_miss("--allow range")
def constant_condition_that_hides_a_row() -> ModelProto:
    keep = np.tri(S, T, -1, dtype=bool)
    return with_scores(lambda s, x: s("Where", s.constant(keep, np.bool_), x, s.constant(LOWEST)))


@near_miss("--allow range")
def places_that_are_kept_and_hidden_by_the_bias() -> ModelProto:
    """The bias hides all that the condition keeps of the first row, whose weights come from the fill."""
    keep, bias = np.tri(S, T, dtype=bool), np.zeros((S, T))
    bias[0, 0] = -np.inf

    def change(s: Sketch, x: str) -> str:
        return str(s("Where", s.constant(keep, np.bool_), s("Add", x, s.constant(bias)), s.constant(LOWEST)))

    return with_scores(change)


@near_miss("a row of the bias is -inf as a whole")
def constant_bias_that_hides_a_row() -> ModelProto:
    mask = np.where(np.tri(S, T, -1, dtype=bool), 0, -np.inf)
    return with_scores(lambda s, x: s("Add", x, s.constant(mask)))


def of_biases(biases: Callable[[Sketch], Sequence[str]]) -> tuple[Callable[[], ModelProto], str]:
    return lambda: with_biases(biases), "biases are added one after another: their sum rounds otherwise"


#: In a row of -6e4 scores are rounded to 1/256, and otherwise where the other bias is among the sum.
MISSES["two biases of the run"] = of_biases(lambda s: (s.input("place", [1, N, S, T]), s.input("mask", [B, 1, 1, T])))
MISSES["rows of a large number"] = of_biases(
    lambda s: (s.input("place", [1, N, S, T]), s.constant(np.where(np.arange(S) < 2, -6e4, 0)[:, None]))
)
MISSES["two constants"] = of_biases(lambda s: (s.constant(np.linspace(0, 1, T)), s.constant(np.full((S, 1), -1e4))))
MISSES["a fill that is not low enough"] = of_biases(
    lambda s: (s.input("place", [S, T]), s.constant(np.where(np.tri(S, T), 0, LOWEST)), hiding(s, [B, 1, 1, T], -6e4))
)


@near_miss("is used 2 times")
def scores_that_are_a_result() -> ModelProto:
    s = Sketch()
    q, k, v = qkv(s)
    scores = s.times(s("MatMul", q, s("Transpose", k, perm=[0, 1, 3, 2])), 0.3)
    return s.done(s.merged(s("MatMul", s("Softmax", scores, axis=-1), v)), scores)


@near_miss("the scale is 0")
def scale_of_zero() -> ModelProto:
    return with_scores(lambda s, x: s.times(x, 0.0))


@near_miss("the scale is 0")
def scale_that_is_zero_in_f32() -> ModelProto:
    return with_scores(lambda s, x: s.times(s.times(x, 1e-30), 1e-30))


@near_miss("")
def values_on_the_left() -> ModelProto:
    s = Sketch()
    q, k = s.heads(s.input("q", [B, S, N * H])), s.heads(s.input("k", [B, S, N * H]))
    weights = s("Softmax", s("MatMul", q, s("Transpose", k, perm=[0, 1, 3, 2])), axis=-1)
    return s.done(s.merged(s("MatMul", s.heads(s.input("v", [B, S, N * S]), S), weights), S))


@near_miss("the operands broadcast")
def one_key_for_all_heads() -> ModelProto:
    s = Sketch()
    q, k, v = s.heads(s.input("q", [B, S, N * H])), s.input("k", [B, 1, T, H]), s.input("v", [B, 1, T, H])
    return s.done(attention(s, q, k, v))


@near_miss("heads are not apart from the batch")
def heads_in_the_batch() -> ModelProto:
    s = Sketch()
    q, k, v = (s.input(name, [B * N, length, H]) for name, length in (("q", S), ("k", T), ("v", T)))
    weights = s("Softmax", s.times(s("MatMul", q, s("Transpose", k, perm=[0, 2, 1])), 0.3), axis=-1)
    return s.done(s("MatMul", weights, v))


@near_miss("reshape is between")
def scores_of_windows() -> ModelProto:
    def shifted(s: Sketch, x: str) -> str:
        apart = s("Add", s("Reshape", x, s.ints(1, B, N, S, T)), s.input("mask", [1, B, 1, S, T]))
        return str(s("Reshape", apart, s.ints(B, N, S, T)))

    return with_scores(shifted)


@near_miss("is not of a product")
def gate_of_a_router() -> ModelProto:
    s = Sketch()
    return s.done(s("MatMul", s("Softmax", s.input("x", [B, N, S, T]), axis=-1), s.input("v", [B, N, T, H])))


@near_miss("its layouts and bias would take 2 more operators than the fusion saves")
def layouts_that_cost_more() -> ModelProto:
    s = Sketch()
    q, k, v = (s.input(n, shape) for n, shape in (("q", [B, N, S, H]), ("k", [B, N, H, T]), ("v", [B, N, T, H])))
    return s.done(s("MatMul", s("Softmax", s("MatMul", q, k), axis=-1), v))


def half(place: str) -> ModelProto:
    """Attention of f16 with a factor of the query, of the key, or of the scores."""
    s = Sketch(dtype=HALF)
    q, k, v = qkv(s)
    q, k = (s.times(x, 0.25) if name == place else x for name, x in (("query", q), ("key", k)))
    return s.done(attention(s, q, k, v, scale=0.25 if place == "scores" else None))


def grown(seed: int) -> ModelProto:
    """A model of random choices: layouts, scales, biases and masks, of which some are attention."""
    rng = np.random.default_rng(seed)
    s = Sketch(opset=int(rng.choice([11, 13, 17, 20])))

    def pick(*choices: Any) -> Any:
        return choices[rng.integers(len(choices))]

    size, length, total = int(pick(1, 3, 8)), int(pick(1, S)), int(pick(1, T))

    def operand(name: str, rows: int) -> str:
        form = pick("tokens", "tokens", "apart", "columns")
        if form == "tokens":
            return s.heads(s.input(name, [B, rows, N * size]), size)
        if form == "apart":
            return s.input(name, [B, N, rows, size])
        return str(s("Transpose", s.input(name, [rows, size, N, B]), perm=[3, 2, 0, 1]))

    def scaled(x: str) -> str:
        return s.times(x, float(pick(0.5, 2.0, -0.75)), pick("Mul", "Div")) if rng.random() < 0.4 else x

    merged = rng.random() < 0.3
    q, k, v = scaled(operand("q", length)), scaled(operand("k", total)), operand("v", total)
    if merged:
        q, k, v = (s("Reshape", x, s.ints(B * N, rows, size)) for x, rows in ((q, length), (k, total), (v, total)))
    k = scaled(s("Transpose", k, perm=[0, 2, 1] if merged else [0, 1, 3, 2]))
    scores = scaled(s("MatMul", q, k))
    for i in range(rng.integers(3)):
        sizes = (B * N, length, total) if merged else (B, N, length, total)
        shape = [int(pick(1, n)) for n in sizes][int(rng.integers(3)) :]
        if rng.random() < 0.3:
            mask = np.where(rng.random(shape) < 0.3, -np.inf, rng.normal(size=shape))
            mask[..., 0] = 0
            bias = s.constant(mask)
        else:
            bias = s.input(f"bias{i}", shape)
        scores = s("Add", *pick((scores, bias), (bias, scores)))
    if rng.random() < 0.2:
        keep = rng.random([1 if merged else int(pick(1, B)), *[1] * (not merged), length, total]) < 0.7
        scores = s("Where", s.constant(keep, np.bool_), scores, s.constant(pick(LOWEST, -1e9, -1e35)))
    if rng.random() < 0.1:
        scores = scaled(scores)
    last = 2 if merged else 3
    weights = s("Softmax", scores, axis=int(pick(*[last] * 4, last - 1) if s.opset < 13 else pick(-1, -1, -1, -2)))
    if rng.random() < 0.3 and s.opset > 11:
        weights = s("Where", s("IsNaN", weights), s.constant(0), weights)
    y = s("MatMul", weights, v)
    if merged and rng.random() < 0.7:
        y, merged = s("Reshape", y, s.ints(B, N, length, size)), False
    outputs = [s.merged(y, size) if rng.random() < 0.6 and not merged else y]
    return s.done(*outputs, *([weights] if rng.random() < 0.1 else []))
