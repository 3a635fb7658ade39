"""Choosing and converting elements: where, clip, cast."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.ir import DTYPES, NUMERIC, Array, Attributes, DType, Inference, Operand, Operation, OpError, TensorType
from dmlc.ir.dtype import bool_
from dmlc.ops.attributes import DTypeKind, NumberKind, attribute
from dmlc.ops.literals import attribute_array
from dmlc.ops.rules import broadcast


def _infer_where(call: Inference) -> Sequence[TensorType]:
    shapes = [call.type(i).shape for i in range(3)]
    return [call.type(1).with_shape(broadcast(call, shapes))]


def _where_reference(_: Attributes, cond: Array, a: Array, b: Array) -> Array:
    return np.asarray(np.where(cond, a, b))


WHERE = Operation(
    name="where",
    operands=(Operand("cond", (bool_,), group="C"), Operand("a", DTYPES), Operand("b", DTYPES)),
    infer=_infer_where,
    reference=_where_reference,
    summary="a where cond is true, else b; all three broadcast.",
    source="DML_ELEMENT_WISE_IF_OPERATOR_DESC; ONNX Where",
    notes={"nan": "a NaN that is not chosen does not matter"},
)


class ClipAttributes(Attributes, frozen=True, kw_only=True):
    """At least one of the two is given."""

    min: Annotated[int | float | bool | None, attribute(NumberKind(), "the lower bound, of x's dtype", default=None)]
    max: Annotated[int | float | bool | None, attribute(NumberKind(), "the upper bound, of x's dtype", default=None)]


def _infer_clip(call: Inference) -> Sequence[TensorType]:
    a: ClipAttributes = call.attributes
    if a.min is None and a.max is None:
        raise OpError(codes.MISSING_ATTRIBUTE, "clip needs min or max", help="write min=, max= or both")
    for name, bound in (("min", a.min), ("max", a.max)):
        if bound is None:
            continue
        if isinstance(bound, float) and math.isnan(bound):
            raise OpError(codes.WRONG_ATTRIBUTE, f"{name} of clip must be a number, not nan", at=name)
        attribute_array(bound, call.type(0).dtype, name)
    return [call.type(0)]


def _clip_reference(a: ClipAttributes, x: Array) -> Array:
    out: Any = x
    if a.min is not None:
        out = np.maximum(out, np.array(a.min).astype(x.dtype))
    if a.max is not None:
        out = np.minimum(out, np.array(a.max).astype(x.dtype))
    return np.asarray(out)


CLIP = Operation(
    name="clip",
    operands=(Operand("x", NUMERIC),),
    attributes=ClipAttributes,
    infer=_infer_clip,
    reference=_clip_reference,
    summary="x, but not below min and not above max; each of them may be left out, not both.",
    source="DML_ELEMENT_WISE_CLIP_OPERATOR_DESC; ONNX Clip",
    notes={
        "nan": "NaN gives NaN in the reference",
        "bounds": "max wins where min is above max, as in NumPy and ONNX; infinities stay where there is no bound, "
        "unlike in an ONNX Clip without one, which ends at the largest finite number",
    },
)


class CastAttributes(Attributes, frozen=True, kw_only=True):
    to: Annotated[DType, attribute(DTypeKind(DTYPES), "the dtype of the result")]


def _infer_cast(call: Inference) -> Sequence[TensorType]:
    return [call.type(0).with_dtype(call.attributes.to)]


def _cast_reference(a: CastAttributes, x: Array) -> Array:
    with np.errstate(all="ignore"):
        return x.astype(a.to.numpy)


CAST = Operation(
    name="cast",
    operands=(Operand("x", DTYPES),),
    attributes=CastAttributes,
    infer=_infer_cast,
    reference=_cast_reference,
    summary="The same values in another dtype; written `x as f16`.",
    source="DML_CAST_OPERATOR_DESC; ONNX Cast",
    notes={
        "nan": "to an integer unspecified; to bool true",
        "nan on DirectML": "to an integer 0, and out of range the nearest end (as observed); to bool its execution "
        "provider casts through u8 and gets fractions and negative numbers wrong, so the compiler compares with 0",
        "nan on ONNX Runtime CPU": "to i32 and i64 the lowest integer on x86, as out of range",
        "overflow": "float to integer out of range is unspecified; integer to integer wraps modulo 2^n; "
        "to a narrower float infinite",
        "rounding": "float to integer truncates toward zero; to a narrower float to the nearest even; "
        "to bool is non-zero",
    },
)

CHOICES: tuple[Operation, ...] = (WHERE, CLIP, CAST)
