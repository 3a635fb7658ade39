"""Operations on indices, tensors made from attributes alone, and matrix products."""

from __future__ import annotations

import numpy as np

from dmlc.codegen.onnx.emitter import Emitter
from dmlc.codegen.onnx.registry import Lowering, lowers
from dmlc.codegen.onnx.writer import tensor_proto
from dmlc.ir import DimExpr, DType, Node, Operation, Shape, Value
from dmlc.ir.dtype import bool_, f16, f32, f64, i64, u64
from dmlc.ops import index as i
from dmlc.ops.constant import constant_of
from dmlc.ops.literals import attribute_array
from dmlc.ops.matmul import MATMUL

_NAMES: dict[Operation, str] = {
    i.GATHER_ELEMENTS: "GatherElements",
    i.SCATTER_ELEMENTS: "ScatterElements",
}


def _indexed(op_type: str) -> Lowering:
    def lower(emitter: Emitter, node: Node) -> str:
        axis = node.attributes_as(i.IndexAttributes).axis
        return emitter.op(op_type, [emitter.of(v) for v in node.operands], axis=axis)

    return lower


for _op, _name in _NAMES.items():
    lowers(_op)(_indexed(_name))


@lowers(i.GATHER)
def gather(emitter: Emitter, node: Node) -> str:
    """Gather, or GatherND of one coordinate where batch axes run together; `compose` leaves only those that it is."""
    a = node.attributes_as(i.GatherAttributes)
    x, indices = node.operand("x"), node.operand("i")
    if a.batch_axes == 0:
        return emitter.op("Gather", [emitter.of(x), emitter.of(indices)], axis=a.axis)
    known = constant_of(indices)
    if known is not None:
        places = emitter.array(known.array[..., np.newaxis], i64)
    else:
        one = (*indices.shape, 1)
        places = emitter.squeeze("Unsqueeze", emitter.of(indices), [indices.type.rank], indices.shape, one)
    return emitter.op("GatherND", [emitter.of(x), places], batch_dims=a.batch_axes)


@lowers(i.ONE_HOT)
def one_hot(emitter: Emitter, node: Node) -> str:
    """OneHot of a type that ONNX Runtime has, cast where that is exact; else a bool one-hot chooses the values."""
    a = node.attributes_as(i.OneHotAttributes)
    indices = _signed(emitter, node)
    pair = np.stack([attribute_array(v, a.dtype, None) for v in (a.off, a.on)])
    home = _home(a.dtype, pair)
    if home is not None:
        values = emitter.array(pair.astype(home.numpy), home)
        return emitter.cast(_hot(emitter, node, indices, values, home), a.dtype, have=home)
    if a.dtype is bool_:
        return _is_hot(emitter, node, indices, pair)
    off, on = [emitter.array(v, a.dtype) for v in pair]
    return emitter.op("Where", [_is_hot(emitter, node, indices, np.array([0, 1])), on, off])


def _is_hot(emitter: Emitter, node: Node, indices: str, pair: np.ndarray) -> str:
    """A one-hot of bool, by a comparison: DirectML's cast to bool is not to be relied on."""
    hot = _hot(emitter, node, indices, emitter.array(pair.astype(np.int64), i64), i64)
    return emitter.op("Equal", [hot, emitter.scalar(1, i64)])


def _hot(emitter: Emitter, node: Node, indices: str, values: str, dtype: DType) -> str:
    """OneHot; ONNX Runtime wants indices of rank 1 or more, so a scalar goes through one row."""
    a = node.attributes_as(i.OneHotAttributes)
    if node.operand("indices").type.rank > 0:
        return emitter.op("OneHot", [indices, emitter.size(a.depth), values], axis=a.axis)
    row = emitter.reshape(indices, (), (1,), i64)
    hot = emitter.op("OneHot", [row, emitter.size(a.depth), values], axis=-1)
    return emitter.reshape(hot, (1, a.depth), (a.depth,), dtype)


def _home(dtype: DType, pair: np.ndarray) -> DType | None:
    """The type for OneHot's values: one that it takes, and that casts to ``dtype`` without loss; else None."""
    if dtype is bool_:
        return None
    if dtype in (f16, f32):
        return f32
    if dtype is f64:
        with np.errstate(over="ignore"):
            return f32 if np.array_equal(pair.astype(np.float32).astype(np.float64), pair, equal_nan=True) else None
    return i64


