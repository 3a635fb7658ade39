"""Where, clip and cast."""

from __future__ import annotations

from dmlc.codegen.onnx.emitter import Emitter
from dmlc.codegen.onnx.registry import lowers
from dmlc.ir import Node
from dmlc.ops.choose import CAST, CLIP, WHERE, CastAttributes, ClipAttributes


@lowers(WHERE)
def where(emitter: Emitter, node: Node) -> str:
    return emitter.op("Where", [emitter.of(v) for v in node.operands])


@lowers(CLIP)
def clip(emitter: Emitter, node: Node) -> str:
    a = node.attributes_as(ClipAttributes)
    dtype = node.result.type.dtype
    bounds = ["" if v is None else emitter.scalar(v, dtype) for v in (a.min, a.max)]
    return emitter.op("Clip", [emitter.operand(node, 0), *bounds])


@lowers(CAST)
def cast(emitter: Emitter, node: Node) -> str:
    """A cast to the operand's own dtype is its name."""
    return emitter.cast(
        emitter.operand(node, 0), node.attributes_as(CastAttributes).to, have=node.operand(0).type.dtype
    )
