"""Lowerings of elementwise operations, reductions, norms and selections."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from dmlc.codegen.dxdispatch.builder import DispatchBuilder
from dmlc.codegen.dxdispatch.json_text import scalar_union, type_name
from dmlc.codegen.dxdispatch.lowering import DispatchCall, lowers
from dmlc.codegen.dxdispatch.view import BufferView, Sizes
from dmlc.ir import DType, Operation
from dmlc.ir.dtype import bool_, u32, u64
from dmlc.ops import INFIX, binary, choose, elementwise, normalize, reduce, scan, select
from dmlc.ops.constant import constant_of
from dmlc.ops.literals import attribute_array
from dmlc.targets.directml import level_key

_BINARY: dict[Operation, str] = {
    binary.ADD: "ELEMENT_WISE_ADD",
    binary.SUB: "ELEMENT_WISE_SUBTRACT",
    binary.MUL: "ELEMENT_WISE_MULTIPLY",
    binary.DIV: "ELEMENT_WISE_DIVIDE",
    binary.MOD: "ELEMENT_WISE_MODULUS_FLOOR",
    binary.MIN: "ELEMENT_WISE_MIN",
    binary.MAX: "ELEMENT_WISE_MAX",
    binary.EQUAL: "ELEMENT_WISE_LOGICAL_EQUALS",
    binary.LESS: "ELEMENT_WISE_LOGICAL_LESS_THAN",
    binary.LESS_EQUAL: "ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL",
    binary.GREATER: "ELEMENT_WISE_LOGICAL_GREATER_THAN",
    binary.GREATER_EQUAL: "ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL",
}
_BITS: dict[Operation, str] = {binary.AND: "AND", binary.OR: "OR", binary.XOR: "XOR"}
#: Integer powers up to this exponent are products, which wrap as the language says.
_MOST_PRODUCTS = 64


@lowers(*(op for op in elementwise.UNARY if op.directml))
def _unary(c: DispatchCall) -> BufferView:
    op = c.node.op
    assert isinstance(op, elementwise.UnaryOperation)
    given = {name.capitalize(): value for name, value in elementwise.attributes_of(op, c.attributes).items()}
    return c.build.unary(op.directml, c.view(), c.dtype, **op.directml_fields, **given)


@lowers(elementwise.ABS)
def _abs(c: DispatchCall) -> BufferView:
    return absolute(c.build, c.view())


def absolute(build: DispatchBuilder, x: BufferView) -> BufferView:
    """The absolute value, which an unsigned integer is already."""
    return x if x.dtype.kind == "uint" else build.unary("ELEMENT_WISE_ABS", x)


@lowers(elementwise.RELU)
def _relu(c: DispatchCall) -> BufferView:
    x = c.view()
    if x.dtype.is_float:
        return c.build.unary("ACTIVATION_RELU", x)
    return c.build.binary("ELEMENT_WISE_MAX", x, c.build.scalar(0, x.dtype))


@lowers(elementwise.SILU)
def _silu(c: DispatchCall) -> BufferView:
    x = c.view()
    if c.build.offers("ACTIVATION_SWISH"):
        return c.build.unary("ACTIVATION_SWISH", x, SigmoidInputScale=1.0)
    return c.build.binary("ELEMENT_WISE_MULTIPLY", x, c.build.unary("ACTIVATION_SIGMOID", x))


@lowers(elementwise.GELU)
def _gelu(c: DispatchCall) -> BufferView:
    """DirectML has the error function's form only."""
    x, build = c.view(), c.build
    if c.attributes.approximate == "none" and build.offers("ACTIVATION_GELU"):
        return build.unary("ACTIVATION_GELU", x)

    def call(inner: str, *operands: BufferView | float) -> BufferView:
        views = [v if isinstance(v, BufferView) else build.scalar(v, x.dtype) for v in operands]
        if inner in ("erf", "sigmoid"):
            return build.unary("ELEMENT_WISE_ERF" if inner == "erf" else "ACTIVATION_SIGMOID", views[0])
        return build.binary(_BINARY[INFIX[inner]], views[0], views[1])

    op = elementwise.GELU
    assert op.composed is not None
    composed: BufferView = op.composed(call, x, **elementwise.attributes_of(op, c.attributes))
    return composed


@lowers(elementwise.NOT)
def _not(c: DispatchCall) -> BufferView:
    kind = "LOGICAL" if c.dtype is bool_ else "BIT"
    return c.build.unary(f"ELEMENT_WISE_{kind}_NOT", c.view())