def _signed(emitter: Emitter, node: Node) -> str:
    """The indices in i64. A u64 beyond its range is out of range and must not count from the end."""
    indices = node.operand("indices")
    have = indices.type.dtype
    name = emitter.cast(emitter.of(indices), i64, have=have)
    if have is not u64:
        return name
    zero, far = emitter.scalar(0, i64), emitter.scalar(np.iinfo(np.int64).max, i64)
    return emitter.op("Where", [emitter.op("Less", [name, zero]), far, name])


@lowers(i.IOTA)
def iota(emitter: Emitter, node: Node) -> str:
    """Counted in i64: Range adds its step again and again, which floats would round each time."""
    a = node.attributes_as(i.IotaAttributes)
    if isinstance(a.length, int) and i.is_written((a.length,)):
        return emitter.array(np.arange(a.length), a.dtype)
    limits = [emitter.scalar(0, i64), emitter.size_scalar(a.length), emitter.scalar(1, i64)]
    return emitter.cast(emitter.op("Range", limits), a.dtype, have=i64)


@lowers(i.FULL)
def full(emitter: Emitter, node: Node) -> str:
    a = node.attributes_as(i.FullAttributes)
    if isinstance(a.value, DimExpr):
        if a.dtype is i64 and not a.shape:
            return emitter.size_result(a.value)
        size = emitter.cast(emitter.size_scalar(a.value), a.dtype, have=i64)
        return emitter.op("Expand", [size, emitter.sizes(a.shape)]) if a.shape else size
    value = attribute_array(a.value, a.dtype, "value")
    if i.is_written(a.shape):
        return emitter.array(np.broadcast_to(value, [size for size in a.shape if isinstance(size, int)]), a.dtype)
    return emitter.op("ConstantOfShape", [emitter.sizes(a.shape)], value=tensor_proto(value.reshape(1)))


# --- Matrix products


@lowers(MATMUL)
def matmul(emitter: Emitter, node: Node) -> str:
    """ONNX's MatMul has NumPy's rules. Sizes of 0 need care, as ONNX Runtime's CPU provider fails on them or leaves the
    result unwritten: a contraction that may be over nothing gets one more product, of zeros."""
    left, right = node.operand("a"), node.operand("b")
    a, b = emitter.of(left), emitter.of(right)
    smallest = emitter.graph.dims.interval
    if smallest(left.shape[-1])[0] <= 0:
        a, b = _longer(emitter, a, left, -1), _longer(emitter, b, right, -2 if right.type.rank > 1 else -1)
    vectors = left.type.rank == right.type.rank == 1
    if vectors or all(smallest(size)[0] > 0 for size in node.result.shape):
        return emitter.op("MatMul", [a, b])
    return _without_elements(emitter, node, a, b)


def _longer(emitter: Emitter, name: str, value: Value, axis: int) -> str:
    rank = value.type.rank
    pads = [0] * (2 * rank)
    pads[2 * rank + axis] = 1
    return emitter.op("Pad", [name, emitter.ints(pads), emitter.scalar(0, value.type.dtype)])


def _without_elements(emitter: Emitter, node: Node, a: str, b: str) -> str:
    """Emit MatMul for a result that may be empty, with both operands brought to the full form.

    The provider fails on an empty result if it has to broadcast an operand, or if the right one is a vector.
    """
    left, right = node.operand("a").shape, node.operand("b").shape
    squeezed = []
    if len(left) == 1:
        a, left = emitter.squeeze("Unsqueeze", a, [0], left, (1, *left)), (1, *left)
        squeezed.append(-2)
    if len(right) == 1:
        b, right = emitter.squeeze("Unsqueeze", b, [1], right, (*right, 1)), (*right, 1)
        squeezed.append(-1)
    batch: Shape = node.result.shape[: max(len(left), len(right)) - 2]
    if (*batch, *left[-2:]) != left:
        a = emitter.op("Expand", [a, emitter.sizes((*_missing(batch, left), 1, 1))])
    if len(right) > 2 and (*batch, *right[-2:]) != right:
        b = emitter.op("Expand", [b, emitter.sizes((*_missing(batch, right), 1, 1))])
    out = emitter.op("MatMul", [a, b])
    if not squeezed:
        return out
    axes = [axis + len(batch) + 2 for axis in squeezed]
    full = (*batch, left[-2], right[-1])
    return emitter.squeeze("Squeeze", out, axes, full, node.result.shape)


def _missing(batch: Shape, shape: Shape) -> Shape:
    """The batch sizes to which an operand is expanded: 1 for those that it has, so that none of them is computed."""
    own = (*[None] * (len(batch) + 2 - len(shape)), *shape[:-2])
    return tuple([1 if size == mine else size for size, mine in zip(batch, own, strict=True)])
