"""Recurrent layers and attention."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.inference.fact import Fact
from dmlc.inference.query import Fault, Query
from dmlc.inference.registry import rule
from dmlc.ir import Dim, Shape, floordiv
from dmlc.onnx_schema.domains import MICROSOFT


@rule("GRU", "LSTM", "RNN")
def recurrent(q: Query) -> Sequence[Fact]:
    x, w = q.shape(0), q.shape(1)
    if x is not None and w is not None and len(x) == len(w) == 3:
        q.fails_unless_equal(x[2], w[2], "the sizes of the operand and the weights")
    _check_activations(q)
    return _states(q, 2)


def _check_activations(q: Query) -> None:
    """A layer has all activations of each direction, or the default ones. An RNN of one direction may have more."""
    count = _ACTIVATIONS[q.op_type] * _directions(q)
    if q.attributes.get("activations") and count > 1:
        q.need_length("activations", count)


#: Activations of one direction.
_ACTIVATIONS = {"GRU": 2, "LSTM": 3, "RNN": 1}


def _directions(q: Query) -> int:
    return 2 if q.word("direction", "forward") == "bidirectional" else 1


@rule("DynamicQuantizeLSTM", domain=MICROSOFT)
def quantized_lstm(q: Query) -> Sequence[Fact]:
    """An LSTM whose weights lie transposed."""
    return _states(q, 1)


def _states(q: Query, axis: int) -> Sequence[Fact]:
    """The results of a recurrent layer; ``axis`` of the recurrence weights is the hidden size."""
    x, r = q.shape(0), q.shape(2)
    directions = _directions(q)
    given = q.attributes.get("hidden_size")
    hidden: Dim = given if isinstance(given, int) else (r[axis] if r is not None else q.new_dim())
    first, second = (q.new_dim(), q.new_dim()) if x is None else x[:2]
    length, batch = (second, first) if q.integer("layout") else (first, second)
    element = q.element(0)
    every: Shape = (length, directions, batch, hidden)
    last: Shape = (directions, batch, hidden)
    if q.integer("layout"):
        every, last = (batch, length, directions, hidden), (batch, directions, hidden)
    return [Fact(element, every), Fact(element, last), Fact(element, last)]


@rule("Attention")
def attention(q: Query) -> Sequence[Fact]:
    """Operands are (batch, heads, length, size), or (batch, length, heads * size) with the counts as attributes."""
    query, key, value = q.shape(0), q.shape(1), q.shape(2)
    element = q.element(0)
    for index in range(3):
        q.need_rank(index, 3, 4)
    if q.has(4) and q.has(5):
        q.need_rank(4, 4)
        q.need_rank(5, 4)
    if query is None or key is None or value is None:
        return [Fact(element), Fact(element), Fact(element), Fact(element)]
    heads, kv_heads = q.integer("q_num_heads"), q.integer("kv_num_heads")
    if len(query) == 3:
        if heads < 1 or kv_heads < 1:
            raise Fault("q_num_heads and kv_num_heads must be positive")
        key_size, value_size = floordiv(key[2], kv_heads), floordiv(value[2], kv_heads)
        out: Shape = (query[0], query[1], value_size * heads)
        many: Dim = kv_heads
        query_heads: Dim = heads
        query_length, length = query[1], key[1]
    else:
        key_size, value_size, many = key[3], value[3], key[1]
        query_heads, query_length, length = query[1], query[2], key[2]
        out = (*query[:3], value_size)
    past = q.shape(4)
    if q.has(4):
        length = q.new_dim() if past is None else length + past[2]
    present_key, present_value = (query[0], many, length, key_size), (query[0], many, length, value_size)
    scores = (query[0], query_heads, query_length, length)
    return [Fact(element, out), Fact(element, present_key), Fact(element, present_value), Fact(element, scores)]
