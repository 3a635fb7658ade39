"""Repairs of elementwise operations: powers, remainders, truths, casts and clips."""

from __future__ import annotations

from msgspec.structs import replace

from dmlc.ir import Node
from dmlc.ir.dtype import bool_, f16, f32
from dmlc.ops.binary import EQUAL, MOD, POW
from dmlc.ops.choose import CAST, CLIP, ClipAttributes
from dmlc.ops.elementwise import IS_INF
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import KEEP, Lowered, lowers
from dmlc.passes.rewrite import Miss


@lowers(POW, onnx=("Pow",), repairs=("pow-int",))
def power_by_products(e: Sketch, node: Node, *operands: Term | None) -> Lowered:
    """A power of i32 by a constant becomes products, of which a power of a program is made already."""
    if node.op is POW and node.origin is None:
        return KEEP
    base, exponent = operands[:2]
    if base is None or exponent is None or exponent.data is None or exponent.data.size != 1:
        return KEEP
    if not e.target.has_fault("pow-int", "Pow", "T", base.dtype):
        return KEEP
    number = exponent.data.array.reshape(())[()]
    if not 0 <= number < 2**31 or number != int(number):
        return Miss("the exponent {0} is negative or not an integer", (number,))
    return base ** exponent.cast(base.dtype)  # legalize makes products of it


@lowers(MOD)
def remainder_by_division(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """A remainder of 64-bit integers becomes a - (a / b) * b, with b added where the signs differ.

    The provider has no kernel of Mod for them, and one of Div, which truncates. Where neither number is negative
    nothing needs to be added. A remainder by zero is unspecified.
    """
    if not a.dtype.is_integer or not e.target.leaves("Mod", a.dtype) or e.target.leaves("Div", a.dtype):
        return KEEP
    rest = a - a / b * b
    is_positive = e.interval(b)[0] >= 0
    if a.dtype.kind == "uint" or (is_positive and e.interval(a)[0] >= 0):
        return rest
    negative = rest < 0
    if is_positive:
        return e.where(negative, rest + b, rest)
    return e.where(e.not_equal(rest, 0) & (negative ^ (b < 0)), rest + b, rest)


@lowers(EQUAL)
def equality_of_truths(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """``a == b`` of truths becomes ``!(a ^ b)``.

    The provider has no kernel of Equal for truths, and one of Xor.
    """
    return ~(a ^ b) if a.dtype is bool_ and not e.target.leaves("Xor", bool_) else KEEP


@lowers(IS_INF, onnx=("IsInf",))
def infinity_of_half(e: Sketch, node: Node, x: Term) -> Lowered:
    """``is_inf`` of f16 is asked of the number in f32, which keeps every f16 and its infinities.

    The provider has no kernel of IsInf for f16, and the node would wait for a copy to the CPU.
    """
    return e.again(node, x.cast(f32)) if x.dtype is f16 and not e.target.leaves("IsInf", f32, "T1") else KEEP


#: The faults of casts to bool.
_CASTS = ("cast-bool", "cast-integer-bool", "cast-int-bool")


@lowers(CAST, onnx=("CastLike",), repairs=_CASTS)
def truth_by_comparison(e: Sketch, node: Node, x: Term, *_: Term | None) -> Lowered:
    """A cast of numbers to bool becomes Not(Equal(x, 0)), of which a NaN is true as it is in the cast."""
    op_type = "Cast" if node.op is CAST else "CastLike"
    is_wrong = any(e.target.has_fault(fault, op_type, "T1", x.dtype) for fault in _CASTS)
    return ~e.equal(x, 0) if node.result.type.dtype is bool_ and is_wrong else KEEP


@lowers(CLIP, onnx=("Clip",), repairs=("clip-64",))
def both_bounds(e: Sketch, node: Node, x: Term, *bounds: Term | None) -> Lowered:
    """A clip with a missing bound gets the lowest or highest number of its dtype."""
    if not e.target.has_fault("clip-64", "Clip", "T", x.dtype):
        return KEEP
    ends = (int(x.dtype.lowest), int(x.dtype.highest))
    if node.op is CLIP:
        a = node.attributes_as(ClipAttributes)
        low, high = (end if bound is None else bound for bound, end in zip((a.min, a.max), ends, strict=True))
        return KEEP if None not in (a.min, a.max) else e(CLIP, x, attributes=replace(a, min=low, max=high))
    given = [*bounds, None, None][:2]
    if None not in given:
        return KEEP
    limits = [e.number(end, x.dtype) if bound is None else bound for bound, end in zip(given, ends, strict=True)]
    return e(OPAQUE, x, *limits, attributes=OpaqueAttributes(op_type="Clip", types=(node.result.type,)))
