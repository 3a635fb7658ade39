"""Quantized nodes that ONNX Runtime merges or repeats, and must not.

Each function is about one transformer of core/optimizer/qdq_transformer, and the one of MatMulInteger (releases 1.20 to
1.32). The table of transformers has what was tried.
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx import TensorProto

from dmlc.placement.optimizer.view import Copied, GraphView, LookAlike, Summed

_WHOLE = (TensorProto.INT8, TensorProto.UINT8, TensorProto.INT16, TensorProto.UINT16)
#: Operators behind a DequantizeLinear, or before a QuantizeLinear, that only move data.
_MOVES = ("Reshape", "Transpose", "Squeeze", "Unsqueeze", "Slice", "MaxPool")


def repeated_quantization(view: GraphView) -> Iterator[LookAlike]:
    """QDQPropagationTransformer repeats a quantization behind a node that moves data: of uint8 where no zero point is
    written, and of int32, which no QuantizeLinear makes."""
    for index in view.of("DequantizeLinear"):
        value, element, scale = (
            view.nodes[index].output[0],
            view.element(view.operand(index, 0)),
            view.operand(index, 1),
        )
        is_whole = element == TensorProto.INT32
        if element in (0, TensorProto.UINT8) or (view.operand(index, 2) and not is_whole) or view.number(scale) is None:
            continue
        for reader in view.readers(value, *_MOVES):
            result = view.nodes[reader].output[0]
            if result in view.outputs or result in view.users:
                why = "the data is i32" if is_whole else "the zero point, 0, is not written"
                yield LookAlike("QDQPropagationTransformer", "two quantizations", reader, why, Copied(value))
                break


def quantized_indices(view: GraphView) -> Iterator[LookAlike]:
    """QDQPropagationTransformer quantizes the data of a MaxPool whose result is quantized: other indices then win."""
    for index in view.of("MaxPool"):
        value, indices = view.nodes[index].output[0], view.nodes[index].output[1:]
        is_used = any(name in view.users or name in view.outputs for name in indices if name)
        quantized = view.only_reader(index, "QuantizeLinear")
        if is_used and quantized is not None:
            why = "equal quantized elements have other indices"
            yield LookAlike("QDQPropagationTransformer", "two quantizations", quantized, why, Copied(value))


def clamped_before_quantization(view: GraphView) -> Iterator[LookAlike]:
    """ReluQuantFusion and ClipQuantFusion drop what seems to clamp to the least element of the quantized type: with a
    scale below 0 that is the largest number, and in float8 and 4 bits another one."""
    for index in view.of("Relu", "Clip"):
        value, quantized = view.nodes[index].output[0], view.only_reader(index, "QuantizeLinear")
        if quantized is None or view.operand(quantized, 0) != value:
            continue
        is_plain = view.element(view.operand(quantized, 2)) in (0, *_WHOLE)
        if not is_plain or (view.number(view.operand(quantized, 1)) or 1) < 0:
            name = "ReluQuantFusion" if view.is_operator(index, "Relu") else "ClipQuantFusion"
            why = "the scale is below 0" if is_plain else "its least element is not the least number of the clamp"
            yield LookAlike(name, "nothing", index, why, Copied(value))


def scaled_rows(view: GraphView) -> Iterator[LookAlike]:
    """QDQSelectorActionTransformer makes an integer product of dequantized matrices, whose scales it reads as ones of
    the columns."""
    for index in view.of("MatMul"):
        makers = [view.maker(name, "DequantizeLinear") for name in view.nodes[index].input]
        scales = [None if maker is None else view.shape(view.operand(maker, 1)) for maker in makers]
        right = view.operand(index, 1)
        if None in makers or None in scales or makers[1] is None:
            continue
        rank, axis = view.rank(right), view.attribute(makers[1], "axis", 1)
        is_of_columns = scales[1] in ((), (1,)) or (rank == 2 and axis in (1, -1))
        if scales[0] not in ((), (1,)) or not is_of_columns:
            why = "its scales are not ones of the columns"
            yield LookAlike("QDQSelectorActionTransformer", "MatMulIntegerToFloat", index, why, Copied(right))


def requantized(view: GraphView) -> Iterator[LookAlike]:
    """DoubleQDQPairsRemover makes one pair of scale and zero point of two that differ."""
    for first in view.of("DequantizeLinear"):
        second = view.only_reader(first, "QuantizeLinear")
        if second is None or view.operand(second, 0) != view.nodes[first].output[0]:
            continue
        makers = [view.maker(view.operand(first, 0), "QuantizeLinear")]
        readers = view.readers(view.nodes[second].output[0], "DequantizeLinear")
        found = [_scale_and_zero(view, index) for index in (*makers, first, second, *readers[:1]) if index is not None]
        if len(found) == 4 and None not in found and len(set(found)) > 1:
            why, value = "the scales or zero points of the two pairs differ", view.nodes[first].output[0]
            yield LookAlike("DoubleQDQPairsRemover", "one QuantizeLinear", second, why, Copied(value))


def captured_quantization(view: GraphView) -> Iterator[LookAlike]:
    """QDQFinalCleanupTransformer removes a pair whose result a graph inside a node reads, and the process ends.

    It writes the new value to the node's declared inputs, and a captured value is not among them. Before it,
    EnsureUniqueDQForNodeUnit copies the DequantizeLinear for each reader.
    """
    for first in view.of("DequantizeLinear"):
        value, found = view.nodes[first].output[0], _scale_and_zero(view, first)
        for second in view.readers(value, "QuantizeLinear") if found is not None else ():
            result = view.nodes[second].output[0]
            is_captured = any(result not in view.nodes[index].input for index in view.users.get(result, ()))
            if is_captured and result not in view.outputs and found == _scale_and_zero(view, second):
                why = "a graph inside a node reads the result: the process ends"
                yield LookAlike("QDQFinalCleanupTransformer", "nothing", second, why, Copied(value))


def scaled_integer_product(view: GraphView) -> Iterator[LookAlike]:
    """MatMulIntegerToFloatFusion takes scales and biases that enlarge the product, and f64."""
    for index in view.of("MatMulInteger"):
        cast = view.only_reader(index, "Cast")
        scaled = None if cast is None else view.only_reader(cast, "Mul")
        if cast is None or scaled is None:
            continue
        product, value = view.nodes[cast].output[0], view.nodes[scaled].output[0]
        shape = view.shape(product)
        if shape is None or view.shape(value) != shape or view.element(value) == TensorProto.DOUBLE:
            why = "the scale enlarges the product, or is f64"
            yield LookAlike("MatMulIntegerToFloatFusion", "MatMulIntegerToFloat", scaled, why, Copied(product))
            continue
        add = view.only_reader(scaled, "Add")
        if add is None:
            continue
        total = view.nodes[add].output[0]
        if view.rank(view.other(add, value)) != 1 or view.shape(total) != shape:
            why = "the bias is not a vector of the size of the last axis"
            yield LookAlike("MatMulIntegerToFloatFusion", "MatMulIntegerToFloat", add, why, Summed(add))


def _scale_and_zero(view: GraphView, index: int) -> tuple[float, float] | None:
    scale, zero = view.number(view.operand(index, 1)), view.number(view.operand(index, 2))
    return None if scale is None or zero is None else (scale, zero)
