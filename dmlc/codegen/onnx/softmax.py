"""Softmax and its logarithm."""

from __future__ import annotations

from dmlc.codegen.onnx.emitter import Emitter
from dmlc.codegen.onnx.in_parts import in_parts
from dmlc.codegen.onnx.registry import lowers
from dmlc.ir import Node
from dmlc.ops import normalize as n
from dmlc.passes.primitives import softmax as softmax_in_parts


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
    return in_parts(emitter, node, lambda e, x: softmax_in_parts(e, node.op, x.widened(), axes).cast(dtype))
