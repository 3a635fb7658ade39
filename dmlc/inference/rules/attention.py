"""Attention operators of ``com.microsoft`` (onnxruntime, docs/ContribOperators.md, and the shapes of its kernels)."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.inference.fact import Fact
from dmlc.inference.query import Query
from dmlc.inference.registry import rule
from dmlc.ir import Dim, Shape, floordiv
from dmlc.onnx_schema.domains import MICROSOFT


@rule("MultiHeadAttention", domain=MICROSOFT)
def multi_head_attention(q: Query) -> Sequence[Fact]:
    """Type the output, the present key and value, and the scores.

    The scores have a type of their own. The query is (batch, length, hidden), or (batch, length, heads, 3, size) with
    key and value packed in. The key may be (batch, length, heads, 2, size) with the value packed in; key and value may
    be (batch, heads, length, size).
    """
    return _heads(q, past=6)


@rule("DecoderMaskedMultiHeadAttention", domain=MICROSOFT)
def decoder_attention(q: Query) -> Sequence[Fact]:
    """Type the same results as for ``MultiHeadAttention``. A shared buffer keeps the size of the past."""
    return _heads(q, past=5, is_shared=bool(q.integer("past_present_share_buffer")))


def _heads(q: Query, past: int, *, is_shared: bool = False) -> Sequence[Fact]:
    element, query = q.element(0), q.shape(0)
    if query is None or len(query) not in (3, 5):
        return [Fact(element, q.fresh_shape(3)), Fact(element), Fact(element)]
    batch, length = query[:2]
    heads: Dim = q.integer("num_heads") or q.new_dim()
    size = query[4] if len(query) == 5 else floordiv(query[2], heads)
    total, value_size = _key_and_value(q, length, size, heads)
    if q.has(past) and is_shared:
        before = q.shape(past)
        total = before[2] if before is not None and len(before) == 4 else q.new_dim()
    elif q.has(past):
        before = q.shape(past)
        total = total + before[2] if before is not None and len(before) == 4 else q.new_dim()
    return [
        Fact(element, (batch, length, heads * value_size)),
        Fact(element, (batch, heads, total, size)),
        Fact(element, (batch, heads, total, value_size)),
        Fact(0, (batch, heads, length, total)),
    ]


def _key_and_value(q: Query, length: Dim, size: Dim, heads: Dim) -> tuple[Dim, Dim]:
    """The length of the keys, and the size of a head of the values."""
    if q.rank(0) == 5:
        return length, size
    key, value = q.shape(1), q.shape(2)
    if not q.has(1):
        return length, size
    total = q.new_dim() if key is None else key[1] if len(key) in (3, 5) else key[2]
    if not q.has(2):
        return total, size
    if value is None:
        return total, q.new_dim()
    return total, floordiv(value[2], heads) if len(value) == 3 else value[-1]


@rule("GroupQueryAttention", domain=MICROSOFT)
def group_query_attention(q: Query) -> Sequence[Fact]:
    """Type the output and the present key and value, which hold the longer of the past and the total length.

    Without a key the query is (batch, length, (heads + 2 * key heads) * size).
    """
    element, query, past = q.element(0), q.shape(0), q.shape(3)
    heads, few = q.integer("num_heads"), q.integer("kv_num_heads")
    cache = q.element(3) or element
    if query is None or len(query) != 3 or heads < 1 or few < 1:
        return [Fact(element, q.fresh_shape(3)), Fact(cache, q.fresh_shape(4)), Fact(cache, q.fresh_shape(4))]
    size = floordiv(query[2], heads if q.has(1) else heads + 2 * few)
    present: Shape = (query[0], few, _cached(q, past), size)
    return [
        Fact(element, (*query[:2], size * heads)),
        Fact(cache, present),
        Fact(cache, present),
        Fact(element, q.fresh_shape(4)),
    ]


def _cached(q: Query, past: Shape | None) -> Dim:
    """The length that the present key has: the total length, or the length of the past where it is longer."""
    total = q.numbers(6)
    if total is None or len(total) != 1:
        return q.new_dim()
    if not q.has(3):
        return total[0]
    before = past[2] if past is not None and len(past) == 4 else None
    return max(before, total[0]) if isinstance(before, int) else q.new_dim()


@rule("Attention", "QAttention", domain=MICROSOFT)
def attention(q: Query) -> Sequence[Fact]:
    """Type the output and the present, in which keys and values are stacked.

    The operand is (batch, length, width), the weights (width, sizes of query, key and value together).
    """
    is_quantized = q.op_type == "QAttention"
    element = q.element(3 if is_quantized else 0)
    x, weights, past = q.shape(0), q.shape(1), q.shape(8 if is_quantized else 4)
    if x is None or len(x) != 3:
        return [Fact(element, q.fresh_shape(3)), Fact(element, q.fresh_shape(5))]
    sizes = q.integers("qkv_hidden_sizes")
    if sizes is not None and len(sizes) == 3:
        hidden: Dim = sizes[2]
    else:
        hidden = floordiv(weights[1], 3) if weights is not None and len(weights) == 2 else q.new_dim()
    heads: Dim = q.integer("num_heads") or q.new_dim()
    length = x[1]
    if q.has(8 if is_quantized else 4):
        before = past[3] if past is not None and len(past) == 5 else q.new_dim()
        length = before if q.integer("past_present_share_buffer") else before + length
    return [Fact(element, (*x[:2], hidden)), Fact(element, (2, x[0], heads, length, floordiv(hidden, heads)))]


@rule("EmbedLayerNormalization", domain=MICROSOFT)
def embedding_norm(q: Query) -> Sequence[Fact]:
    """Type the normalized sum of embeddings, the count of each row's tokens, and the sum."""
    ids, words, element = q.shape(0), q.shape(2), q.element(2)
    head = ids if ids is not None and len(ids) == 2 else q.fresh_shape(2)
    out = Fact(element, (*head, words[1] if words is not None and len(words) == 2 else q.new_dim()))
    return [out, Fact(q.element(0), head[:1]), out]
