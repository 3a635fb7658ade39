"""Softmax and its logarithm."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.codegen.onnx.emitter import Emitter
from dmlc.codegen.onnx.reduce import in_f32, reduce
from dmlc.codegen.onnx.registry import lowers
from dmlc.ir import Node, Shape, product
from dmlc.ir.dtype import f64
from dmlc.ops import normalize as n


@lowers(n.SOFTMAX, n.LOG_SOFTMAX)
def softmax(emitter: Emitter, node: Node) -> str:
    """ONNX's operator over one axis, or over neighbours that a reshape makes one. Below opset 13 it takes all axes
    from ``axis`` on together. What it cannot say is computed in parts, without a transpose."""
    x, axes = node.operand(0), node.attributes_as(n.SoftmaxAttributes).axes
    dtype, rank = x.type.dtype, x.type.rank
    if rank == 0:
        axes = ()
    op_type = "Softmax" if node.op is n.SOFTMAX else "LogSoftmax"
    # ONNX Runtime's LogSoftmax of f64 leaves -inf beside a +inf, where all is NaN. An imported model has what its
    # runtime does.
    sound = axes and not (dtype is f64 and node.op is n.LOG_SOFTMAX and emitter.graph.dims.least > 0)
    if sound and axes == tuple(range(axes[0], rank)) and (emitter.opset < 13 or len(axes) == 1):
        return emitter.op(op_type, [emitter.of(x)], axis=axes[0])
    if sound and emitter.opset >= 13 and axes[-1] - axes[0] == len(axes) - 1:
        first, last = axes[0], axes[-1] + 1
        merged: Shape = (*x.shape[:first], product(x.shape[first:last]), *x.shape[last:])
        name = emitter.reshape(emitter.of(x), x.shape, merged, dtype)
        return emitter.reshape(emitter.op(op_type, [name], axis=first), merged, x.shape, dtype)
    return _softmax_in_parts(emitter, node, axes)


def _softmax_in_parts(emitter: Emitter, node: Node, axes: Sequence[int]) -> str:
    dtype = node.result.type.dtype
    home = in_f32(dtype)
    x = emitter.cast(emitter.operand(node, 0), home, have=dtype)
    peak = reduce(emitter, "ReduceMax", x, axes, True) if axes else x
    shifted = emitter.op("Sub", [x, peak])
    powers = emitter.op("Exp", [shifted])
    total = reduce(emitter, "ReduceSum", powers, axes, True) if axes else powers
    if node.op is n.SOFTMAX:
        out = emitter.op("Div", [powers, total])
    else:
        out = emitter.op("Sub", [shifted, emitter.op("Log", [total])])
    return emitter.cast(out, dtype, have=home)
