"""Conditions of the known faults: whether one of them holds at a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from onnx import NodeProto

from dmlc.ir import Shape, product
from dmlc.onnx_schema.domains import MICROSOFT
from dmlc.onnx_schema.einsum import Equation
from dmlc.onnx_schema.transposed_conv import TransposedAxis, transposed_axes
from dmlc.placement.costs import fused_activation, host_of
from dmlc.placement.values import KnownType, TypedNode, ValueScope, attribute, bound_of
from dmlc.targets.activations import HOSTS
from dmlc.targets.directml import LARGEST_BATCH, MEASURED_SUM
from dmlc.targets.known_wrong import channels_are_mixed
from dmlc.targets.provider import Failure, Kernel, ProviderRow

# --- Conditions of the known faults of sums in f16

#: The largest f16.
_LARGEST = 65504


def sums_many(node: TypedNode) -> bool:
    """True if each result is of more than 4096 elements."""
    x, y = node.given(0), node.results[0]
    if x is None or x.shape is None or y.shape is None or not x.static or not y.static or y.empty:
        return False
    return _count(x.shape) > MEASURED_SUM * _count(y.shape)


def _count(shape: Shape) -> int:
    count = product(shape)
    return count if isinstance(count, int) else 0


def powers_overflow(node: NodeProto, scope: ValueScope) -> bool:
    """True if nothing shows that the sum of the powers of each window is within f16."""
    bound, x = bound_of(node.input[0], scope), scope.of(node.input[0])
    exponent, window = attribute(node, "p"), attribute(node, "kernel_shape")
    sizes = window if isinstance(window, list) else list(x.shape[2:]) if x.shape is not None else None
    if bound is None or sizes is None or not all(isinstance(size, int) for size in sizes):
        return True
    power = exponent if isinstance(exponent, int) else 2
    return bool(_count(tuple(sizes)) * bound**power > _LARGEST)


# --- Conditions of the known faults around QuantizeLinear and DequantizeLinear

#: Operators that ONNX Runtime repeats a quantization behind and before (qdq_propagation.cc), and Identity, which it
#: takes out. The first operand is the data.
_PASSING = frozenset(("Identity", "MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"))
_BYTES = ("i8", "u8")
_STEPS = 8
#: The least block of 4-bit weights that ONNX Runtime makes a MatMulNBits of (DQMatMulToMatMulNBits).
_LEAST_BLOCK = 16


def is_between_quantizations(node: NodeProto, scope: ValueScope) -> bool:
    """True if it has a DequantizeLinear of bytes before it and a QuantizeLinear to such bytes behind it.

    Layout operators may be between them: ONNX Runtime repeats the quantization there.
    """
    return _quantizations(node, scope) is not None


def keeps_one_quantization(node: NodeProto, scope: ValueScope) -> bool:
    """True if a DequantizeLinear of bytes before it and a QuantizeLinear behind it have the same numbers."""
    found = _quantizations(node, scope)
    if found is None:
        return False
    before, after = found
    return len(before.input) == len(after.input) and all(
        _is_same(a, b, scope) for a, b in zip(before.input[1:], after.input[1:], strict=True)
    )


def has_blocks(node: NodeProto, scope: ValueScope) -> bool:
    """True if block_size is given, and not for 4-bit weights of a MatMul, of which ONNX Runtime makes MatMulNBits."""
    block = attribute(node, "block_size")
    return isinstance(block, int) and block > 0 and not _becomes_matmul(node, block, scope)


def _quantizations(node: NodeProto, scope: ValueScope) -> tuple[NodeProto, NodeProto] | None:
    before, after = _dequantizing(node.input[0], scope), _quantizing(node.output[0], scope)
    if before is None or after is None:
        return None
    dtype = scope.of(before.input[0]).dtype
    return (before, after) if dtype in _BYTES and scope.of(after.output[0]).dtype == dtype else None


def _dequantizing(name: str, scope: ValueScope) -> NodeProto | None:
    for _ in range(_STEPS):
        made = scope.made_by.get(name)
        if made is None or _is(made, "DequantizeLinear"):
            return made
        if made.op_type not in _PASSING or name != made.output[0]:
            return None
        name = made.input[0]
    return None


def _quantizing(name: str, scope: ValueScope) -> NodeProto | None:
    for _ in range(_STEPS):
        users = scope.users.get(name, ())
        if len(users) != 1 or name in scope.outputs or users[0].input[0] != name:
            return None
        if _is(users[0], "QuantizeLinear"):
            return users[0]
        if users[0].op_type not in _PASSING:
            return None
        name = users[0].output[0]
    return None


def _is(node: NodeProto, op: str) -> bool:
    return node.op_type == op and node.domain in ("", "ai.onnx", MICROSOFT)


def _is_same(a: str, b: str, scope: ValueScope) -> bool:
    if a == b:
        return True
    first, second = scope.floats.get(a), scope.floats.get(b)
    if first is not None and second is not None:
        return first.number == second.number
    numbers = scope.numbers(a)
    return numbers is not None and numbers == scope.numbers(b)


def _becomes_matmul(node: NodeProto, block: int, scope: ValueScope) -> bool:
    if node.op_type != "DequantizeLinear" or scope.of(node.input[0]).dtype not in ("i4", "u4"):
        return False
    fits = block >= _LEAST_BLOCK and block & (block - 1) == 0 and attribute(node, "axis") == 0
    users = scope.users.get(node.output[0], ())
    return (
        fits
        and all(name in scope.constant for name in node.input if name)
        and len(users) == 1
        and node.output[0] not in scope.outputs
        and users[0].op_type == "MatMul"
        and list(users[0].input).index(node.output[0]) == 1
    )


# --- Conditions of the known faults of ConvTranspose

#: The axes of a tensor of one spatial axis.
_LINE = 3


def pads_a_line(node: TypedNode) -> bool:
    """True if the operand has one spatial axis, and output_padding is given."""
    x = node.given(0)
    return x is not None and x.rank == _LINE and attribute(node.proto, "output_padding") is not None


def has_wrong_size(node: TypedNode) -> bool:
    """True if the result has another size than the provider expects: that of a Conv's padding, without dilations."""
    return any(axis.has_wrong_size for axis in _axes(node))


