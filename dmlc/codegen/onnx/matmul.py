"""Matrix products."""

from __future__ import annotations

from dmlc.codegen.onnx.emitter import Emitter
from dmlc.codegen.onnx.move import with_axes
from dmlc.codegen.onnx.registry import lowers
from dmlc.ir import Node, Shape
from dmlc.ops.matmul import MATMUL


@lowers(MATMUL)
def matmul(emitter: Emitter, node: Node) -> str:
    """ONNX's MatMul has NumPy's rules. ONNX Runtime's CPU provider fails on results without elements where it would
    have to stretch the left operand, or where the right one is a vector: there both are brought into the full form."""
    left, right = node.operand(0), node.operand(1)
    a, b = emitter.of(left), emitter.of(right)
    if all(emitter.graph.dims.interval(size)[0] > 0 for size in node.result.shape):
        return emitter.op("MatMul", [a, b])
    if left.type.rank == right.type.rank == 1:
        return emitter.op("MatMul", [a, b])
    left_shape, right_shape = left.shape, right.shape
    squeezed = []
    if left.type.rank == 1:
        a, left_shape = with_axes(emitter, "Unsqueeze", a, [0]), (1, *left_shape)
        squeezed.append(-2)
    if right.type.rank == 1:
        b, right_shape = with_axes(emitter, "Unsqueeze", b, [1]), (*right_shape, 1)
        squeezed.append(-1)
    batch: Shape = node.result.shape[: max(len(left_shape), len(right_shape)) - 2]
    full = (*batch, *left_shape[-2:])
    if full != left_shape:
        a = emitter.op("Expand", [a, emitter.sizes(full)])
    out = emitter.op("MatMul", [a, b])
    if not squeezed:
        return out
    return with_axes(emitter, "Squeeze", out, [axis + len(batch) + 2 for axis in squeezed])
