"""Shape rules that several operations share."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.diagnostics import around
from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.diagnostics.limits import DEFAULTS
from dmlc.ir import Dim, DimExpr, Inference, Node, OpError, Place, Shape, TensorType
from dmlc.ir.dim import FloorDiv, Negative
from dmlc.ir.fixed_shapes import is_too_large


def broadcast(call: Inference, shapes: Sequence[Shape]) -> Shape:
    """NumPy's broadcasting. A symbolic size broadcasts only if it is proved equal or 1. Raises E0313."""
    first = shapes[0]
    for shape in shapes:
        if shape and shape is not first and shape != first:
            break
    else:  # the common case, and a scalar broadcasts to anything
        return first
    out: list[Dim] = []
    for axis in range(-max([len(s) for s in shapes]), 0):
        size: Dim = 1
        for shape in shapes:
            other = shape[axis] if len(shape) >= -axis else 1
            if other != 1 and other != size:
                size = other if size == 1 else _broadcast(call, size, other, shapes)
        out.append(size)
    shape = tuple(out)
    return first if shape == first else shape


def _broadcast(call: Inference, a: Dim, b: Dim, shapes: Sequence[Shape]) -> Dim:
    """The common size of two that differ, neither of which is the number 1."""
    if call.dims.is_one(b):
        return a
    if call.dims.is_one(a):
        return b
    if call.dims.equal(a, b):
        return a if isinstance(a, int) else b
    texts = " and ".join("[" + ", ".join(map(str, s)) + "]" for s in shapes)
    help = "sizes must be equal or 1, compared from the last axis"
    if not (isinstance(a, int) and isinstance(b, int)):
        help = f"{a} and {b} are not proved equal; use one dim name for both, or reshape"
        name = _cut_short(a, b) or _cut_short(b, a)
        if name is not None:
            least = b if isinstance(b, int) else a
            help = f"a slice may be shorter than it asks for: declare the dim, such as dim {name} in {least}..1000"
    raise OpError(codes.DOES_NOT_BROADCAST, f"shapes {texts} do not broadcast: {a} against {b}", help=help)


def beyond_i64(size: Dim) -> int | None:
    """Find a number in a size that i64 does not hold, which sizes are computed in."""
    if isinstance(size, int):
        return None if -(2**63) <= size < 2**63 else size
    parts: list[Dim] = []
    for monomial, coefficient in size.terms:
        parts.append(coefficient)
        for atom in monomial:
            if isinstance(atom, FloorDiv):
                parts += [atom.numerator, atom.denominator]
            elif isinstance(atom, Negative):
                parts.append(atom.size)
    return next((found for part in parts if (found := beyond_i64(part)) is not None), None)


def check_sizes(node: Node) -> Node:
    """Return the node. Raises ``OpError`` where a result has more elements than any tensor."""
    for value in node.results:
        if value.type.rank <= DEFAULTS.rank and is_too_large(value.shape):
            message = f"the result would be {value.type}, and a tensor has at most 2^63 - 1 elements"
            raise OpError(codes.WRONG_SIZE, message)
    return node


def _cut_short(size: Dim, wanted: Dim) -> str | None:
    """The dim for which the size is ``min(dim, wanted)``."""
    clamp = size.as_clamp() if isinstance(size, DimExpr) and isinstance(wanted, int) else None
    if clamp is None or clamp[0] != "min" or clamp[2] != wanted or not isinstance(clamp[1], DimExpr):
        return None
    return clamp[1].name


def reduced_shape(shape: Shape, axes: Sequence[int], keepdims: bool) -> Shape:
    """The shape after a reduction over ``axes``."""
    if keepdims:
        return tuple([1 if i in axes else d for i, d in enumerate(shape)])
    return tuple([d for i, d in enumerate(shape) if i not in axes])


def check_selection(call: Inference, axes: Sequence[int], op: str) -> None:
    """A selection needs axes and at least one element. Raises E0314 or E0315."""
    operand = call.type(0)
    if operand.rank == 0:
        raise OpError(
            codes.RANK_ZERO,
            f"{op} of a scalar has nothing to choose from",
            at=0,
            help=around("reshape it first: reshape(x, shape=[1])", "reshape({}, shape=[1])", 0),
        )
    for axis in axes:
        check_not_empty(call, operand.shape[axis], axis, op)


def check_not_empty(call: Inference, size: Dim, axis: int, op: str) -> None:
    """Refuse an axis whose size is 0 or may be. Raises E0315."""
    if isinstance(size, int) and size > 0:
        return
    declared = None if isinstance(size, int) or size.name is None else call.dims.bounds.get(size.name)
    if size == 0 or (declared is not None and declared[0] <= 0):
        may = "is" if size == 0 else "may be"
        raise OpError(
            codes.EMPTY_SELECTION,
            f"{op} over axis {axis}, whose size {size} {may} 0",
            about=0,
            help="declare the dim as 1 or more" if size != 0 else "",
        )
    error = OpError(codes.EMPTY_SELECTION, f"{op} over axis {axis} needs a size of 1 or more, got {size}", about=0)
    call.require(1, "<=", size, error)


def same_type(call: Inference) -> list[TensorType]:
    """One result of the first operand's type."""
    return [call.type(0)]


def check_size(call: Inference, size: Dim, at: Place) -> None:
    """A size written as an attribute is 0 or more. Raises E0304."""
    if isinstance(size, DimExpr):
        for divisor in size.divisors():
            zero = OpError(codes.WRONG_ATTRIBUTE, f"the size {size} divides by {divisor}, which is 0", at=at)
            call.require(1, "<=", divisor, zero)
    call.require(0, "<=", size, OpError(codes.WRONG_ATTRIBUTE, f"a size cannot be negative: {size}", at=at))


def bound(dim: Dim) -> int:
    """The size inside a reference, where all dims are bound."""
    assert isinstance(dim, int)
    return dim
