"""Lowerings of ``where``, ``clip`` and ``cast``."""

from __future__ import annotations

import math

import numpy as np

from dmlc.codegen.onnx.emitter import Emitter
from dmlc.codegen.onnx.registry import lowers
from dmlc.ir import DType, Node
from dmlc.ir.dtype import f16
from dmlc.ops.choose import CAST, CLIP, WHERE, CastAttributes, ClipAttributes


@lowers(WHERE)
def where(emitter: Emitter, node: Node) -> str:
    return emitter.op("Where", [emitter.of(v) for v in node.operands])


@lowers(CLIP)
def clip(emitter: Emitter, node: Node) -> str:
    """ONNX's Clip without a bound takes the largest finite number for it, so that infinities end there: where the
    program has none, infinity is written."""
    a = node.attributes_as(ClipAttributes)
    dtype, every = node.result.type.dtype, needs_bounds(node, emitter.opset)
    bounds = [_bound(emitter, dtype, *pair, every=every) for pair in ((a.min, dtype.lowest), (a.max, dtype.highest))]
    return emitter.op("Clip", [emitter.operand(node, 0), *bounds])


def needs_bounds(node: Node, opset: int) -> bool:
    """Return whether a Clip is written with both bounds: before opset 12 ONNX Runtime's CPU provider computes one of
    f16 in f32, and a bound that is left out is the largest f32."""
    return node.op is CLIP and opset < 12 and node.result.type.dtype is f16


def _bound(emitter: Emitter, dtype: DType, bound: float | None, outermost: float, *, every: bool) -> str:
    if not dtype.is_float:
        return "" if bound is None else emitter.scalar(bound, dtype)
    if not every and bound == math.copysign(float(np.finfo(dtype.numpy).max), outermost):
        return ""
    return emitter.scalar(outermost if bound is None else bound, dtype)


@lowers(CAST)
def cast(emitter: Emitter, node: Node) -> str:
    """A cast to the operand's own dtype is its name."""
    return emitter.cast(
        emitter.operand(node, 0), node.attributes_as(CastAttributes).to, have=node.operand("x").type.dtype
    )
