"""Cost of one node on the device: its dispatches, and the bytes that it reads and writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from math import prod

from onnx import NodeProto

from dmlc.ir import Dim, product, summed
from dmlc.onnx_schema.domains import plain_domain
from dmlc.onnx_schema.einsum import Equation
from dmlc.placement.values import ValueScope, attribute
from dmlc.targets import dispatch_row, dispatches
from dmlc.targets.activations import takes_activation
from dmlc.targets.provider import Provider

# --- Activations that the DirectML provider computes within the node before them, in a graph


def fused_activation(host: NodeProto, scope: ValueScope) -> NodeProto | None:
    """Return the activation that the provider fuses into a node, or None.

    The provider does not ask if the result of the node is an output of the graph.
    """
    if plain_domain(host.domain) or len(host.output) != 1:
        return None
    users = scope.users.get(host.output[0], ())
    if len(users) != 1 or len(users[0].input) != 1 or plain_domain(users[0].domain):
        return None
    return users[0] if takes_activation(host.op_type, len(host.input), users[0].op_type) else None


def host_of(activation: NodeProto, scope: ValueScope) -> NodeProto | None:
    """Return the node that the provider fuses an activation into, or None."""
    host = scope.made_by.get(activation.input[0]) if len(activation.input) == 1 else None
    return host if host is not None and fused_activation(host, scope) is activation else None


#: Operators that read no more of their first operand than they write.
_READ_IN_PART = frozenset(("Gather", "GatherElements", "GatherND", "Slice"))


def total(values: Iterable[Dim | None]) -> Dim | None:
    """The sum; None where a value is not known."""
    counts = Counter(values)
    return None if None in counts else summed([(value, count) for value, count in counts.items() if value is not None])


def node_dispatches(node: NodeProto, scope: ValueScope, provider: Provider) -> Dim | None:
    """The dispatches of a node on a provider; None where they depend on sizes that are not known.

    An activation that the provider computes within the node before it has none.
    """
    if provider.fuses and host_of(node, scope) is not None:
        return 0
    table = provider.dispatches
    special = _SPECIAL.get(table, {}).get(node.op_type)
    known = None if special is None else special(node, scope)
    if known is not None:
        return known if known != _UNKNOWN else None
    shape = scope.of(node.input[0]).shape if node.input else None
    count = dispatches(node.op_type, shape, _axes(node, shape is None or len(shape), scope), table)
    more = dispatch_row(node.op_type, table).operands
    if count is None or not more:
        return count
    return count + sum(more.get(str(index), 0) for index, name in enumerate(node.input) if name)


def _of_einsum(node: NodeProto, scope: ValueScope) -> int | None:
    equation = Equation.parse(str(attribute(node, "equation")))
    return 1 if equation is not None and equation.is_one_operator else None


def _of_cast(node: NodeProto, scope: ValueScope) -> int | None:
    """A cast to bool is a cast to bytes and a clip (onnxruntime, DmlOperatorCast.cpp)."""
    is_truth = scope.of(node.output[0]).dtype == "bool" and scope.of(node.input[0]).dtype != "bool"
    return 2 if is_truth else None


def _of_many(node: NodeProto, scope: ValueScope) -> int | None:
    """Operators of two operands, one after another (onnxruntime, DmlOperatorElementWise.cpp)."""
    return max(len(node.input) - 1, 1)


def _of_mean(node: NodeProto, scope: ValueScope) -> int | None:
    """A mean of two is one operator; of more, their sum and a scale."""
    return len(node.input) if len(node.input) > 2 else 1


def _of_quick_gelu(node: NodeProto, scope: ValueScope) -> int | None:
    return 2 if attribute(node, "alpha") == 1 else None


def _of_group_attention(node: NodeProto, scope: ValueScope) -> int | None:
    """Attention, a fill for more than one token, and casts of f16 (onnxruntime, DmlOperatorGroupQueryAttention.cpp)."""
    query = scope.of(node.input[0])
    fill = query.shape is None or len(query.shape) < 2 or query.shape[1] != 1
    return 1 + fill + 6 * (query.dtype == "f16")


def _of_attention(node: NodeProto, scope: ValueScope) -> int | None:
    """Five operators where values have another size (onnxruntime, DmlOperatorAttention.cpp)."""
    sizes = attribute(node, "qkv_hidden_sizes")
    return 5 if isinstance(sizes, (list, tuple)) and len(sizes) == 3 and sizes[2] != sizes[0] else None


def _of_rotary_embedding(node: NodeProto, scope: ValueScope) -> int | None:
    """Two operators more for one position that all share, and for a part that is not rotated (onnxruntime,
    DmlOperatorRotaryEmbedding.cpp)."""
    positions = scope.of(node.input[1]).shape if len(node.input) > 1 else None
    is_shared = positions is not None and len(positions) < 2
    return 10 + 2 * is_shared + 2 * bool(attribute(node, "rotary_embedding_dim"))


def _of_sort(node: NodeProto, scope: ValueScope) -> int | None:
    """A transpose before and two behind it where the axis is not the last one. Longer rows than a workgroup sorts are
    sorted by steps over the whole, padded to a power of 2."""
    shape = scope.of(node.input[0]).shape
    axis = _axes(node, len(shape), scope) if shape else None
    size = shape[axis[0]] if shape and axis else None
    if not shape or not axis or not isinstance(size, int):
        return _UNKNOWN
    levels = (size - 1).bit_length()
    sorts = 1 if size <= _SORTED_TOGETHER else levels * (levels + 1) // 2 + 2
    return sorts + 3 * (axis[0] % len(shape) != len(shape) - 1)


def _of_rotation(node: NodeProto, scope: ValueScope) -> int | None:
    """ONNX's operator counts the positions that it is not given."""
    return 2 if not node.domain and not any(node.input[3:4]) else None