def has_wrong_start(node: TypedNode) -> bool:
    """True if output_padding changes how the padding of an output_shape is shared out."""
    return any(axis.has_wrong_start for axis in _axes(node))


def _axes(node: TypedNode) -> Sequence[TransposedAxis]:
    x, weights = node.given(0), node.given(1)
    if x is None or weights is None or x.shape is None or weights.shape is None:
        return ()
    return transposed_axes(lambda name: attribute(node.proto, name), x.shape, weights.shape) or ()


#: Operand numbers of MultiHeadAttention.
_MASK, _ATTENTION_BIAS, _PAST_KEY = 4, 5, 6
_LARGEST_SMALL = 256


# --- conditions by name, of the node itself


def _bias_broadcasts(node: TypedNode) -> bool:
    """True if an attention_bias has size 1 where the batch or the heads have more."""
    bias, query, heads = node.given(_ATTENTION_BIAS), node.given(0), attribute(node.proto, "num_heads")
    if bias is None or query is None or bias.shape is None or len(bias.shape) != 4 or not query.shape:
        return False
    return any(have == 1 != want for have, want in zip(bias.shape, (query.shape[0], heads), strict=False))


def _keys_by_head(node: TypedNode) -> bool:
    """True if keys of 4 axes meet an attention_bias, or a mask of 3 or 4 axes."""
    key, mask = node.given(1), node.given(_MASK)
    if key is None or key.rank != 4:
        return False
    return node.given(_ATTENTION_BIAS) is not None or (mask is not None and (mask.rank or 0) > 2)


def _past_and_mask(node: TypedNode) -> bool:
    """True if there are keys of the past, and a mask of 2 axes."""
    mask = node.given(_MASK)
    return node.given(_PAST_KEY) is not None and mask is not None and mask.rank == 2


def _large_batch(node: TypedNode) -> bool:
    """True if an axis before the matrices of a product is larger than DirectML takes."""
    shapes = [value.shape[:-2] for value in node.values if value.shape is not None]
    return any(isinstance(size, int) and size > LARGEST_BATCH for shape in shapes for size in shape)


