"""Attention of ``com.microsoft`` (onnxruntime, docs/ContribOperators.md): products, a softmax, and what is beside them.

Attention and RotaryEmbedding of ONNX are taken by ONNX's own definitions before the passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import ClassVar

from dmlc.ir import Dim, DType, Node, Operation, Value, floordiv
from dmlc.ir.dtype import i64
from dmlc.onnx_schema.domains import MICROSOFT
from dmlc.ops.binary import ADD, DIV, EQUAL, LESS, MUL, SUB
from dmlc.ops.choose import WHERE
from dmlc.ops.elementwise import SQRT
from dmlc.ops.index import FULL, GATHER, IOTA, FullAttributes, GatherAttributes, IotaAttributes
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import (
    CONCAT,
    SLICE,
    SPLIT,
    TRANSPOSE,
    ConcatAttributes,
    SliceAttributes,
    SplitAttributes,
    TransposeAttributes,
)
from dmlc.ops.normalize import SOFTMAX, SoftmaxAttributes
from dmlc.ops.opaque import OPAQUE
from dmlc.passes.decompose.decomposition import Decomposition, given, operand, operator_of
from dmlc.passes.node_maker import Maker
from dmlc.passes.rewrite import Miss

_PACKED, _HEADS = f"{MICROSOFT}.Attention", f"{MICROSOFT}.MultiHeadAttention"
#: The mask's number where a key is hidden, unless ``mask_filter_value`` has another.
_HIDDEN = -10000.0
_SWAP = (0, 2, 1, 3)


class DecomposeAttention(Decomposition):
    """Attention becomes the product of queries and keys, a scale, a bias, a softmax and the product with the values."""

    name = "decompose-attention"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    operators: ClassVar[tuple[str, ...]] = (_PACKED, _HEADS)

    def why_not(self, node: Node) -> Miss | None:
        packed = operator_of(node) == _PACKED
        past, mask = (4, 3) if packed else (6, 4)
        if any(operand(node, index) is not None for index in range(past, len(node.operands)) if index != 5):
            return Miss("it has a past")
        if any(value.uses for value in node.results[1:]):
            return Miss("its present key and value, or its scores, are used")
        hides = operand(node, mask)
        if hides is not None and hides.type.rank != 2:
            return Miss("its mask has {0} axes", (hides.type.rank,))
        if node.operand(0).type.rank != 3 or given(node, "do_rotary", 0):
            return Miss("its query is packed")
        if packed:
            return None
        key, value = operand(node, 1), operand(node, 2)
        if key is None or value is None or (key.type.rank, value.type.rank) not in ((3, 3), (4, 4)):
            return Miss("its key or value is packed")
        return None

    def parts(self, node: Node, make: Maker) -> Sequence[Value]:
        packed = operator_of(node) == _PACKED
        heads = int(given(node, "num_heads", 1))
        read = _projected if packed else _biased
        query, key, value = [_by_head(make, v, heads) for v in read(node, make)]
        scores = self._scores(node, make, query, key)
        bias, mask = operand(node, 5), operand(node, 3 if packed else 4)
        if mask is not None:
            shape = (mask.shape[0], 1, 1, mask.shape[1])
            hidden = make(EQUAL, make.reshape(mask, shape), make.constant(0, mask.type.dtype))
            scores = make(ADD, scores, self._minus(node, make, hidden, scores.type.dtype))
        if bias is not None:
            scores = make(ADD, scores, make.cast(bias, scores.type.dtype))
        if given(node, "unidirectional", 0):
            scores = make(ADD, scores, self._minus(node, make, _later(make, scores), scores.type.dtype))
        weights = make(SOFTMAX, scores, attributes=SoftmaxAttributes(axes=(3,)))  # may be decomposed in its turn
        out = make(MATMUL, make.cast(weights, value.type.dtype), value)
        out = make(TRANSPOSE, out, attributes=TransposeAttributes(perm=_SWAP))
        batch, length, _, size = out.shape
        return [make.reshape(out, (batch, length, heads * size))]

    def _scores(self, node: Node, make: Maker, query: Value, key: Value) -> Value:
        """The scaled products of queries and keys, in f32 if they are f16."""
        size, scale = query.shape[3], given(node, "scale", 0.0)
        swapped = make(TRANSPOSE, key, attributes=TransposeAttributes(perm=(0, 1, 3, 2)))
        scores = make(MATMUL, query, swapped)
        home = scores.type.dtype.accumulator
        scores = make.cast(scores, home)
        if not scale and isinstance(size, int):
            scale = 1 / sqrt(size)
        if scale:
            return make(MUL, scores, make.constant(scale, home))
        root = make(SQRT, make(FULL, attributes=FullAttributes(shape=(), value=size, dtype=home)))
        return make(DIV, scores, root)

    def _minus(self, node: Node, make: Maker, hidden: Value, dtype: DType) -> Value:
        """The number that hides a key, 0 elsewhere."""
        number = make.constant(given(node, "mask_filter_value", _HIDDEN), dtype)
        return make(WHERE, hidden, number, make.constant(0, dtype))


def _later(make: Maker, scores: Value) -> Value:
    """True where the key comes after the query."""
    length, total = scores.shape[2:]
    rows, columns = (make(IOTA, attributes=IotaAttributes(length=size, dtype=i64)) for size in (length, total))
    return make(LESS, make.reshape(rows, (length, 1)), columns)


def _by_head(make: Maker, value: Value, heads: int) -> Value:
    """Values of (batch, length, heads * size) as (batch, heads, length, size)."""
    if value.type.rank == 4:
        return value
    batch, length, hidden = value.shape
    apart = make.reshape(value, (batch, length, heads, floordiv(hidden, heads)))
    return make(TRANSPOSE, apart, attributes=TransposeAttributes(perm=_SWAP))


def _biased(node: Node, make: Maker) -> list[Value]:
    """Query, key and value of MultiHeadAttention, each with its part of the bias."""
    values = [node.operand(i) for i in range(3)]
    bias = operand(node, 3)
    if bias is None:
        return values
    heads = int(given(node, "num_heads", 1))
    sizes: list[Dim] = [v.shape[2] if v.type.rank == 3 else heads * v.shape[3] for v in values]
    out: list[Value] = []
    start: Dim = 0
    for value, size in zip(values, sizes, strict=True):
        record = SliceAttributes(starts=(start,), ends=(start + size,), axes=(0,), steps=(1,))
        part = make(SLICE, bias, attributes=record)
        if value.type.rank == 4:
            part = make.reshape(part, (heads, 1, value.shape[3]))
        out.append(make(ADD, value, part))
        start = start + size
    return out


def _projected(node: Node, make: Maker) -> list[Value]:
    """Query, key and value of Attention: parts of the product of the operand and the weights."""
    out = make(MATMUL, node.operand(0), node.operand(1))
    bias = operand(node, 2)
    out = out if bias is None else make(ADD, out, bias)
    width = out.shape[2]
    sizes = tuple(given(node, "qkv_hidden_sizes", ())) or (floordiv(width, 3),) * 3
    split = make.rewriter.add_node(SPLIT, [out], SplitAttributes(axis=2, sizes=sizes))
    return list(split.results)


_ROTARY = f"{MICROSOFT}.RotaryEmbedding"


class DecomposeRotary(Decomposition):
    """A rotary embedding becomes products with cosines and sines, and their differences and sums."""

    name = "decompose-rotary"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    operators: ClassVar[tuple[str, ...]] = (_ROTARY,)

    def why_not(self, node: Node) -> Miss | None:
        x, ids = node.operand(0), node.operand(1)
        if given(node, "interleaved", 0) or given(node, "is_packed_batching", 0):
            return Miss("it is interleaved or packed")
        if given(node, "rotary_embedding_dim", 0) or given(node, "scale", 1.0) != 1:
            return Miss("it rotates a part of the head, or scales")
        if ids.type.rank != 2:
            return Miss("its position_ids are an offset")
        return None if x.type.rank in (3, 4) else Miss("its operand has {0} axes", (x.type.rank,))

    def parts(self, node: Node, make: Maker) -> Sequence[Value]:
        x, ids = node.operand(0), node.operand(1)
        half = node.operand(2).shape[-1]
        turned = x
        if x.type.rank == 3:
            batch, length, hidden = x.shape
            turned = make.reshape(x, (batch, length, floordiv(hidden, 2 * half), 2 * half))
            turned = make(TRANSPOSE, turned, attributes=TransposeAttributes(perm=_SWAP))
        angles = []
        for index in (2, 3):
            rows = make(GATHER, node.operand(index), ids, attributes=GatherAttributes(axis=0, batch_axes=0))
            angles.append(make.reshape(rows, (rows.shape[0], 1, *rows.shape[1:])))
        cosines, sines = angles
        low, high = make.rewriter.add_node(SPLIT, [turned], SplitAttributes(axis=3, sizes=(half, half))).results
        real = make(SUB, make(MUL, low, cosines), make(MUL, high, sines))
        imaginary = make(ADD, make(MUL, low, sines), make(MUL, high, cosines))
        out = make(CONCAT, real, imaginary, attributes=ConcatAttributes(axis=3))
        if x.type.rank == 3:
            out = make.reshape(make(TRANSPOSE, out, attributes=TransposeAttributes(perm=_SWAP)), x.shape)
        return [out]
