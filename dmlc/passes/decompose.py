"""``decompose``: operators that the user names are written in primitive ones, the reverse of fusion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any, ClassVar

from dmlc.diagnostics.catalogue import targets as codes
from dmlc.ir import (
    FOREIGN,
    Attributes,
    Dim,
    DimTable,
    Graph,
    Inference,
    Node,
    Operation,
    OpError,
    TensorType,
    Value,
    floordiv,
    product,
)
from dmlc.ir.dtype import f64, i64
from dmlc.onnx_schema import domains
from dmlc.onnx_schema.domains import MICROSOFT
from dmlc.onnx_schema.einsum import Equation
from dmlc.onnx_schema.reshapes import ALLOWZERO_OPSET, copied_sizes
from dmlc.ops.binary import ADD, DIV, MUL, SUB
from dmlc.ops.choose import ClipAttributes
from dmlc.ops.elementwise import GELU, UNARY, GeluAttributes, UnaryOperation
from dmlc.ops.matmul import MATMUL
from dmlc.ops.normalize import LAYER_NORM, LOG_SOFTMAX, LP_NORM, RMS_NORM, SOFTMAX, LpNormAttributes, NormAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of, title_of
from dmlc.ops.reduce import REDUCE_LOG_SUM_EXP, REDUCTIONS, ReduceAttributes, axes_of, reduction_of
from dmlc.ops.select import HARDMAX
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import Function, Lowered, NodeRule, lowers
from dmlc.passes.manager import EXACT, REASSOCIATES, PassContext
from dmlc.passes.primitives import (
    affine_norm,
    centred,
    deviation,
    log_sum_exp,
    lp_norm,
    normalized,
    softmax,
    total_in_parts,
)
from dmlc.passes.repair.einsum import letter_sizes, product_of_letters
from dmlc.passes.rewrite import Miss, RewritePass, Rule, rules_of

# --- Nodes of a decomposition, whose operator may demand more of its operands than their types prove

#: Operations of two operands that are one operator of ONNX.
_OPERATORS = {ADD: "Add", SUB: "Sub", MUL: "Mul", DIV: "Div", MATMUL: "MatMul"}

#: The first opset at which kernels of Clip take f64.
_CLIP_OPSET = 12


class OpenSketch(Sketch):
    """Drafts sums and products whose sizes the decomposed operator demands to fit, though nothing proves it.

    Sizes of different names are not proved equal, so the language refuses the operands. The node is then ONNX's
    operator as it is, as an imported model has it: run time checks the sizes, as it does for the decomposed operator.
    No kernel counts: all is primitive.
    """

    __slots__ = ()

    def add_node(self, op: Operation, operands: Sequence[Value | None], attributes: Attributes | None = None) -> Node:
        if self.graph.opset < _CLIP_OPSET and isinstance(attributes, ClipAttributes):
            x = operands[0]
            if x is not None and x.type.dtype is f64:  # ONNX Runtime's older kernels of Clip do not take it
                return self._clipped(Term(self, x), attributes)
        try:
            return super().add_node(op, operands, attributes)
        except OpError:
            if op not in _OPERATORS:
                raise
        types = _fitted(self.graph.dims, op, *[value.type for value in operands if value is not None])
        return super().add_node(OPAQUE, operands, OpaqueAttributes(op_type=_OPERATORS[op], types=tuple(types)))

    def _clipped(self, x: Term, bounds: ClipAttributes) -> Node:
        """A clip by a maximum and a minimum."""
        made = self.smaller(self.larger(x, bounds.min), bounds.max).value.producer
        assert made is not None
        return made

    def log_sum(self, x: Term, axes: Sequence[int]) -> Term:
        return self.log(self.sum(x, axes))

    def reshape(self, value: Value, shape: Sequence[Dim]) -> Value:
        """The value in that shape. Raises ``OpError`` E0501 for one that no Reshape of the opset can state."""
        graph, want = self.graph, tuple(shape)
        is_old = graph.opset < ALLOWZERO_OPSET and 0 not in want
        if is_old and copied_sizes(graph.dims, value.shape, want) is None:
            sizes = ", ".join(map(str, want))
            message = f"a reshape to [{sizes}], whose sizes may be 0, needs opset {ALLOWZERO_OPSET}"
            raise OpError(codes.NEEDS_OPSET, message)
        return super().reshape(value, want)


def _fitted(dims: DimTable, op: Operation, a: TensorType, b: TensorType) -> Sequence[TensorType]:
    """The results' types where sizes that are not proved to fit do. Raises ``OpError`` for sizes that never fit."""
    left, right = list(a.shape), list(b.shape)
    pairs = [(axis, axis) for axis in range(-min(len(left), len(right)), 0)]
    if op is MATMUL:
        pairs = [*pairs[:-2], (-1, -2)]
    for i, j in pairs:
        is_broadcast = i == j and (dims.is_one(left[i]) or dims.is_one(right[j]))
        if not is_broadcast and dims.equal(left[i], right[j]) is None:
            right[j] = left[i]
    return op.infer(Inference(op.attributes(), (a, b.with_shape(tuple(right))), dims))