def _product_of_letters(node: TypedNode) -> bool:
    """True if an Einsum is a product of all letters, larger than its operands and its result, and a sum."""
    equation = Equation.parse(str(attribute(node.proto, "equation")))
    return equation is not None and equation.has_matrices and not equation.is_one_operator


def _partial_block(node: TypedNode) -> bool:
    """True if the last block of quantized weights is not full."""
    columns, block = attribute(node.proto, "K"), attribute(node.proto, "block_size")
    return isinstance(columns, int) and isinstance(block, int) and block > 0 and columns % block != 0


def _is_one_number(node: TypedNode) -> bool:
    """True if the result is one number, without axes."""
    return node.results[0].rank == 0


def _resized_to_one(node: TypedNode) -> bool:
    """True if an axis of more than one element is resized to one."""
    x, y = node.given(0), node.results[0]
    if x is None or x.shape is None or y.shape is None:
        return False
    return any(new == 1 and isinstance(old, int) and old > 1 for old, new in zip(x.shape, y.shape, strict=False))


def _mixes_channels(node: TypedNode) -> bool:
    """True if a Conv has input channels that are a multiple of 3, more than 3 and not of 4, a multiple of 4 output
    channels, a kernel larger than 1, and no groups."""
    weights = node.given(1)
    return weights is not None and channels_are_mixed(weights.shape, attribute(node.proto, "group"))


def _reads_apart(node: TypedNode) -> bool:
    """True if the elements from the axis on are a multiple of 2 or 4, and the size of the last axis is not."""
    x, axis = node.given(0), attribute(node.proto, "axis")
    if x is None or x.shape is None or not x.static or not x.shape:
        return False
    first = axis if isinstance(axis, int) else 1
    count = product(x.shape[first % len(x.shape) :])
    parts = 4 if count % 4 == 0 else 2 if count % 2 == 0 else 1
    return x.shape[-1] % parts != 0


def _has_nothing(node: TypedNode) -> bool:
    """True if an operand has no element."""
    return any(value.empty for value in node.operands[:1])


def _has_no_axes(node: TypedNode) -> bool:
    """True if the operand with the axes is absent or empty."""
    axes = node.given(1)
    return axes is None or axes.shape == (0,)


CONDITIONS: Mapping[str, Callable[[TypedNode], bool]] = {
    "conv-channels": _mixes_channels,
    "softmax-components": _reads_apart,
    "nothing": _has_nothing,
    "no-axes": _has_no_axes,
    "bias-broadcasts": _bias_broadcasts,
    "keys-by-head": _keys_by_head,
    "past-and-mask": _past_and_mask,
    "large-batch": _large_batch,
    "product-of-letters": _product_of_letters,
    "partial-block": _partial_block,
    "pads-a-line": pads_a_line,
    "transposed-size": has_wrong_size,
    "transposed-start": has_wrong_start,
    "many-elements": sums_many,
    "one-number": _is_one_number,
    "resized-to-one": _resized_to_one,
}


# --- conditions by name, of the node among others


def is_split_gate(node: NodeProto, scope: ValueScope) -> bool:
    """True if a Mul multiplies a result of a Split by the Sigmoid of a result of the same Split.

    ONNX Runtime takes an Identity between them out before it places nodes.
    """
    if node.op_type != "Mul" or len(node.input) != 2:
        return False
    for x, gate in (node.input, node.input[::-1]):
        sigmoid, split = _maker(gate, scope), _maker(x, scope)
        if sigmoid is not None and sigmoid.op_type == "Sigmoid" and split is not None and split.op_type == "Split":
            return _maker(sigmoid.input[0], scope) is split
    return False


def _maker(name: str, scope: ValueScope) -> NodeProto | None:
    """The node that a value comes from, through any Identity."""
    for _ in range(_STEPS):
        found = scope.made_by.get(name)
        if found is None or found.op_type != "Identity" or not found.input:
            return found
        name = found.input[0]
    return None


def _loses_its_result(node: NodeProto, scope: ValueScope) -> bool:
    """True if a result of the graph goes to an activation that the provider fuses into its node."""
    return bool(node.output) and node.output[0] in scope.outputs and fused_activation(node, scope) is not None


