"""Softmax and the norms."""

from __future__ import annotations

from dmlc.importers.operators.select import softmax_axes
from dmlc.importers.registry import Found, Made, Reading, reads
from dmlc.inference.query import within
from dmlc.ir import Value
from dmlc.ops.normalize import (
    LAYER_NORM,
    LOG_SOFTMAX,
    LP_NORM,
    RMS_NORM,
    SOFTMAX,
    LpNormAttributes,
    NormAttributes,
    SoftmaxAttributes,
)


@reads("Softmax", "LogSoftmax")
def softmax(r: Reading) -> Found:
    axes = softmax_axes(r)
    op = SOFTMAX if r.op_type == "Softmax" else LOG_SOFTMAX
    return None if axes is None else Made(op, [r.x], SoftmaxAttributes(axes=axes))


@reads("LayerNormalization")
def layer_norm(r: Reading) -> Found:
    """The mean and the inverse deviation, which it may give too, are not of the language."""
    scale = r.input(1)
    if r.wants(1) or r.wants(2) or scale is None:
        return None
    bias = r.input(2)
    return _norm(r, [r.x, scale] if bias is None else [r.x, scale, bias], LAYER_NORM)


@reads("SimplifiedLayerNormalization", "RMSNormalization")
def rms_norm(r: Reading) -> Found:
    scale = r.input(1)
    if r.wants(1) or scale is None:
        return None
    return _norm(r, [r.x, scale], RMS_NORM)


def _norm(r: Reading, operands: list[Value], op: object) -> Found:
    axis = within(r.integer("axis", -1), r.x.type.rank)
    if axis is None or r.integer("stash_type", 1) != 1:
        return None
    record = NormAttributes(axis=axis, epsilon=r.real("epsilon", 1e-5))
    return Made(LAYER_NORM if op is LAYER_NORM else RMS_NORM, operands, record)


@reads("LpNormalization")
def lp_norm(r: Reading) -> Found:
    axis = within(r.integer("axis", -1), r.x.type.rank)
    return None if axis is None else Made(LP_NORM, [r.x], LpNormAttributes(axis=axis, p=r.integer("p", 2)))