@lowers(*_BINARY)
def _binary(c: DispatchCall) -> BufferView:
    return c.build.binary(_BINARY[c.node.op], c.view(0), c.view(1), c.dtype)


@lowers(binary.NOT_EQUAL)
def _not_equal(c: DispatchCall) -> BufferView:
    equal = c.build.binary("ELEMENT_WISE_LOGICAL_EQUALS", c.view(0), c.view(1), bool_)
    return c.build.unary("ELEMENT_WISE_LOGICAL_NOT", equal)


@lowers(*_BITS)
def _bits(c: DispatchCall) -> BufferView:
    kind = "LOGICAL" if c.dtype is bool_ else "BIT"
    return c.build.binary(f"ELEMENT_WISE_{kind}_{_BITS[c.node.op]}", c.view(0), c.view(1))


@lowers(binary.FLOORDIV)
def _floordiv(c: DispatchCall) -> BufferView:
    """Truncated quotients are one too large where the two remainders differ, and they differ by the divisor."""
    build, a, b = c.build, c.view(0), c.view(1)
    quotient = build.binary("ELEMENT_WISE_DIVIDE", a, b)
    if a.dtype.is_float:
        return build.unary("ELEMENT_WISE_FLOOR", quotient)
    if a.dtype.kind == "uint":
        return quotient
    floored = build.binary("ELEMENT_WISE_MODULUS_FLOOR", a, b)
    truncated = build.binary("ELEMENT_WISE_MODULUS_TRUNCATE", a, b)
    excess = build.binary("ELEMENT_WISE_DIVIDE", build.binary("ELEMENT_WISE_SUBTRACT", floored, truncated), b)
    return build.binary("ELEMENT_WISE_SUBTRACT", quotient, excess)


@lowers(binary.POW)
def _pow(c: DispatchCall) -> BufferView:
    build, base = c.build, c.view(0)
    exponent = constant_of(c.node.operand("b"))
    if exponent is not None and exponent.size == 1:
        power = exponent.array.reshape(-1)[0].item()
        if power == int(power) and 0 <= power <= (2 if base.dtype.is_float else _MOST_PRODUCTS):
            return _product(build, base, int(power)).broadcast(c.sizes)
        if base.dtype.is_float:
            return build.unary("ELEMENT_WISE_CONSTANT_POW", base, Exponent=float(power)).broadcast(c.sizes)
    return build.elementwise("ELEMENT_WISE_POW", ("InputTensor", "ExponentTensor"), [base, c.view(1)], base.dtype)


def _product(build: DispatchBuilder, base: BufferView, power: int) -> BufferView:
    """A whole power, by squaring."""
    out = None
    while power:
        if power & 1:
            out = base if out is None else build.binary("ELEMENT_WISE_MULTIPLY", out, base)
        power >>= 1
        if power:
            base = build.binary("ELEMENT_WISE_MULTIPLY", base, base)
    return build.scalar(1, base.dtype).broadcast(base.sizes) if out is None else out


@lowers(choose.WHERE)
def _where(c: DispatchCall) -> BufferView:
    return c.build.choose(c.view(0), c.view(1), c.view(2))


@lowers(choose.CLIP)
def _clip(c: DispatchCall) -> BufferView:
    x, a = c.view(), c.attributes
    low = attribute_array(x.dtype.lowest if a.min is None else a.min, x.dtype, "min")
    high = attribute_array(x.dtype.highest if a.max is None else a.max, x.dtype, "max")
    if low > high:  # the language gives max then, DirectML says min
        low = high
    return clipped(c.build, x, low, high)


def clipped(build: DispatchBuilder, x: BufferView, low: np.ndarray, high: np.ndarray) -> BufferView:
    """Between two bounds of the tensor's dtype."""
    bounds = {name: scalar_union(value, x.dtype) for name, value in (("Min", low), ("Max", high))}
    return build.unary("ELEMENT_WISE_CLIP1", x, MinMaxDataType=type_name(x.dtype), **bounds)


def finite(build: DispatchBuilder, x: BufferView) -> BufferView:
    """Infinities of a float become its largest numbers."""
    most = np.finfo(x.dtype.numpy).max
    return clipped(build, x, np.array(-most), np.array(most))


@lowers(choose.CAST)
def _cast(c: DispatchCall) -> BufferView:
    to: DType = c.attributes.to
    return c.build.cast(c.view(), to)


# --- Reductions, running sums and products

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


# --- argmax, argmin, top_k, hardmax: each is one operator, over several axes and with either rule for ties

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


# --- Normalizations

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