def _is_unbounded(node: NodeProto, scope: ValueScope) -> bool:
    """True if nothing shows that what a node normalizes lies in [-512, 512]."""
    if node.op_type == "EmbedLayerNormalization":
        return True
    read = node.input[: 2 if node.op_type.startswith("Skip") else 1]
    bounds = [bound_of(name, scope) for name in read]
    return not all(bound is not None and bound <= _LARGEST_SMALL for bound in bounds)


def _has_other_epsilon(node: NodeProto, scope: ValueScope) -> bool:
    """True if another node of the operator has another epsilon."""
    own = attribute(node, "epsilon")
    others = (other for other in scope.made_by.values() if other.op_type == node.op_type)
    return any(attribute(other, "epsilon") != own for other in others)


def _may_read_nan(node: NodeProto, scope: ValueScope) -> bool:
    """True if the operand is made by an operator that gives NaN of finite numbers."""
    maker = _maker(node.input[0], scope) if node.input else None
    if maker is None or maker.op_type != "Div":
        return maker is not None and maker.op_type in _GIVE_NAN
    return maker.input[1] not in scope.constant


def _may_read_infinity(node: NodeProto, scope: ValueScope) -> bool:
    """True if the operand is masked by -infinity."""
    maker = _maker(node.input[0], scope) if node.input else None
    if maker is None or maker.op_type not in ("Add", "Where"):
        return False
    lowest = -float("inf")
    numbers = [scope.floats[name].number for name in maker.input if name in scope.floats]
    held = [found for name in maker.input if (found := scope.elements(name)) is not None]
    return lowest in numbers or any(lowest in elements.ravel().tolist() for elements in held)


#: Operators that give NaN of numbers outside their domain, and Div.
_GIVE_NAN = ("Acos", "Acosh", "Asin", "Atanh", "Log", "Pow", "Sqrt")
#: Properties of a node, its costs among them, that the nodes around it decide: two nodes with the same operands may
#: differ in them.
AROUND: Mapping[str, Callable[[NodeProto, ValueScope], bool]] = {
    "infinity": _may_read_infinity,
    "nan": _may_read_nan,
    "other-epsilon": _has_other_epsilon,
    "split-gate": is_split_gate,
    "loses-its-result": _loses_its_result,
    "unbounded": _is_unbounded,
    "between-quantizations": is_between_quantizations,
    "one-quantization": keeps_one_quantization,
    "blocks": has_blocks,
    "powers-overflow": powers_overflow,
    "within-another": lambda node, scope: host_of(node, scope) is not None,
}
_NORMS = ("LayerNormalization", "SimplifiedLayerNormalization", "InstanceNormalization", "MeanVarianceNormalization")
_SKIP_NORMS = ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization", "EmbedLayerNormalization", "GroupNorm")
_OPERATORS = {
    "infinity": frozenset(("Softmax",)),
    "nan": frozenset(("Clip", "HardSigmoid", "Relu")),
    "other-epsilon": frozenset(("InstanceNormalization",)),
    "split-gate": frozenset(("Mul",)),
    "loses-its-result": frozenset(HOSTS),
    "unbounded": frozenset((*_NORMS, *_SKIP_NORMS)),
    "between-quantizations": frozenset(("LeakyRelu", "Softmax")),
    "one-quantization": frozenset(("ReduceMax", "ReduceMin")),
    "blocks": frozenset(("DequantizeLinear", "QuantizeLinear")),
    "powers-overflow": frozenset(("GlobalLpPool", "LpPool")),
    "within-another": HOSTS["MatMul"],
}
_ASKED = {
    op: tuple([AROUND[name] for name, operators in _OPERATORS.items() if op in operators])
    for op in frozenset().union(*_OPERATORS.values())
}


def surroundings(node: NodeProto, scope: ValueScope) -> tuple[bool, ...]:
    """Return what the nodes around a node decide of its faults and its costs."""
    return tuple([holds(node, scope) for holds in _ASKED.get(node.op_type, ())])


# --- all conditions of a fault


