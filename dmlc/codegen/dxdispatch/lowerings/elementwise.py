"""Operations on each element, of one tensor or several."""

from __future__ import annotations

import numpy as np

from dmlc.codegen.dxdispatch.builder import DispatchBuilder
from dmlc.codegen.dxdispatch.json_text import scalar_union, type_name
from dmlc.codegen.dxdispatch.lowering import DispatchCall, lowers
from dmlc.codegen.dxdispatch.view import BufferView
from dmlc.ir import DType, Operation
from dmlc.ir.dtype import bool_
from dmlc.ops import INFIX, binary, choose, elementwise
from dmlc.ops.constant import constant_of
from dmlc.ops.literals import attribute_array

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
