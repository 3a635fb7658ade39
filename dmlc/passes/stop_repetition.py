"""``stop-repetition``: keeps ONNX Runtime from repeating quantizations where that crashes it or changes numbers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from dmlc.ir import DType, Graph, Node, Value
from dmlc.ir.dtype import f16, f32, f64, i32, u8
from dmlc.ops.constant import constant_of
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, node_name
from dmlc.passes.manager import Pass, PassContext
from dmlc.passes.quantized_advice import (
    LAYOUT_OPERATIONS,
    LAYOUT_OPERATORS,
    QUANTIZING,
    ends_repetition,
    keeps_numbers,
    operator,
)
from dmlc.passes.repair.foreign import element_dtype
from dmlc.passes.rewrite import merge_spans


class StopRepetition(Pass, frozen=True):
    """Insert the maximum of a value with itself between a DequantizeLinear and a layout operation.

    With its default optimizations ONNX Runtime repeats the quantization behind the layout operation. The pass stops it
    in three cases (onnxruntime, core/optimizer/qdq_transformer/qdq_propagation.cc; measured with 1.23.0
    and 1.32.0 on 2026-11-22):

    - A graph inside a node captures the result. ``InsertQDQPairs`` writes the new value to the node's declared inputs.
      A captured value is not among them, and the process ends.
    - There is no zero point, and the data is not u8: the repeated QuantizeLinear makes uint8 (issue 27845). 1.32 folds
      constants first, and at opset 21 writes the type.
    - The data is i32: QuantizeLinear makes no int32, and the model is not loaded.

    Neither ONNX Runtime's optimizations nor its fusions of quantized operators look for Max.
    """

    name: ClassVar[str] = "stop-repetition"
    summary: ClassVar[str] = "Keep ONNX Runtime from repeating quantizations where that fails."

    def run(self, graph: Graph, context: PassContext) -> bool:
        found = [node for node in graph.nodes_of((OPAQUE,)) if _is_repeated(node)]
        for node in found:
            _separate(graph, node, context)
        return bool(found)


def _is_repeated(node: Node) -> bool:
    """True if the repetition of this quantization fails."""
    return _is_scalar_quantization(node) and any(_fails(node, use) for use, _ in node.result.uses)


def _is_scalar_quantization(node: Node) -> bool:
    """True for a DequantizeLinear whose scale and zero point may be constant scalars, as the repetition requires. A
    value that a graph inside a node captures may be one."""
    if operator(node, domains=QUANTIZING) != "DequantizeLinear":
        return False
    if element_dtype(node.result) not in (f16, f32, f64):
        return False
    for value in node.operands[1:]:
        tensor = constant_of(value)
        if value is not None and (value.producer is not None if tensor is None else tensor.size != 1):
            return False
    return True


def _fails(node: Node, use: Node) -> bool:
    if not keeps_numbers(use):
        return False
    dtype, has_zero = _data_dtype(node), len(node.operands) > 2 and node.operands[2] is not None
    if (dtype is i32 or (dtype is not u8 and not has_zero)) and not ends_repetition(use):
        return True
    return any(_is_captured(value) for value in _laid_out(use))


def _data_dtype(node: Node) -> DType | None:
    """The dtype of the data, which its zero point has too."""
    known = [element_dtype(value) for value in (*node.operands[:1], *node.operands[2:3]) if value is not None]
    return next((dtype for dtype in known if dtype is not None), None)


def _laid_out(node: Node) -> Iterator[Value]:
    """The results of a layout operation and of those behind it, as far as the quantization is repeated."""
    waiting, seen = [node], {node}
    while waiting:
        node = waiting.pop()
        if ends_repetition(node):
            continue
        value = node.results[0]
        yield value
        for use, index in value.uses:
            is_layout = use.op in LAYOUT_OPERATIONS or operator(use) in LAYOUT_OPERATORS
            if index == 0 and is_layout and use not in seen:
                seen.add(use)
                waiting.append(use)


def _is_captured(value: Value) -> bool:
    return any(index in region.captures for use, index in value.uses for region in use.regions)


def _separate(graph: Graph, node: Node, context: PassContext) -> None:
    uses = [(use, index) for use, index in node.result.uses if _fails(node, use)]
    first = next(user for user in graph if any(user is use for use, _ in uses))
    record = OpaqueAttributes(op_type="Max", types=(node.result.type,))
    value = node.result
    made = graph.add(OPAQUE, (value, value), record, spans=merge_spans((node,)), history=node.history, before=first)
    for use, index in uses:
        graph.set_operand(use, index, made.result)
    names = (node_name(node), *[node_name(use) for use, _ in uses])
    text = f"Max between {names[0]} and {', '.join(names[1:])}"
    context.record(StopRepetition.name, StopRepetition.rewrite_class, text, node.spans, names, names)