def holds(
    failure: Failure, node: TypedNode, row: ProviderRow, kernel: Kernel, letters: list[tuple[str, KnownType]]
) -> bool:
    """Return whether all conditions of the failure hold."""
    if failure.since and kernel.since not in failure.since:
        return False
    if failure.types is not None:
        seen: dict[str, set[str | None]] = {}
        for letter, value in letters:
            seen.setdefault(letter, set()).add(value.dtype)
        if not all(seen.get(letter, set()) & types for letter, types in failure.types.items()):
            return False
    if failure.ranks_over is not None and not any((v.rank or 0) > failure.ranks_over for v in node.values):
        return False
    if failure.empty:
        is_read = any(v.empty for v in data_operands(node, row, kernel))
        if not is_read or not any(v.static and not v.empty for v in node.results):
            return False
    if failure.results_over is not None and len(node.proto.output) <= failure.results_over:
        return False
    if failure.missing and all(index < len(node.proto.input) and node.proto.input[index] for index in failure.missing):
        return False
    if failure.operands_over is not None and len(node.proto.input) <= failure.operands_over:
        return False
    if not _shapes_hold(failure, node, letters) or not _attributes_hold(failure, node):
        return False
    if not failure.when:
        return True
    around = AROUND.get(failure.when)
    return CONDITIONS[failure.when](node) if around is None else around(node.proto, node.scope)


def _shapes_hold(failure: Failure, node: TypedNode, letters: list[tuple[str, KnownType]]) -> bool:
    """Return whether the operands and results exist and have the types and shapes that the failure names."""
    inputs, outputs = ([i for i, name in enumerate(names) if name] for names in (node.proto.input, node.proto.output))
    if failure.given and failure.given.isdisjoint(inputs):
        return False
    if failure.results_given and failure.results_given.isdisjoint(outputs):
        return False
    if failure.mixed and len({v.dtype for letter, v in letters if letter in failure.mixed and v.dtype}) < 2:
        return False
    if failure.shapes_differ:
        a, b = (node.operands[i].shape for i in failure.shapes_differ)
        if a is None or b is None or not _broadcasts(a, b):
            return False
    if failure.ranks_under is not None and not (0 < (node.operands[0].rank or 0) < failure.ranks_under):
        return False
    if failure.resized_over is not None:
        x, y = node.operands[0].shape, node.results[0].shape
        if x is None or y is None or sum(a != 1 or b != 1 for a, b in zip(x, y, strict=False)) <= failure.resized_over:
            return False
    if failure.constant_scalar is None:
        return True
    index = failure.constant_scalar
    known = node.operands[index]
    return node.proto.input[index] in node.scope.constant and known.shape is not None and product(known.shape) == 1


def _broadcasts(a: Shape, b: Shape) -> bool:
    """Return whether two compatible shapes differ. Open sizes of which neither is 1 are taken as equal."""
    return len(a) != len(b) or any(m != n and (m == 1 or n == 1) for m, n in zip(a, b, strict=True))


def data_operands(node: TypedNode, row: ProviderRow, kernel: Kernel) -> list[KnownType]:
    """The operands that a DirectML operator reads: not axes, shapes and the like, which the provider reads on the CPU,
    constant or fed, and not what gives a type only."""
    named = enumerate(zip(node.proto.input, node.operands, strict=True))
    return [
        value
        for index, (name, value) in named
        if index not in kernel.constant
        and index not in row.unread
        and not (value.empty and name in node.scope.constant)
    ]


def _attributes_hold(failure: Failure, node: TypedNode) -> bool:
    if any(attribute(node.proto, name) != value for name, value in (failure.attributes or {}).items()):
        return False
    for name, value in (failure.attributes_not or {}).items():
        if attribute(node.proto, name) in (None, value):
            return False
    if any(text not in str(attribute(node.proto, name)) for name, text in (failure.contains or {}).items()):
        return False
    if failure.letters_over is not None:
        letters = {letter for letter in str(attribute(node.proto, "equation")) if letter.isalpha()}
        if len(letters) <= failure.letters_over:
            return False
    if not failure.negative:
        return True
    if failure.negative.startswith("i") and failure.negative[1:].isdecimal():
        index = int(failure.negative[1:])
        elements = node.scope.elements(node.proto.input[index]) if index < len(node.proto.input) else None
        return elements is not None and any(isinstance(e, (int, float)) and e < 0 for e in elements.ravel().tolist())
    numbers = attribute(node.proto, failure.negative)
    return isinstance(numbers, (list, tuple)) and any(n < 0 for n in numbers)
