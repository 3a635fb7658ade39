"""Reductions, running sums and products."""

from __future__ import annotations

from dmlc.codegen.dxdispatch.builder import DispatchBuilder
from dmlc.codegen.dxdispatch.lowering import DispatchCall, lowers
from dmlc.codegen.dxdispatch.lowerings.elementwise import absolute, finite
from dmlc.codegen.dxdispatch.view import BufferView, Sizes
from dmlc.ops import reduce, scan

#: Reductions that DirectML has for 8 and 16 bits as well.
_ANY_WIDTH = ("MAX", "MIN")


@lowers(*reduce.REDUCTIONS)
def _reduce(c: DispatchCall) -> BufferView:
    build, x, axes = c.build, c.view(), c.attributes.axes
    function = reduce.reduction_of(c.node).directml
    if not axes:
        out = _elementwise_part(build, function, x)
    elif function == "AVERAGE" and x.dtype.is_integer:
        out = integer_mean(build, x, axes)
    elif function == "LOG_SUM_EXP":
        out = _log_sum_exp(build, x, axes)
    elif function in _ANY_WIDTH:
        out = build.reduce(function, x, axes)
    else:
        out = build.cast(build.reduce(function, build.widened(x), axes), x.dtype)
    return _without_kept(out, c.sizes)


def _without_kept(x: BufferView, sizes: Sizes) -> BufferView:
    view = x.reshaped(sizes)
    assert view is not None  # axes of size 1 come and go
    return view


def _elementwise_part(build: DispatchBuilder, function: str, x: BufferView) -> BufferView:
    """Apply the elementwise part of a reduction over no axes."""
    if function in ("L1", "L2"):
        return absolute(build, x)
    if function == "SUM_SQUARE":
        return build.binary("ELEMENT_WISE_MULTIPLY", x, x)
    return build.unary("ELEMENT_WISE_LOG", x) if function == "LOG_SUM" else x


def _log_sum_exp(build: DispatchBuilder, x: BufferView, axes: tuple[int, ...]) -> BufferView:
    """DirectML does not take the maximum out, so that 100 overflows; it is taken out here. Infinities stay."""
    peak = finite(build, build.reduce("MAX", x, axes))
    shifted = build.binary("ELEMENT_WISE_SUBTRACT", x, peak)
    return build.binary("ELEMENT_WISE_ADD", build.reduce("LOG_SUM_EXP", shifted, axes), peak)


def integer_mean(build: DispatchBuilder, x: BufferView, axes: tuple[int, ...]) -> BufferView:
    """The exact sum over the count, truncated toward zero; AVERAGE takes floats only."""
    wide = build.exact(x)
    number = 1
    for axis in axes:
        number *= x.sizes[axis]
    count = build.scalar(number, wide.dtype)
    if x.dtype.bits < 64:
        total = build.reduce("SUM", wide, axes)
        return build.cast(build.binary("ELEMENT_WISE_DIVIDE", total, count), x.dtype)
    return _wide_mean(build, x, axes, count)


def _wide_mean(build: DispatchBuilder, x: BufferView, axes: tuple[int, ...], count: BufferView) -> BufferView:
    """The sum may not fit 64 bits, the sums of the quotients and of the remainders do.

    The two may differ in sign; then the whole part is one step too far from zero.
    """
    quotients = build.binary("ELEMENT_WISE_DIVIDE", x, count)
    remainders = build.binary("ELEMENT_WISE_SUBTRACT", x, build.binary("ELEMENT_WISE_MULTIPLY", quotients, count))
    rest = build.reduce("SUM", remainders, axes)
    carried = build.binary("ELEMENT_WISE_DIVIDE", rest, count)
    whole = build.binary("ELEMENT_WISE_ADD", build.reduce("SUM", quotients, axes), carried)
    if x.dtype.kind == "uint":
        return whole
    left = build.binary("ELEMENT_WISE_SUBTRACT", rest, build.binary("ELEMENT_WISE_MULTIPLY", carried, count))
    sign, other = build.unary("ELEMENT_WISE_SIGN", left), build.unary("ELEMENT_WISE_SIGN", whole)
    # (t - s * t * t) / 2 truncated is t where the signs s and t differ, else 0
    square = build.binary("ELEMENT_WISE_MULTIPLY", other, build.binary("ELEMENT_WISE_MULTIPLY", sign, sign))
    step = build.binary(
        "ELEMENT_WISE_DIVIDE", build.binary("ELEMENT_WISE_SUBTRACT", sign, square), build.scalar(2, x.dtype)
    )
    return build.binary("ELEMENT_WISE_ADD", whole, step)


@lowers(scan.CUMSUM, scan.CUMPROD)
def _scan(c: DispatchCall) -> BufferView:
    a, build = c.attributes, c.build
    x = build.widened(c.view())
    kind, last = ("SUMMATION", "Sum") if c.node.op is scan.CUMSUM else ("PRODUCT", "Product")
    out = build.new(x.dtype, x.sizes)
    build.call(
        f"CUMULATIVE_{kind}",
        InputTensor=x,
        OutputTensor=out,
        Axis=a.axis,
        AxisDirection=f"DML_AXIS_DIRECTION_{'DECREASING' if a.reverse else 'INCREASING'}",
        **{f"HasExclusive{last}": a.exclusive},
    )
    return build.cast(out, c.dtype)
