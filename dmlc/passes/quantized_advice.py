"""``quantized-advice``: warns of int8 models that ONNX Runtime does not load at an opset."""

from __future__ import annotations

from typing import ClassVar

from dmlc.diagnostics import Diagnostic, Label
from dmlc.diagnostics.catalogue.advice import NOT_LOADED
from dmlc.ir import Graph, Node
from dmlc.ir.dtype import i8
from dmlc.onnx_schema.domains import MICROSOFT
from dmlc.ops.constant import constant_of
from dmlc.ops.move import RESHAPE, SLICE, SQUEEZE, TRANSPOSE, UNSQUEEZE
from dmlc.ops.normalize import LOG_SOFTMAX, MEAN_VARIANCE_NORM, SOFTMAX
from dmlc.ops.select import ARGMAX, ARGMIN, HARDMAX
from dmlc.passes.manager import Pass, PassContext

#: From this opset on. ONNX Runtime repeats a quantization behind an operator that keeps the numbers, and since 1.28
#: writes the type into the node that it inserts (onnxruntime, core/optimizer/qdq_transformer/qdq_propagation.cc; pull
#: request 28144). On x86-64 it then makes uint8 of int8, but for that attribute, and its own inference refuses the
#: node: "output_dtype INT8 does not match y_zero_point type UINT8". Measured on 2026-11-22: 1.28.0, 1.31.1 and 1.32.0
#: fail to load such models with their default optimizations, 1.23.2, 1.24.4 and 1.26.0 load them; all load those of
#: opset 20. No other type fails, nor do constants, scales per axis, or what has no zero point.
NOT_LOADED_SINCE = 21
#: The operators behind which it is repeated (``CanNodePropagate`` there).
LAYOUT_OPERATIONS = (RESHAPE, TRANSPOSE, SQUEEZE, UNSQUEEZE, SLICE)
#: Operations that a reshape or transpose brings into the form that ONNX has, if they go over several axes.
_ARRANGED = (SOFTMAX, LOG_SOFTMAX, MEAN_VARIANCE_NORM, HARDMAX, ARGMAX, ARGMIN)
#: The domains of the operators that quantize.
QUANTIZING = ("", MICROSOFT)
LAYOUT_OPERATORS = ("MaxPool", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Slice")


class QuantizedAdvice(Pass, frozen=True):
    """Changes nothing. Where no opset is asked for, a lower one is chosen; this is for those who ask."""

    name: ClassVar[str] = "quantized-advice"
    summary: ClassVar[str] = "Warn of int8 models that ONNX Runtime does not load at the opset."

    def run(self, graph: Graph, context: PassContext) -> bool:
        found = _repeated(graph) if context.opset >= NOT_LOADED_SINCE else None
        if found is not None:
            message = f"ONNX Runtime 1.28 and later do not load {label(found)} at opset {context.opset}"
            labels = tuple([Label(span) for span in found.spans[:1]])
            context.diagnostics.append(Diagnostic(NOT_LOADED, message, labels, help="compile with --opset 20"))
        return False


def repeated(graph: Graph) -> Node | None:
    """The first int8 DequantizeLinear whose quantization ONNX Runtime repeats, in bodies too."""
    found = _repeated(graph)
    for node in graph.with_regions if found is None else ():
        for region in node.regions:
            found = found or repeated(region.graph)
    return found


def label(node: Node) -> str:
    """The DequantizeLinear as a user knows it, with what follows it."""
    consumer = next(use for use, _ in node.result.uses if keeps_numbers(use))
    kind = operator(consumer) or consumer.op.name
    name = f" {node.name or node.result.name}" if node.name or node.result.name else ""
    return f"DequantizeLinear{name} of i8 before a {kind}"


def _repeated(graph: Graph) -> Node | None:
    passed = [op for op in graph.operations if hasattr(op.attributes, "op_type")]
    return next((node for node in graph.nodes_of(passed) if _is_repeated(node)), None)


def _is_repeated(node: Node) -> bool:
    if operator(node) != "DequantizeLinear" or len(node.operands) < 3:
        return False
    data, *parameters = node.operands
    if data is None or constant_of(data) is not None or parameters[1] is None:
        return False
    if parameters[1].type.dtype is not i8:  # the data has its dtype, whatever is known of its rank
        return False
    for value in parameters[:2]:
        tensor = None if value is None else constant_of(value)
        if tensor is None or tensor.size != 1:
            return False
    return any(keeps_numbers(use) and not ends_repetition(use) for use, _ in node.result.uses)


def keeps_numbers(node: Node) -> bool:
    """True for the operators that ONNX Runtime repeats a quantization behind, and for operations whose ONNX form may
    begin with one."""
    is_arranged = node.op in _ARRANGED and len(getattr(node.attributes, "axes", ())) > 1
    return node.op in LAYOUT_OPERATIONS or is_arranged or operator(node) in LAYOUT_OPERATORS


def operator(node: Node, domains: tuple[str, ...] = ("",)) -> str:
    """The operator of these domains that a node passes through; empty for any other."""
    attributes = node.attributes
    return str(getattr(attributes, "op_type", "")) if getattr(attributes, "domain", "") in domains else ""


def ends_repetition(node: Node) -> bool:
    """True if nothing is repeated behind the node: a QuantizeLinear reads its first result, or no node does (measured
    with ONNX Runtime 1.32.0 on 2026-11-23)."""
    uses = node.results[0].uses
    return not uses or any(operator(use, domains=QUANTIZING) == "QuantizeLinear" for use, _ in uses)