def _of_recurrence(node: NodeProto, scope: ValueScope) -> int | None:
    """A dispatch for each step of each direction. LSTM also copies the states that it is given and that it gives."""
    shape, directions = scope.of(node.input[0]).shape, 1 + (attribute(node, "direction") == "bidirectional")
    if not shape or not isinstance(shape[0], int):
        return _UNKNOWN
    states = (*node.input[5:7], *node.output[1:3]) if node.op_type == "LSTM" else ()
    return shape[0] * directions + sum(map(bool, states))


def _of_conv(node: NodeProto, scope: ValueScope) -> int | None:
    """A convolution without groups, over one or two axes, transposes weights that the session did not prepare; one of
    single elements is a product."""
    row = dispatch_row(node.op_type, "webgpu_dispatch")
    x, w = (scope.of(name).shape for name in node.input[:2])
    if x is None or w is None or x[1] != w[1] or set(w[2:]) == {1} or len(w) > _PREPARED_AXES:
        return row.count
    pads_itself = attribute(node, "auto_pad") not in (None, "NOTSET")
    is_prepared = len(w) == _PREPARED_AXES and node.input[1] in scope.constant and not pads_itself
    return row.count + row.unprepared * (not is_prepared)


def _of_reduction(node: NodeProto, scope: ValueScope) -> int | None:
    """A reduction of few elements to many is one dispatch over any axes (onnxruntime, webgpu/reduction_ops.cc)."""
    x, y = scope.of(node.input[0]), scope.of(node.output[0])
    if not (x.static and y.static):
        return None
    before, after = (prod(size for size in value.shape or () if isinstance(size, int)) for value in (x, y))
    return 1 if before < after * _FEW and after > _MANY else None


#: The axes of weights that it prepares.
_PREPARED_AXES = 4
#: The count of a node that depends on a size that is not known.
_UNKNOWN = -1
#: The longest row that the WebGPU provider sorts in one dispatch.
_SORTED_TOGETHER = 2048
#: It reduces fewer elements than these, to more than these, without a transpose before.
_FEW, _MANY = 32, 1024
#: Operators whose count depends on more than the axes, by table; a result of None leaves it to that table.
_SPECIAL: Mapping[str, Mapping[str, Callable[[NodeProto, ValueScope], int | None]]] = {
    "dispatch": {
        "Attention": _of_attention,
        "Cast": _of_cast,
        "CastLike": _of_cast,
        "Einsum": _of_einsum,
        "GroupQueryAttention": _of_group_attention,
        "Max": _of_many,
        "Mean": _of_mean,
        "Min": _of_many,
        "QuickGelu": _of_quick_gelu,
        "RotaryEmbedding": _of_rotary_embedding,
        "Sum": _of_many,
    },
    "webgpu_dispatch": {
        **dict.fromkeys(("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax"), _of_reduction),
        **dict.fromkeys(("ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"), _of_reduction),
        "Conv": _of_conv,
        "FusedConv": _of_conv,
        "GRU": _of_recurrence,
        "LSTM": _of_recurrence,
        "Max": _of_many,
        "Min": _of_many,
        "RotaryEmbedding": _of_rotation,
        "TopK": _of_sort,
    },
}


def _axes(node: NodeProto, rank: int | bool, scope: ValueScope) -> list[int] | None:
    """The axes that a node works over; None where they are not known."""
    given = {a.name: a for a in node.attribute}
    if node.op_type in ("Softmax", "TopK"):
        return [given["axis"].i if "axis" in given else -1]
    if "axes" in given:
        return list(given["axes"].ints)
    if len(node.input) > 1 and node.input[1]:
        numbers = scope.numbers(node.input[1])
        return None if numbers is None else list(numbers)
    return None if rank is True else list(range(rank))


def node_bytes(node: NodeProto, scope: ValueScope, provider: Provider) -> Dim | None:
    """The bytes that a node reads and writes; None where a size is not known. An operand that it takes twice is read
    once. Bytes between the dispatches of a node count too."""
    if provider.fuses and host_of(node, scope) is not None:
        return 0
    operands, results = [[name for name in names if name] for names in (node.input, node.output)]
    if node.op_type in _READ_IN_PART:
        operands = [*results[:1], *operands[1:]]
        return total([scope.of(name).bytes for name in (*operands, *results)])
    moved = [scope.of(name).bytes for name in dict.fromkeys((*operands, *results))]
    return total([*moved, *(_between(node, scope) if provider.fuses else ())])


def _between(node: NodeProto, scope: ValueScope) -> list[Dim | None]:
    """The bytes that one dispatch of a node writes and another reads, each twice."""
    if node.op_type == "Einsum":
        return [_product_bytes(node, scope)] * 2
    if node.op_type in ("Max", "Mean", "Min", "Sum"):
        return [scope.of(node.output[0]).bytes] * (2 * max(len(node.input) - 2, 0))
    if node.op_type in ("Cast", "CastLike") and _of_cast(node, scope):
        return [scope.of(node.output[0]).bytes] * 2
    return []


def _product_bytes(node: NodeProto, scope: ValueScope) -> Dim | None:
    """The bytes of the product of all letters of an Einsum that is not one operator."""
    equation = Equation.parse(str(attribute(node, "equation")))
    if equation is None or equation.is_one_operator:
        return 0
    sizes: dict[str, Dim] = {}
    for term, name in zip(equation.terms, node.input, strict=False):
        shape = scope.of(name).shape
        if shape is None or len(shape) != len(term):
            return None
        sizes.update(zip(term, shape, strict=True))
    bits = scope.of(node.output[0]).bits
    return None if bits is None else product(list(sizes.values())) * (bits // 8)
