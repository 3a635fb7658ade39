"""Repairs around QuantizeLinear and DequantizeLinear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from msgspec.structs import replace

from dmlc.ir import FOREIGN, Dim, Graph, Node, Operation, Value, product
from dmlc.ir.dtype import i8, u8
from dmlc.ops.constant import constant_of
from dmlc.ops.elementwise import LEAKY_RELU
from dmlc.ops.move import TRANSPOSE, TransposeAttributes
from dmlc.ops.normalize import SOFTMAX
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_MIN
from dmlc.passes.node_maker import Maker
from dmlc.passes.quantized_advice import LAYOUT_OPERATIONS, LAYOUT_OPERATORS, QUANTIZING, operator
from dmlc.passes.repair.foreign import element_dtype
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule

_EXTREMES: Mapping[Operation, str] = {REDUCE_MAX: "ReduceMax", REDUCE_MIN: "ReduceMin"}
_FUSED: Mapping[Operation, str] = {LEAKY_RELU: "LeakyRelu", SOFTMAX: "Softmax"}
_STEPS = 8


class KeepQuantizationApart(Rule[Match]):
    """A Softmax, LeakyRelu, Max or Min between quantizations reads the maximum of its operand with itself.

    ONNX Runtime would make a quantized node of it, of which the provider has no kernel. It does not look for Max.
    """

    name = "keep-quantization-apart"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (*_FUSED, *_EXTREMES, OPAQUE)
    repairs: ClassVar[tuple[str, ...]] = ("quantized-softmax", "quantized-extreme")

    def match(self, node: Node, graph: Graph) -> Match | None:
        fused, extreme = self.repairs
        kind = _FUSED.get(node.op) or _EXTREMES.get(node.op) or operator(node)
        failure = fused if kind in _FUSED.values() else extreme
        if self.capabilities.fault(failure, kind) is None:
            return None
        before, after = _dequantizing(node.operands[0]), _quantizing(node.results[0])
        if before is None or after is None or not _same_bytes(before, after):
            return None
        return Match(node) if failure == fused or _same_numbers(before, after) else None

    def describe(self, match: Match) -> str:
        return f"{operator(match.root) or match.root.op.name} between quantizations"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        x, *rest = root.operands
        assert x is not None
        apart = rewriter.add(OPAQUE, (x, x), OpaqueAttributes(op_type="Max", types=(x.type,)))
        return rewriter.add_node(root.op, (apart, *rest), root.attributes).results


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


class AxisForBlocks(Rule[Match]):
    """A QuantizeLinear or DequantizeLinear of blocks becomes one of an axis: a row for each block, between reshapes."""

    name = "axis-for-blocks"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    repairs: ClassVar[tuple[str, ...]] = ("quantize-blocks",)

    def match(self, node: Node, graph: Graph) -> Match | None:
        (failure,) = self.repairs
        kind = operator(node)
        if kind not in ("QuantizeLinear", "DequantizeLinear") or not attribute_of(node, "block_size", 0):
            return None
        given = [value for value in node.operands if value is not None]
        if (
            self.capabilities.fault(failure, kind) is None
            or len(given) < 2
            or any(value.type.dtype is FOREIGN for value in (*given, node.result))
        ):
            return None
        return Match(node)

    def check(self, match: Match, graph: Graph) -> Miss | None:
        x, scale = match.root.operand(0), match.root.operand(1)
        axis = _axis(match.root)
        if x.type.rank != scale.type.rank or not isinstance(x.shape[axis], int):
            return Miss("the size of its axis is not known")
        blocks, size = scale.shape[axis], attribute_of(match.root, "block_size")
        if not isinstance(blocks, int) or blocks * size != x.shape[axis]:
            return Miss("the last block is not full")
        return None

    def describe(self, match: Match) -> str:
        return f"{operator(match.root)} of blocks"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, root = Maker(rewriter), match.root
        x, *numbers = root.operands
        assert x is not None
        shape, axis, size = x.shape, _axis(root), int(attribute_of(root, "block_size"))
        blocks = int(str(shape[axis])) // size
        before, after = product(shape[:axis]), product(shape[axis + 1 :])
        rows = product((before, blocks, after))
        rows_of = [None if v is None else make.reshape(v, (rows,)) for v in numbers]
        data = _turned(make, make.reshape(x, (before, blocks, size, after)))
        a = root.attributes_as(OpaqueAttributes)
        plain = {name: value for name, value in a.attributes if name not in ("axis", "block_size")}
        record = replace(
            a,
            types=(root.result.type.with_shape((rows, size)),),
            attributes=tuple(sorted({**plain, "axis": 0}.items())),
        )
        made = rewriter.add(OPAQUE, (make.reshape(data, (rows, size)), *rows_of), record)
        split: tuple[Dim, ...] = (before, blocks, after, size)
        return [make.reshape(_turned(make, make.reshape(made, split)), shape)]


def _axis(node: Node) -> int:
    axis = int(attribute_of(node, "axis", 1))
    return axis + node.operand(0).type.rank if axis < 0 else axis


def _turned(make: Maker, value: Value) -> Value:
    """The last two of four axes in the other order; a reshape does it where one has one element."""
    first, second, third, last = value.shape
    if 1 in (third, last):
        return make.reshape(value, (first, second, last, third))
    return make(TRANSPOSE, value, attributes=TransposeAttributes(perm=(0, 1, 3, 2)))
