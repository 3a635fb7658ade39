"""Repairs around QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from dmlc.ir import FOREIGN, Node, Operation, Value, product
from dmlc.ir.dtype import i8, u8
from dmlc.ops.constant import constant_of
from dmlc.ops.elementwise import LEAKY_RELU
from dmlc.ops.normalize import SOFTMAX
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_MIN
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import KEEP, Lowered, lowers
from dmlc.passes.quantized_advice import LAYOUT_OPERATIONS, LAYOUT_OPERATORS, QUANTIZING, operator
from dmlc.passes.repair.foreign import element_dtype
from dmlc.passes.rewrite import Miss

_EXTREMES: Mapping[Operation, str] = {REDUCE_MAX: "ReduceMax", REDUCE_MIN: "ReduceMin"}
_FUSED: Mapping[Operation, str] = {LEAKY_RELU: "LeakyRelu", SOFTMAX: "Softmax"}
_STEPS = 8


@lowers(*_FUSED, *_EXTREMES, OPAQUE, repairs=("quantized-softmax", "quantized-extreme"))
def keep_quantization_apart(e: Sketch, node: Node, *operands: Term | None) -> Lowered:
    """A Softmax, LeakyRelu, Max or Min between quantizations reads the maximum of its operand with itself.

    ONNX Runtime would make a quantized node of it, of which the provider has no kernel. It does not look for Max.
    """
    kind = _FUSED.get(node.op) or _EXTREMES.get(node.op) or operator(node)
    is_fused = kind in _FUSED.values()
    if e.target.fault("quantized-softmax" if is_fused else "quantized-extreme", kind) is None:
        return KEEP
    before, after = _dequantizing(node.operands[0]), _quantizing(node.results[0])
    if before is None or after is None or not _same_bytes(before, after):
        return KEEP
    x = operands[0]
    if x is None or not (is_fused or _same_numbers(before, after)):
        return KEEP
    return e.again(node, e(OPAQUE, x, x, attributes=OpaqueAttributes(op_type="Max", types=(x.type,))))


def _dequantizing(value: Value | None) -> Node | None:
    for _ in range(_STEPS):
        node = None if value is None else value.producer
        if node is None or operator(node, QUANTIZING) == "DequantizeLinear":
            return node
        if not _passes(node):
            return None
        value = node.operands[0]
    return None


def _quantizing(value: Value) -> Node | None:
    for _ in range(_STEPS):
        if len(value.uses) != 1:
            return None
        ((node, index),) = value.uses
        if index:
            return None
        if operator(node, QUANTIZING) == "QuantizeLinear":
            return node
        if not _passes(node):
            return None
        value = node.results[0]
    return None


def _passes(node: Node) -> bool:
    return node.op in LAYOUT_OPERATIONS or operator(node) in LAYOUT_OPERATORS


def _same_bytes(before: Node, after: Node) -> bool:
    data = before.operands[0]
    dtype = None if data is None else element_dtype(data)
    return dtype in (i8, u8) and dtype is element_dtype(after.results[0])


def _same_numbers(before: Node, after: Node) -> bool:
    """Return whether the two nodes have the same scale and zero point."""
    pairs = list(zip(before.operands[1:], after.operands[1:], strict=False))
    if len(before.operands) != len(after.operands):
        return False
    return all(a is b or (_data(a) is not None and _data(a) == _data(b)) for a, b in pairs)


def _data(value: Value | None) -> object:
    tensor = None if value is None else constant_of(value)
    return None if tensor is None else (tensor.array.tolist(), tensor.dtype)


@lowers(onnx=("QuantizeLinear", "DequantizeLinear"), repairs=("quantize-blocks",))
def axis_for_blocks(e: Sketch, node: Node, x: Term, scale: Term, *zeros: Term | None) -> Lowered:
    """A QuantizeLinear or DequantizeLinear of blocks becomes one of an axis: a row for each block, between reshapes."""
    size, numbers = int(attribute_of(node, "block_size", 0)), (scale, *zeros)
    dtypes = [v.dtype for v in (x, *numbers) if v is not None]
    if not size or e.target.fault("quantize-blocks", operator(node)) is None:
        return KEEP
    if FOREIGN in (*dtypes, node.result.type.dtype):
        return KEEP
    shape, axis = x.shape, _axis(node)
    if x.rank != scale.rank or not isinstance(shape[axis], int):
        return Miss("the size of its axis is not known")
    blocks = scale.shape[axis]
    if not isinstance(blocks, int) or blocks * size != shape[axis]:
        return Miss("the last block is not full")
    before, after = product(shape[:axis]), product(shape[axis + 1 :])
    rows = product((before, blocks, after))
    rows_of = [None if v is None else v.reshape((rows,)) for v in numbers]
    data = _turned(x.reshape((before, blocks, size, after))).reshape((rows, size))
    a = node.attributes_as(OpaqueAttributes)
    plain = {name: value for name, value in a.attributes if name not in ("axis", "block_size")}
    types = (node.result.type.with_shape((rows, size)),)
    record = replace(a, types=types, attributes=tuple(sorted({**plain, "axis": 0}.items())))
    made = e(OPAQUE, data, *rows_of, attributes=record)
    return _turned(made.reshape((before, blocks, after, size))).reshape(shape)


def _axis(node: Node) -> int:
    axis = int(attribute_of(node, "axis", 1))
    return axis + node.operand(0).type.rank if axis < 0 else axis


def _turned(value: Term) -> Term:
    """The last two of four axes in the other order; a reshape does it where one has one element."""
    first, second, third, last = value.shape
    return value.reshape((first, second, last, third)) if 1 in (third, last) else value.transposed((0, 1, 3, 2))
