"""Normalizations."""

from __future__ import annotations

from dmlc.codegen.dxdispatch.lowering import DispatchCall, lowers
from dmlc.codegen.dxdispatch.lowerings.select import over_axes
from dmlc.codegen.dxdispatch.view import BufferView
from dmlc.ir.dtype import bool_
from dmlc.ops import normalize
from dmlc.targets.directml import level_key

#: Scale and bias come both or not at all before this feature level (page of DML_MEAN_VARIANCE_NORMALIZATION1).
_SCALE_ALONE = "5.2"


@lowers(normalize.SOFTMAX)
def _softmax(c: DispatchCall) -> BufferView:
    return over_axes(c, "ACTIVATION_SOFTMAX1")


@lowers(normalize.LOG_SOFTMAX)
def _log_softmax(c: DispatchCall) -> BufferView:
    return over_axes(c, "ACTIVATION_LOG_SOFTMAX1")


@lowers(normalize.MEAN_VARIANCE_NORM)
def _mean_variance_norm(c: DispatchCall) -> BufferView:
    x, a = c.view(), c.attributes
    out = c.build.new(x.dtype, x.sizes)
    c.build.call(
        "MEAN_VARIANCE_NORMALIZATION1",
        InputTensor=x,
        OutputTensor=out,
        AxisCount=len(a.axes),
        Axes=list(a.axes),
        NormalizeVariance=a.variance,
        Epsilon=float(a.epsilon),
    )
    return out


@lowers(normalize.LAYER_NORM, normalize.RMS_NORM)
def _affine_norm(c: DispatchCall) -> BufferView:
    """Scale and bias are broadcast by strides: before feature level 4.0, a size of 1 does not broadcast on every axis.

    MEAN_VARIANCE_NORMALIZATION2, which can leave the mean out, is for RMS only.
    """
    x, a = c.view(), c.attributes
    tensors = {"InputTensor": x}
    for i, name in enumerate(("ScaleTensor", "BiasTensor"), 1):
        if i < len(c.node.operands) and c.node.operands[i] is not None:
            tensors[name] = c.view(i).broadcast(x.sizes)
    out = c.build.new(x.dtype, x.sizes)
    axes = list(range(a.axis, x.rank))
    rms = c.node.op is normalize.RMS_NORM
    if not rms and level_key(c.build.level) < level_key(_SCALE_ALONE):
        tensors.setdefault("BiasTensor", c.build.scalar(0, x.dtype).broadcast(x.sizes))
    c.build.call(
        f"MEAN_VARIANCE_NORMALIZATION{2 if rms else 1}",
        **tensors,
        OutputTensor=out,
        AxisCount=len(axes),
        Axes=axes,
        **({"UseMean": False, "UseVariance": True} if rms else {"NormalizeVariance": True}),
        Epsilon=float(a.epsilon),
    )
    return out


@lowers(normalize.LP_NORM)
def _lp_norm(c: DispatchCall) -> BufferView:
    """Lower to elementary operators: the documentation of LP_NORMALIZATION does not define its epsilon.

    A row of zeros is divided by 1.
    """
    build, x, a = c.build, c.view(), c.attributes
    norm = build.reduce(f"L{a.p}", x, (a.axis,))
    is_zero = build.binary("ELEMENT_WISE_LOGICAL_EQUALS", norm, build.scalar(0, x.dtype), bool_)
    return build.binary("ELEMENT_WISE_DIVIDE", x, build.choose(is_zero, build.scalar(1, x.dtype), norm))
