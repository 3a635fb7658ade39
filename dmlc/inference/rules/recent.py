"""Operators of the newest opsets, and the preview domain (onnx, docs/Operators.md)."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.inference.fact import Fact
from dmlc.inference.query import Fault, Query, need_equal
from dmlc.inference.registry import rule
from dmlc.inference.rules.elementwise import same
from dmlc.ir import Dim, floordiv


@rule("SwiGLU")
def gated_linear_unit(q: Query) -> Sequence[Fact]:
    a, b = q.shape(0), q.shape(1)
    if a is None or b is None:
        return [Fact(q.element(0), b if a is None else a)]
    need_equal(len(a), len(b), "the numbers of axes of the operands")
    for x, y in zip(a, b, strict=True):
        need_equal(x, y, "sizes of the operands")
    return [Fact(q.element(0), tuple([x if isinstance(x, int) else y for x, y in zip(a, b, strict=True)]))]


@rule("CausalConvWithState")
def causal_conv(q: Query) -> Sequence[Fact]:
    """Operands are (batch, channels, length) and (channels, 1, k); the state is (batch, channels, k - 1)."""
    for index, rank in ((0, 3), (1, 3), (2, 1), (3, 3)):
        q.need_rank(index, rank)
    x, w, bias, past = (q.shape(index) for index in range(4))
    for sizes, axis, what in ((w, 0, "weights"), (bias, 0, "biases"), (past, 1, "state")):
        if x is not None and sizes is not None:
            need_equal(sizes[axis], x[1], f"the channels of operand and {what}")
    if w is not None and past is not None:
        need_equal(past[2], w[2] - 1, "the lengths of the state and of the kernel less 1")
    if x is not None and past is not None:
        need_equal(past[0], x[0], "the batches of operand and state")
    known: Sequence[Dim] = q.fresh_shape(3) if x is None else x
    length = q.new_dim() if w is None else w[2] - 1
    return [same(q), Fact(q.element(0), (known[0], known[1], length))]


@rule("LinearAttention")
def linear_attention(q: Query) -> Sequence[Fact]:
    """Operands are (batch, length, heads * size); the state is (batch, heads, key size, value size)."""
    for index, rank in ((0, 3), (1, 3), (2, 3), (3, 4), (4, 3), (5, 3)):
        q.need_rank(index, rank)
    heads, kv_heads = q.integer("q_num_heads"), q.integer("kv_num_heads")
    if heads < 1 or kv_heads < 1:
        raise Fault("q_num_heads and kv_num_heads must be positive")
    for index in range(1, 6):
        _need_like(q, index, 1 if index == 3 else 2)
    query, key, value = q.shape(0), q.shape(1), q.shape(2)
    for sizes, count in ((query, heads), (key, kv_heads), (value, kv_heads)):
        if sizes is not None and isinstance(sizes[2], int) and sizes[2] % count:
            raise Fault(f"the last size {sizes[2]} is not divisible by {count} heads")
    first, length = q.fresh_shape(2) if query is None else query[:2]
    key_size = q.new_dim() if key is None else floordiv(key[2], kv_heads)
    value_size = q.new_dim() if value is None else floordiv(value[2], kv_heads)
    state = q.element(3) if q.has(3) else q.element(0)
    return [
        Fact(q.element(0), (first, length, value_size * heads)),
        Fact(state, (first, kv_heads, key_size, value_size)),
    ]


def _need_like(q: Query, index: int, count: int) -> None:
    """Raise ``Fault`` where the leading sizes of an operand differ from the first one's."""
    a, b = q.shape(0), q.shape(index)
    if a is not None and b is not None:
        for x, y in zip(a[:count], b[:count], strict=True):
            need_equal(x, y, f"sizes of operands 1 and {index + 1}")


@rule("FlexAttention", domain="ai.onnx.preview")
def flex_attention(q: Query) -> Sequence[Fact]:
    """Operands are (batch, heads, length, size); the graphs inside change no shape."""
    for index in range(3):
        q.need_rank(index, 4)
    query, value = q.shape(0), q.shape(2)
    head = q.fresh_shape(3) if query is None else query[:3]
    return [Fact(q.element(0), (*head, q.new_dim() if value is None else value[3]))]


@rule("Adagrad", "Adam", "Momentum", domain="ai.onnx.preview.training")
def optimizer(q: Query) -> Sequence[Fact]:
    """Operands are a rate, a count, and groups of tensors: those to optimize, their gradients, then the states that
    the results renew after the tensors themselves."""
    groups = 4 if q.op_type == "Adam" else 3
    count, rest = divmod(len(q.operands) - 2, groups)
    if rest or count < 1:
        raise Fault(f"{len(q.operands) - 2} tensors are not {groups} groups of one size")
    states = range(2 * count, groups * count)
    return [same(q, 2 + index) for index in (*range(count), *states)]


@rule("Gradient", domain="ai.onnx.preview.training")
def gradient(q: Query) -> Sequence[Fact]:
    """A gradient has the type of the value that it belongs to."""
    names = q.attributes.get("xs")
    return [same(q, index) for index in range(len(names))] if isinstance(names, tuple) else []
