"""Operations on each element of one tensor."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dmlc.ir import FLOATS, INTEGERS, NUMERIC, Array, Attributes, DType, Inference, Operand, Operation, TensorType
from dmlc.ir.dtype import bool_, i8, i16, i32, i64
from dmlc.ops.numerics import quiet
from dmlc.ops.rules import same_type

SIGNED: tuple[DType, ...] = (*FLOATS, i8, i16, i32, i64)
BITS: tuple[DType, ...] = (*INTEGERS, bool_)


def _unary(
    name: str,
    dtypes: tuple[DType, ...],
    function: Callable[[Array], Any],
    summary: str,
    source: str,
    *,
    symbol: str | None = None,
    **notes: str,
) -> Operation:
    return Operation(
        name=name,
        operands=(Operand("x", dtypes),),
        infer=same_type,
        reference=quiet(lambda _, x: function(x)),
        summary=summary,
        symbol=symbol,
        source=source,
        notes=notes,
    )


def _test(name: str, function: Callable[[Array], Any], summary: str, source: str) -> Operation:
    def infer(call: Inference) -> Sequence[TensorType]:
        return [call.type(0).with_dtype(bool_)]

    def reference(_: Attributes, x: Array) -> Array:
        return np.asarray(function(x))

    return Operation(
        name=name, operands=(Operand("x", FLOATS),), infer=infer, reference=reference, summary=summary, source=source
    )


def _sigmoid(x: Array) -> Any:
    # The exponential of a non-positive number never overflows.
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1, small) / (1 + small)


_ERF = np.frompyfunc(math.erf, 1, 1)


def _erf(x: Array) -> Any:
    return np.asarray(_ERF(x.astype(np.float64)), dtype=np.float64)


_NAN = "NaN gives NaN"
_WRAPS = "of the type's lowest value it wraps to itself"

ABS = _unary(
    "abs",
    NUMERIC,
    np.abs,
    "The absolute value.",
    "DML_ELEMENT_WISE_ABS_OPERATOR_DESC; ONNX Abs",
    nan=_NAN,
    overflow=_WRAPS,
)
NEG = _unary(
    "neg", SIGNED, np.negative, "The negative.", "DML_ELEMENT_WISE_NEGATE_OPERATOR_DESC; ONNX Neg",
    symbol="-", nan=_NAN, overflow=_WRAPS,
)  # fmt: skip
EXP = _unary(
    "exp", FLOATS, np.exp, "The exponential.", "DML_ELEMENT_WISE_EXP_OPERATOR_DESC; ONNX Exp",
    nan=_NAN, overflow="inf",
)  # fmt: skip
LOG = _unary(
    "log", FLOATS, np.log, "The natural logarithm.", "DML_ELEMENT_WISE_LOG_OPERATOR_DESC; ONNX Log",
    nan=_NAN, domain="of 0 it is -inf, of a negative number NaN",
)  # fmt: skip
SQRT = _unary(
    "sqrt", FLOATS, np.sqrt, "The square root.", "DML_ELEMENT_WISE_SQRT_OPERATOR_DESC; ONNX Sqrt",
    nan=_NAN, domain="of a negative number it is NaN",
)  # fmt: skip
RECIPROCAL = _unary(
    "reciprocal", FLOATS, np.reciprocal, "One over x.", "DML_ELEMENT_WISE_RECIP_OPERATOR_DESC; ONNX Reciprocal",
    nan=_NAN, domain="of 0 it is an infinity with the zero's sign",
)  # fmt: skip
SIGN = _unary(
    "sign", NUMERIC, np.sign, "-1, 0 or 1.", "DML_ELEMENT_WISE_SIGN_OPERATOR_DESC; ONNX Sign",
    nan="unspecified; NaN in the reference", **{"nan on ONNX Runtime CPU": "0"},
)  # fmt: skip
FLOOR = _unary(
    "floor",
    FLOATS,
    np.floor,
    "The largest integer not above x.",
    "DML_ELEMENT_WISE_FLOOR_OPERATOR_DESC; ONNX Floor",
    nan=_NAN,
)
CEIL = _unary(
    "ceil",
    FLOATS,
    np.ceil,
    "The smallest integer not below x.",
    "DML_ELEMENT_WISE_CEIL_OPERATOR_DESC; ONNX Ceil",
    nan=_NAN,
)
ROUND = _unary(
    "round", FLOATS, np.rint, "The nearest integer; halves go to the even one.",
    "DML_ELEMENT_WISE_ROUND_OPERATOR_DESC, DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN; ONNX Round", nan=_NAN,
)  # fmt: skip
SIN = _unary(
    "sin",
    FLOATS,
    np.sin,
    "The sine of radians.",
    "DML_ELEMENT_WISE_SIN_OPERATOR_DESC; ONNX Sin",
    nan=_NAN,
    domain="of an infinity it is NaN",
)
COS = _unary(
    "cos",
    FLOATS,
    np.cos,
    "The cosine of radians.",
    "DML_ELEMENT_WISE_COS_OPERATOR_DESC; ONNX Cos",
    nan=_NAN,
    domain="of an infinity it is NaN",
)
TANH = _unary(
    "tanh", FLOATS, np.tanh, "The hyperbolic tangent.", "DML_ELEMENT_WISE_TANH_OPERATOR_DESC; ONNX Tanh", nan=_NAN
)
SIGMOID = _unary(
    "sigmoid", FLOATS, _sigmoid, "1 / (1 + exp(-x)).", "DML_ACTIVATION_SIGMOID_OPERATOR_DESC; ONNX Sigmoid",
    nan=_NAN, overflow="none: 0 and 1 at the ends",
)  # fmt: skip
RELU = _unary(
    "relu", SIGNED, lambda x: np.maximum(x, x.dtype.type(0)), "x where it is positive, else 0.",
    "DML_ACTIVATION_RELU_OPERATOR_DESC; ONNX Relu", nan="NaN gives NaN in the reference",
)  # fmt: skip
ERF = _unary("erf", FLOATS, _erf, "The error function.", "DML_ELEMENT_WISE_ERF_OPERATOR_DESC; ONNX Erf", nan=_NAN)
IS_NAN = _test("is_nan", np.isnan, "Whether x is NaN.", "DML_ELEMENT_WISE_IS_NAN_OPERATOR_DESC; ONNX IsNaN")
IS_INF = _test(
    "is_inf",
    np.isinf,
    "Whether x is an infinity, of either sign.",
    "DML_ELEMENT_WISE_IS_INFINITY_OPERATOR_DESC; ONNX IsInf",
)
NOT = _unary(
    "not", BITS, np.invert, "Logical not of bool; all bits flipped of an integer.",
    "DML_ELEMENT_WISE_LOGICAL_NOT_OPERATOR_DESC, DML_ELEMENT_WISE_BIT_NOT_OPERATOR_DESC; ONNX Not, BitwiseNot",
    symbol="!",
)  # fmt: skip

UNARY: tuple[Operation, ...] = (
    ABS, NEG, EXP, LOG, SQRT, RECIPROCAL, SIGN, FLOOR, CEIL, ROUND, SIN, COS, TANH, SIGMOID, RELU, ERF,
    IS_NAN, IS_INF, NOT,
)  # fmt: skip
