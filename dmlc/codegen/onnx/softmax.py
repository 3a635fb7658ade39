"""Softmax and its logarithm."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.codegen.onnx.emitter import Emitter
from dmlc.codegen.onnx.reduce import log_sum, reduce
from dmlc.codegen.onnx.registry import lowers
from dmlc.ir import Node
from dmlc.ops import normalize as n


@lowers(n.SOFTMAX, n.LOG_SOFTMAX)
def softmax(emitter: Emitter, node: Node) -> str:
    """ONNX's operator over one axis. Below opset 13 it takes all axes from ``axis`` on together. Other axes are
    computed in parts, without a transpose; ``lower-hardmax`` makes neighbouring axes one."""
    x, axes = node.operand("x"), node.attributes_as(n.SoftmaxAttributes).axes
    dtype, rank = x.type.dtype, x.type.rank
    if rank == 0:
        axes = ()
    op_type = "Softmax" if node.op is n.SOFTMAX else "LogSoftmax"
    fits = len(axes) == 1 if emitter.opset >= 13 else axes and axes == tuple(range(axes[0], rank))
    if fits and n.has_sound_kernel(node.op, dtype, emitter.graph.dims):
        return emitter.op(op_type, [emitter.of(x)], axis=axes[0])
    return _softmax_in_parts(emitter, node, axes)


def _softmax_in_parts(emitter: Emitter, node: Node, axes: Sequence[int]) -> str:
    dtype = node.result.type.dtype
    home = dtype.accumulator
    x = emitter.cast(emitter.operand(node, 0), home, have=dtype)
    peak = reduce(emitter, "ReduceMax", x, axes, True) if axes else x
    shifted = emitter.op("Sub", [x, peak])
    powers = emitter.op("Exp", [shifted])
    if node.op is n.SOFTMAX:
        total = reduce(emitter, "ReduceSum", powers, axes, True) if axes else powers
        out = emitter.op("Div", [powers, total])
    else:
        total = log_sum(emitter, powers, axes) if axes else emitter.op("Log", [powers])
        out = emitter.op("Sub", [shifted, total])
    return emitter.cast(out, dtype, have=home)
