"""Products of matrices, attention, recurrent layers, and operators of the newest opsets (onnx, docs/Operators.md)."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto

from dmlc.inference.fact import Fact
from dmlc.inference.query import Fault, Query, need_equal
from dmlc.inference.registry import rule
from dmlc.inference.rules.elementwise import same
from dmlc.ir import Dim, Shape, floordiv
from dmlc.onnx_schema.domains import MICROSOFT


def product_shape(q: Query, a: Shape | None, b: Shape | None) -> Shape | None:
    """The shape of NumPy's ``matmul``."""
    if a == () or b == ():
        raise Fault("an operand is a scalar")
    if not a or not b:
        return None
    left: Shape = (1, *a) if len(a) == 1 else a
    right: Shape = (*b, 1) if len(b) == 1 else b
    batch = q.broadcast(left[:-2], right[:-2])
    if batch is None:
        return None
    need_equal(left[-1], right[-2], "the sizes that are multiplied")
    return (*batch, *left[-2 : -1 if len(a) > 1 else -2], *right[-1 : None if len(b) > 1 else -1])


@rule("MatMul")
def matmul(q: Query) -> Sequence[Fact]:
    return [Fact(q.element(0) or q.element(1), product_shape(q, q.shape(0), q.shape(1)))]


@rule("MatMulInteger")
def matmul_integer(q: Query) -> Sequence[Fact]:
    return [Fact(TensorProto.INT32, product_shape(q, q.shape(0), q.shape(1)))]


@rule("QLinearMatMul")
def quantized_matmul(q: Query) -> Sequence[Fact]:
    return [Fact(q.element(7), product_shape(q, q.shape(0), q.shape(3)))]


@rule("Gemm")
def gemm(q: Query) -> Sequence[Fact]:
    a, b = q.shape(0), q.shape(1)
    q.need_rank(0, 2)
    q.need_rank(1, 2)
    if a is None or b is None:
        return [Fact(q.element(0), q.fresh_shape(2))]
    trans_a, trans_b = bool(q.integer("transA")), bool(q.integer("transB"))
    need_equal(a[not trans_a], b[trans_b], "the sizes that are multiplied")
    return [Fact(q.element(0), (a[trans_a], b[not trans_b]))]


@rule("Det")
def determinant(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    return [Fact(q.element(0), None if shape is None else shape[:-2])]


@rule("Einsum")
def einsum(q: Query) -> Sequence[Fact]:
    element = next((q.element(i) for i in range(len(q.operands)) if q.element(i)), 0)
    return [Fact(element, _einsum_shape(q))]


def _einsum_shape(q: Query) -> Shape | None:
    """The sizes of the letters of the result. Operands of unknown rank leave theirs open."""
    equation = q.word("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    need_equal(len(terms), len(q.operands), "the numbers of terms and of operands")
    sizes: dict[str, Dim] = {}
    dots: Shape | None = ()
    for i, term in enumerate(terms):
        shape = q.shape(i)
        before, has_dots, after = term.partition("...")
        if shape is None:
            dots = None if has_dots else dots
            continue
        count = len(shape) - len(before) - len(after)
        if count < 0 or (count and not has_dots):
            raise Fault(f"operand {i + 1} has {len(shape)} axes, and its term is {term}")
        for letter, size in zip(before + after, (*shape[: len(before)], *shape[len(before) + count :]), strict=True):
            if size != 1 and sizes.get(letter, 1) != 1:
                q.fails_unless_equal(sizes[letter], size, f"the sizes of {letter}")
            if (isinstance(size, int) and size != 1) or letter not in sizes or sizes[letter] == 1:
                sizes[letter] = size
        if has_dots and dots is not None:
            dots = q.broadcast(dots, shape[len(before) : len(before) + count])
    if not arrow:
        letters = "".join(terms).replace(".", "")
        right = ("..." if "..." in left else "") + "".join(sorted({c for c in letters if letters.count(c) == 1}))
    before, has_dots, after = right.partition("...")
    if has_dots and dots is None:
        return None
    middle = dots if has_dots and dots is not None else ()
    ends = [[sizes[c] if c in sizes else q.new_dim() for c in part] for part in (before, after)]
    return (*ends[0], *middle, *ends[1])


# --- Attention operators of ``com.microsoft`` (onnxruntime, docs/ContribOperators.md, and the shapes of its kernels)


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


# --- Recurrent layers and attention


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
def plain_attention(q: Query) -> Sequence[Fact]:
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


# --- Operators of the newest opsets, and the preview domain (onnx, docs/Operators.md)


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
