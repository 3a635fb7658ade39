"""argmax, argmin, top_k, hardmax: each is one operator, over several axes and with either rule for ties."""

from __future__ import annotations

from msgspec.structs import replace

from dmlc.codegen.dxdispatch.lowering import DispatchCall, lowers
from dmlc.codegen.dxdispatch.view import BufferView
from dmlc.ir.dtype import u32, u64
from dmlc.ops import select

_DIRECTIONS = {
    "first": "DML_AXIS_DIRECTION_INCREASING",
    "last": "DML_AXIS_DIRECTION_DECREASING",
    "smallest": "DML_AXIS_DIRECTION_INCREASING",
    "largest": "DML_AXIS_DIRECTION_DECREASING",
}


@lowers(select.ARGMAX, select.ARGMIN)
def _arg(c: DispatchCall) -> BufferView:
    x, a = c.view(), c.attributes
    out = c.build.new(a.dtype, tuple(1 if i in a.axes else n for i, n in enumerate(x.sizes)))
    c.build.call(
        c.node.op.name.upper(),
        InputTensor=x,
        OutputTensor=out,
        AxisCount=len(a.axes),
        Axes=list(a.axes),
        AxisDirection=_DIRECTIONS[a.ties],
    )
    view = out.reshaped(c.sizes)
    assert view is not None
    return view


@lowers(select.TOP_K)
def _top_k(c: DispatchCall) -> list[BufferView]:
    x, a = c.view(), c.attributes
    values, indices = c.build.new(x.dtype, c.sizes), c.build.new(a.dtype, c.sizes)
    c.build.call(
        "TOP_K1",
        InputTensor=x,
        OutputValueTensor=values,
        # TOP_K1 writes unsigned indices; a signed one has the same bits, as none reaches its highest
        OutputIndexTensor=replace(indices, dtype=u32 if a.dtype.bits == 32 else u64),
        Axis=a.axis,
        K=c.sizes[a.axis],
        AxisDirection=_DIRECTIONS[a.order],
    )
    return [values, indices]


@lowers(select.HARDMAX)
def _hardmax(c: DispatchCall) -> BufferView:
    return over_axes(c, "ACTIVATION_HARDMAX1")


def over_axes(c: DispatchCall, operator: str) -> BufferView:
    """An operator that takes axes and keeps all sizes."""
    x, axes = c.view(), c.attributes.axes
    out = c.build.new(x.dtype, x.sizes)
    c.build.call(operator, InputTensor=x, OutputTensor=out, AxisCount=len(axes), Axes=list(axes))
    return out