# --- Lowerings of the operators that a user names to primitive operations


def operator_of(node: Node) -> str:
    """The ONNX operator of a node, with its domain if that is not ONNX's own: ``com.microsoft.Gelu``."""
    if node.origin is not None:
        return domains.operator_of(node.origin.proto)
    a = node.attributes
    return a.full_name if isinstance(a, OpaqueAttributes) else title_of(node)


def given(node: Node, name: str, default: Any) -> Any:
    """The attribute of an imported node of an operator that the language lacks."""
    value = attribute_of(node, name, default)
    return value.decode() if isinstance(value, bytes) else value


def operand(operands: Sequence[Term | None], index: int) -> Term | None:
    """The operand of that number; None where it is left out."""
    return operands[index] if index < len(operands) else None


def decomposes(
    *operators: str, roots: Sequence[Operation] = (), gives: str = REASSOCIATES
) -> Callable[[Function], type[NodeRule]]:
    """Make a function the decomposition of nodes of ONNX operators that the user names.

    With ``roots`` it is about nodes of these alone: opaque ones only where ``OPAQUE`` is one of them.
    """
    onnx = operators if not roots or OPAQUE in roots else ()
    facts: dict[str, Any] = {"operators": operators, "may_not_fit": True, "builder": _builder, "describe": _operator}
    return lowers(*roots, onnx=onnx, offered=_named, gives=gives, **facts)


def _named(rule: Any, node: Node, graph: Graph) -> bool | Miss:
    name = operator_of(node)
    if name not in rule.operators or name not in rule.context.options.decompose:
        return False
    used = [value for value in node.results if value.uses]
    if any(v is not None and v.type.dtype is FOREIGN for v in (*node.operands, *used)):
        return Miss("the type of an operand or a result is not known")
    return True


def _builder(rule: NodeRule, graph: Graph) -> OpenSketch:
    return OpenSketch(graph, rule.capabilities, rule)


def _operator(rule: NodeRule, match: Any) -> str:
    return operator_of(match.root)


# --- Elementwise functions by their declared form, and the operators of ``com.microsoft`` that are one with a bias

_DECLARED = tuple([op for op in UNARY if op.composed is not None])
#: Forms of GELU, and whether each is the approximation.
_GELUS = {f"{MICROSOFT}.Gelu": "none", f"{MICROSOFT}.BiasGelu": "none", f"{MICROSOFT}.FastGelu": "tanh"}
#: x * sigmoid(alpha * x), and the default of alpha.
_SWISHES = {"Swish": 1.0, f"{MICROSOFT}.QuickGelu": 1.702}


@decomposes(*[op.onnx for op in _DECLARED if op.onnx], *_GELUS, *_SWISHES, roots=(*_DECLARED, OPAQUE))
def decompose_elementwise(e: Sketch, node: Node, x: Term, bias: Term | None = None) -> Lowered:
    """An elementwise function becomes the operations that its declaration writes it in."""
    kind, dtype = operator_of(node), x.dtype
    if kind in _GELUS and bias is not None:
        x = x + bias
    x = x.widened()
    if kind in _SWISHES:
        alpha = given(node, "alpha", _SWISHES[kind])
        return (x * e.sigmoid(x if alpha == 1 else x * alpha)).cast(dtype)
    if kind in _GELUS:
        return e.composed(GELU, x, GeluAttributes(approximate=_GELUS[kind])).cast(dtype)
    assert isinstance(node.op, UnaryOperation)
    return e.composed(node.op, x, node.attributes).cast(dtype)


