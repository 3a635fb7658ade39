"""Attention of ``com.microsoft`` (onnxruntime, docs/ContribOperators.md): products, a softmax, and what is beside them.

Attention and RotaryEmbedding of ONNX are taken by ONNX's own definitions before the passes.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

from dmlc.ir import Dim, Node, floordiv
from dmlc.ir.dtype import i64
from dmlc.onnx_schema.domains import MICROSOFT
from dmlc.passes.decompose.decomposition import decomposes, given, operand, operator_of
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import Lowered
from dmlc.passes.rewrite import Miss

_PACKED, _HEADS = f"{MICROSOFT}.Attention", f"{MICROSOFT}.MultiHeadAttention"
#: The mask's number where a key is hidden, unless ``mask_filter_value`` has another.
_HIDDEN = -10000.0
_SWAP = (0, 2, 1, 3)


@decomposes(_PACKED, _HEADS)
def decompose_attention(e: Sketch, node: Node, *operands: Any) -> Lowered:
    """Attention becomes the product of queries and keys, a scale, a bias, a softmax and the product with the values."""
    packed = operator_of(node) == _PACKED
    mask, bias = operand(operands, 3 if packed else 4), operand(operands, 5)
    reason = _why_not(node, *operands)
    if reason is not None:
        return reason
    heads = int(given(node, "num_heads", 1))
    read = _projected if packed else _biased
    query, key, value = (_by_head(e, v, heads) for v in read(e, node, *operands))
    scores = _scores(e, node, query, key)
    if mask is not None:
        scores = scores + _minus(e, node, e.equal(mask.reshape((mask.shape[0], 1, 1, mask.shape[1])), 0), scores)
    if bias is not None:
        scores = scores + bias.cast(scores.dtype)
    if given(node, "unidirectional", 0):
        scores = scores + _minus(e, node, _later(e, scores), scores)
    weights = e.softmax(scores, axes=(3,))  # may be decomposed in its turn
    out = e.transpose(e.matmul(weights.cast(value.dtype), value), perm=_SWAP)
    batch, length, _, size = out.shape
    return out.reshape((batch, length, heads * size))


def _why_not(node: Node, *operands: Term | None) -> Miss | None:
    packed = operator_of(node) == _PACKED
    query, key, value = (operand(operands, i) for i in range(3))
    past, hides = 4 if packed else 6, operand(operands, 3 if packed else 4)
    if any(operand(operands, index) is not None for index in range(past, len(operands)) if index != 5):
        return Miss("it has a past")
    if any(value.uses for value in node.results[1:]):
        return Miss("its present key and value, or its scores, are used")
    if hides is not None and hides.rank != 2:
        return Miss("its mask has {0} axes", (hides.rank,))
    if query is None or query.rank != 3 or given(node, "do_rotary", 0):
        return Miss("its query is packed")
    if packed:
        return None
    if key is None or value is None or (key.rank, value.rank) not in ((3, 3), (4, 4)):
        return Miss("its key or value is packed")
    return None


def _scores(e: Sketch, node: Node, query: Term, key: Term) -> Term:
    """The scaled products of queries and keys, in f32 if they are f16."""
    size, scale = query.shape[3], given(node, "scale", 0.0)
    scores = e.matmul(query, e.transpose(key, perm=(0, 1, 3, 2))).widened()
    if not scale and isinstance(size, int):
        scale = 1 / sqrt(size)
    return scores * scale if scale else scores / e.sqrt(e.full(shape=(), value=size, dtype=scores.dtype))


def _minus(e: Sketch, node: Node, hidden: Term, scores: Term) -> Term:
    """The number that hides a key, 0 elsewhere."""
    return e.where(hidden, e.number(given(node, "mask_filter_value", _HIDDEN), scores.dtype), 0)


def _later(e: Sketch, scores: Term) -> Term:
    """True where the key comes after the query."""
    rows, columns = (e.iota(length=size, dtype=i64) for size in scores.shape[2:])
    return rows.reshape((scores.shape[2], 1)) < columns


def _by_head(e: Sketch, value: Term, heads: int) -> Term:
    """Values of (batch, length, heads * size) as (batch, heads, length, size)."""
    if value.rank == 4:
        return value
    batch, length, hidden = value.shape
    return e.transpose(value.reshape((batch, length, heads, floordiv(hidden, heads))), perm=_SWAP)


def _biased(e: Sketch, node: Node, *operands: Term) -> list[Term]:
    """Query, key and value of MultiHeadAttention, each with its part of the bias."""
    values, bias = operands[:3], operand(operands, 3)
    if bias is None:
        return list(values)
    heads = int(given(node, "num_heads", 1))
    out: list[Term] = []
    start: Dim = 0
    for value in values:
        size = value.shape[2] if value.rank == 3 else heads * value.shape[3]
        part = e.slice(bias, starts=(start,), ends=(start + size,), axes=(0,), steps=(1,))
        out.append(value + (part.reshape((heads, 1, value.shape[3])) if value.rank == 4 else part))
        start = start + size
    return out


def _projected(e: Sketch, node: Node, x: Term, weights: Term, bias: Term | None = None, *_: Term | None) -> list[Term]:
    """Query, key and value of Attention: parts of the product of the operand and the weights."""
    out = e.matmul(x, weights)
    out = out if bias is None else out + bias
    sizes = tuple(given(node, "qkv_hidden_sizes", ())) or (floordiv(out.shape[2], 3),) * 3
    return list(e.parts(out, 2, *sizes))


@decomposes(f"{MICROSOFT}.RotaryEmbedding")
def decompose_rotary(e: Sketch, node: Node, x: Term, ids: Term, *angles: Term) -> Lowered:
    """A rotary embedding becomes products with cosines and sines, and their differences and sums."""
    if given(node, "interleaved", 0) or given(node, "is_packed_batching", 0):
        return Miss("it is interleaved or packed")
    if given(node, "rotary_embedding_dim", 0) or given(node, "scale", 1.0) != 1:
        return Miss("it rotates a part of the head, or scales")
    if ids.rank != 2:
        return Miss("its position_ids are an offset")
    if x.rank not in (3, 4):
        return Miss("its operand has {0} axes", (x.rank,))
    half, turned = angles[0].shape[-1], x
    if x.rank == 3:
        batch, length, hidden = x.shape
        turned = x.reshape((batch, length, floordiv(hidden, 2 * half), 2 * half))
        turned = e.transpose(turned, perm=_SWAP)
    rows = [e.gather(table, ids, axis=0, batch_axes=0) for table in angles]
    cosines, sines = (row.reshape((row.shape[0], 1, *row.shape[1:])) for row in rows)
    low, high = e.parts(turned, 3, half, half)
    out = e.concat(low * cosines - high * sines, low * sines + high * cosines, axis=3)
    return e.transpose(out, perm=_SWAP).reshape(x.shape) if x.rank == 3 else out