# --- Softmax, hardmax and the reductions that are a plain sum of something


@decomposes("Softmax", "LogSoftmax", roots=(SOFTMAX, LOG_SOFTMAX))
def decompose_softmax(e: Sketch, node: Node, x: Term) -> Lowered:
    """A softmax becomes a maximum, powers, their sum and a quotient; its logarithm subtracts the sum's logarithm.

    A group without elements is an error for ReduceMax on some runtimes.
    """
    axes = axes_of(node)
    return softmax(e, node.op, x.widened(), axes).cast(x.dtype) if axes else Miss("it is over no axis")


_NOT_PLAIN = tuple([op for op in REDUCTIONS if op.before or op.after])


@decomposes(*[op.onnx for op in _NOT_PLAIN], roots=_NOT_PLAIN)
def decompose_reduction(e: Sketch, node: Node, x: Term) -> Lowered:
    """A norm, a sum of squares or a logarithm of a sum becomes a plain sum between elementwise operations.

    Of a logarithm of a sum of exponentials the maximum is taken out first.
    """
    record = node.attributes_as(ReduceAttributes)
    if not record.axes:
        return Miss("it is over no axis")
    if node.op is REDUCE_LOG_SUM_EXP:
        return log_sum_exp(e, x, record.axes).with_ones(node.result.shape)
    return total_in_parts(e, reduction_of(node), x.widened(), record).cast(x.dtype)


@decomposes("Hardmax", roots=(HARDMAX,), gives=EXACT)
def decompose_hardmax(e: Sketch, node: Node, x: Term) -> Lowered:
    """A hardmax becomes argmax and one_hot."""
    axes, shape = axes_of(node), x.shape
    if not axes or axes != tuple(range(axes[0], axes[-1] + 1)):
        return Miss("its axes are not neighbours")
    axis, size = axes[0], product([shape[a] for a in axes])
    x = x.reshape((*shape[:axis], size, *shape[axes[-1] + 1 :]))  # one axis of all
    index = e.argmax(x, axes=(axis,), ties="first", dtype=i64, keepdims=False)
    return e.one_hot(index, depth=size, axis=axis, on=1, off=0, dtype=x.dtype).reshape(shape)


# --- Matrix products with more around them: Gemm and Einsum


@decomposes("Gemm")
def decompose_gemm(e: Sketch, node: Node, a: Term, b: Term, c: Term | None = None) -> Lowered:
    """A Gemm becomes a matrix product, with transposes and factors, and the third operand is added."""
    a, b = (
        e.transpose(value, perm=(1, 0)) if given(node, flag, 0) else value
        for value, flag in ((a, "transA"), (b, "transB"))
    )
    out = _times(e.matmul(a, b), given(node, "alpha", 1.0))
    return out if c is None else out + _times(c, given(node, "beta", 1.0))


def _times(value: Term, factor: float) -> Term:
    return value if factor == 1 else value * factor


@decomposes("Einsum")
def decompose_einsum(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """An Einsum becomes matrix products and elementwise products of two operands at a time, sums and transposes."""
    text = str(given(node, "equation", ""))
    equation = Equation.parse(text)
    if equation is None:
        return Miss("its equation {0} has an ellipsis or a letter twice in a term", (text,))
    sizes = letter_sizes(equation, operands)
    if isinstance(sizes, Miss):
        return sizes
    value, term = operands[0], equation.terms[0]
    for index in range(1, len(operands)):
        later = set("".join((*equation.terms[index + 1 :], equation.result)))
        other = equation.terms[index]
        kept = "".join(letter for letter in dict.fromkeys(term + other) if letter in later)
        step = Equation((term, other), kept)
        value, term = _pair(e, [value, operands[index]], step, sizes), kept
    return _summed(e, value, term, equation.result)


def _pair(e: Sketch, operands: Sequence[Term], step: Equation, sizes: dict[str, Dim]) -> Term:
    """One product of two operands: of matrices where a letter of both is summed, else element by element."""
    if any(letter in step.terms[0] and letter in step.terms[1] for letter in step.summed):
        return product_of_letters(e, operands, step, sizes)
    letters = "".join(dict.fromkeys("".join(step.terms)))
    wide = []
    for value, term in zip(operands, step.terms, strict=True):
        own = "".join(letter for letter in letters if letter in term)
        shape = tuple([sizes[letter] if letter in term else 1 for letter in letters])
        wide.append(value.transposed([term.index(letter) for letter in own]).reshape(shape))
    return _summed(e, wide[0] * wide[1], letters, step.result)


def _summed(e: Sketch, value: Term, term: str, wanted: str) -> Term:
    """The sum over the letters that are not wanted, with axes in the order of the letters that are."""
    axes = [axis for axis, letter in enumerate(term) if letter not in wanted]
    if axes:
        value = e.sum(value, axes, keepdims=False)
    kept = [letter for letter in term if letter in wanted]
    return value.transposed([kept.index(letter) for letter in wanted])


# --- Normalizations over the last axes, over channels, over groups of channels, and over given axes

_SKIP, _SKIP_SIMPLIFIED = f"{MICROSOFT}.SkipLayerNormalization", f"{MICROSOFT}.SkipSimplifiedLayerNormalization"
#: The operand that is the bias added to the skip, and the default of epsilon there.
_SKIP_BIAS = {_SKIP: 4, _SKIP_SIMPLIFIED: 3}
_SKIP_EPSILON = 1e-12
_F32 = 1


@decomposes(
    "LayerNormalization",
    "RMSNormalization",
    "SimplifiedLayerNormalization",
    *_SKIP_BIAS,
    roots=(LAYER_NORM, RMS_NORM, OPAQUE),
)
def decompose_layer_norm(e: Sketch, node: Node, x: Term, *more: Term | None) -> Lowered:
    """A layer or RMS normalization becomes means, a root and a quotient, with its scale and bias.

    The variance is the mean of squares of what is left of the mean, not a difference of means, which loses digits. A
    skip is added first. f16 is computed in f32, as the operators do.
    """
    if node.op is OPAQUE and given(node, "stash_type", _F32) != _F32:
        return Miss("its statistics are not f32")
    kind = operator_of(node)
    is_skip, is_simple = kind in _SKIP_BIAS, "Simplified" in kind or node.op is RMS_NORM or kind[:3] == "RMS"
    axis, epsilon = _record(node, _SKIP_EPSILON if is_skip else 1e-5)
    if is_skip:
        for other in (operand(more, _SKIP_BIAS[kind] - 1), more[0]):
            x = x if other is None else x + other
        more = more[1:]
    scale, bias = more[0], None if is_simple else operand(more, 1)
    assert scale is not None
    axes = range(axis, x.rank)
    out, mean, spread = affine_norm(e, x.widened(), axes, epsilon, scale, bias, centre=not is_simple)
    inverse = e.reciprocal(spread) if any(v.uses for v in node.results[1:]) else spread
    out = out.cast(node.results[0].type.dtype)
    if is_simple and not is_skip:
        return [out, inverse][: len(node.results)]
    return [out, inverse if mean is None else mean, inverse, x][: len(node.results)]


def _record(node: Node, epsilon: float) -> tuple[int, float]:
    """The first of the normalized axes, and the epsilon."""
    if node.op is not OPAQUE:
        a = node.attributes_as(NormAttributes)
        return a.axis, a.epsilon
    axis = int(given(node, "axis", -1))
    return axis % node.operand(0).type.rank, given(node, "epsilon", epsilon)


_GROUP = f"{MICROSOFT}.GroupNorm"
#: GroupNormalization has a scale and a bias for each channel from here on, and for each group before.
_CHANNEL_OPSET = 21


@decomposes("InstanceNormalization", "GroupNormalization", _GROUP)
def decompose_channel_norm(e: Sketch, node: Node, x: Term, scale: Term, bias: Term) -> Lowered:
    """A normalization of each channel, or group of channels, becomes means, a root and a quotient.

    The scale and the bias belong to the channels, or, of GroupNormalization up to opset 20, of the groups.
    """
    kind, rank, dtype = operator_of(node), x.rank, x.dtype
    if rank < 3:
        return Miss("its operand has {0} axes", (rank,))
    if given(node, "stash_type", _F32) != _F32:
        return Miss("its statistics are not f32")
    if any(v.uses for v in node.results[1:]):
        return Miss("its further results are used")
    groups, epsilon = given(node, "groups" if kind == _GROUP else "num_groups", None), given(node, "epsilon", 1e-5)
    is_last = kind == _GROUP and bool(given(node, "channels_last", 1))
    if is_last:
        x = e.transpose(x, perm=(0, rank - 1, *range(1, rank - 1)))
    x = x.widened()
    factors = [v.cast(x.dtype) for v in (scale, bias)]
    if groups is None:
        out = _affine(normalized(e, x, range(2, rank), epsilon), factors)
    else:
        grouped: tuple[Dim, ...] = (x.shape[0], groups, floordiv(product(x.shape[1:]), groups))
        out = normalized(e, x.reshape(grouped), (2,), epsilon)
        is_by_group = kind != _GROUP and e.graph.opset < _CHANNEL_OPSET
        out = _affine(out, factors).reshape(x.shape) if is_by_group else _affine(out.reshape(x.shape), factors)
    if kind == _GROUP and given(node, "activation", 0):
        out = out * e.sigmoid(out)
    out = out.cast(dtype)
    return e.transpose(out, perm=(0, *range(2, rank), 1)) if is_last else out


def _affine(x: Term, factors: Sequence[Term]) -> Term:
    """The value times a scale plus a bias along the axis 1."""
    scale, bias = (_by_channel(v, x.rank) for v in factors)
    return x * scale + bias


def _by_channel(x: Term, rank: int) -> Term:
    return x.reshape((x.shape[0], *[1] * (rank - 2)))


@decomposes("BatchNormalization")
def decompose_batch_norm(e: Sketch, node: Node, x: Term, *factors: Term) -> Lowered:
    """A BatchNormalization of inference becomes a product and a sum with numbers of each channel."""
    if given(node, "training_mode", 0) or any(v.uses for v in node.results[1:]):
        return Miss("it trains")
    if given(node, "spatial", 1) != 1 or x.rank < 2:
        return Miss("it is not by channel")
    wide = x.widened()
    scale, bias, mean, variance = (_by_channel(v.cast(wide.dtype), x.rank) for v in factors)
    factor = scale / e.sqrt(variance + given(node, "epsilon", 1e-5))
    offset = bias - mean * factor
    return (wide * factor + offset).cast(node.results[0].type.dtype)


#: ONNX's definition of MeanVarianceNormalization adds it to the deviation.
_MVN_EPSILON = 1e-9


@decomposes("LpNormalization", "MeanVarianceNormalization", roots=(LP_NORM, OPAQUE))
def decompose_axes_norm(e: Sketch, node: Node, x: Term) -> Lowered:
    """A mean-variance normalization, or a division by an Lp norm, becomes its means, or its norm, and a quotient."""
    wide = x.widened()
    if node.op is LP_NORM:
        a = node.attributes_as(LpNormAttributes)
        return lp_norm(e, wide, a.axis, a.p).cast(x.dtype)
    axes = sorted({int(axis) % x.rank for axis in given(node, "axes", (0, 2, 3))})
    rest, _ = centred(e, wide, axes)
    return (rest / (deviation(e, rest, axes, 0.0) + _MVN_EPSILON)).cast(x.dtype)


# --- Attention of ``com.microsoft`` (onnxruntime, docs/ContribOperators.md)

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


RULES: Sequence[type[Any]] = rules_of(globals())
#: Operators that ONNX's own definition decomposes.
DEFINED = ("Attention", "RotaryEmbedding")
#: Every operator that can be decomposed, with its domain if that is not ONNX's own.
OPERATORS: tuple[str, ...] = tuple(sorted({*DEFINED, *[name for rule in RULES for name in rule.operators]}))


class Decompose(RewritePass, frozen=True):
    """The only pass of ``dmlc decompose``: all other nodes stay as the model has them."""

    name: ClassVar[str] = "decompose"
    summary: ClassVar[str] = "Write the named operators in primitive ones."
    rewrite_class: ClassVar[str] = REASSOCIATES

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return RULES
