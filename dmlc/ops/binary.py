"""Operations on the elements of two tensors, broadcast as NumPy does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dmlc.diagnostics import around
from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.ir import (
    DTYPES,
    FLOATS,
    NUMERIC,
    Array,
    Attributes,
    DType,
    Inference,
    Operand,
    Operation,
    OpError,
    Tensor,
    TensorType,
)
from dmlc.ir.dtype import bool_
from dmlc.ops.elementwise import BITS
from dmlc.ops.literals import quiet, wide
from dmlc.ops.rules import broadcast


def _same(call: Inference) -> Sequence[TensorType]:
    a, b = call.type(0), call.type(1)
    return [a.with_shape(broadcast(call, (a.shape, b.shape)))]


def _truth(call: Inference) -> Sequence[TensorType]:
    return [t.with_dtype(bool_) for t in _same(call)]


def _binary(
    name: str,
    symbol: str | None,
    dtypes: tuple[DType, ...],
    function: Callable[[Array, Array], Any],
    summary: str,
    source: str,
    *,
    check: Callable[[Sequence[Tensor | None]], None] | None = None,
    notes: dict[str, str] | None = None,
    symbol_dtypes: tuple[DType, ...] = (),
) -> Operation:
    return Operation(
        name=name,
        operands=(Operand("a", dtypes), Operand("b", dtypes)),
        infer=_same,
        reference=quiet(lambda _, a, b: function(a, b)),
        summary=summary,
        symbol=symbol,
        source=source,
        check=check,
        notes=notes or {},
        symbol_dtypes=symbol_dtypes,
    )


def _compare(
    name: str,
    symbol: str,
    dtypes: tuple[DType, ...],
    function: Callable[[Array, Array], Any],
    summary: str,
    source: str,
    nan: str,
) -> Operation:
    def reference(_: Attributes, a: Array, b: Array) -> Array:
        return np.asarray(function(a, b))

    return Operation(
        name=name,
        operands=(Operand("a", dtypes), Operand("b", dtypes)),
        infer=_truth,
        reference=reference,
        summary=summary,
        symbol=symbol,
        source=source,
        notes={"nan": nan, "ties": "-0 equals +0"},
    )


# --- checks of operands that are known while compiling


def _no_zero_divisor(operands: Sequence[Tensor | None]) -> None:
    """Refuse an integer division by a constant that holds a zero. Raises E0319."""
    divisor = operands[1]
    if divisor is not None and divisor.dtype.is_integer and bool(np.any(divisor.array == 0)):
        raise OpError(codes.DIVISION_BY_ZERO, "division by zero", at=1, under="this is 0 or holds a 0")


def _no_negative_exponent(operands: Sequence[Tensor | None]) -> None:
    """Refuse an integer power with a negative constant. Raises E0320."""
    exponent = operands[1]
    if exponent is not None and exponent.dtype.is_integer and bool(np.any(exponent.array < 0)):
        raise OpError(
            codes.NEGATIVE_POWER,
            "an integer to a negative power is not an integer",
            at=1,
            under="negative",
            help=around("cast the base to a float first, such as ({} as f32) ** -1", "{} as f32", 0),
        )


# --- references


def _divide(a: Array, b: Array) -> Any:
    if a.dtype.kind == "f":
        return np.divide(a, b)
    quotient = np.floor_divide(a, b)
    inexact = quotient * b != a
    return quotient + (inexact & ((a < 0) != (b < 0))).astype(a.dtype)


def _floor_divide(_: Attributes, a: Array, b: Array) -> Array:
    # Floats: the floor of the quotient as the dtype rounds it, which every target can say in the same two steps.
    with np.errstate(all="ignore"):
        if a.dtype.kind != "f":
            return np.asarray(np.floor_divide(a, b))
        return np.asarray(np.floor(np.divide(wide(a), wide(b)).astype(a.dtype)))


def _power(a: Array, b: Array) -> Any:
    if a.dtype.kind != "i":
        return np.power(a, b)
    # NumPy refuses negative exponents; here the real value is truncated toward zero, so only 1 and -1 stay.
    whole = np.power(a, np.maximum(b, 0))
    unit = np.where(b & 1, a, a * a)
    return np.where(b >= 0, whole, np.where(np.abs(a) == 1, unit, 0))


_NAN = "NaN in either operand gives NaN"
_ARITHMETIC = {"nan": _NAN, "overflow": "integers wrap modulo 2^n; floats become infinite"}
_EXTREME = {
    "nan": "unspecified which value wins; the reference propagates NaN",
    "ties": "the sign of a zero result is unspecified",
}
_ZERO = "integers: unspecified, an error where the divisor is a constant with a zero; "
_LOWEST = "the lowest signed integer divided by -1 is unspecified; in the reference it wraps to itself"
_STOPS = {
    "integers on ONNX Runtime CPU": "a zero divisor is a run-time error; "
    "the lowest integer and -1 end the process on x86"
}

ADD = _binary(
    "add", "+", NUMERIC, np.add, "The sum.", "DML_ELEMENT_WISE_ADD_OPERATOR_DESC; ONNX Add", notes=_ARITHMETIC
)
SUB = _binary(
    "sub",
    "-",
    NUMERIC,
    np.subtract,
    "The difference.",
    "DML_ELEMENT_WISE_SUBTRACT_OPERATOR_DESC; ONNX Sub",
    notes=_ARITHMETIC,
)
MUL = _binary(
    "mul",
    "*",
    NUMERIC,
    np.multiply,
    "The product.",
    "DML_ELEMENT_WISE_MULTIPLY_OPERATOR_DESC; ONNX Mul",
    notes=_ARITHMETIC,
)
DIV = _binary(
    "div", "/", NUMERIC, _divide, "The quotient: real of floats, truncated toward zero of integers.",
    "DML_ELEMENT_WISE_DIVIDE_OPERATOR_DESC; ONNX Div", check=_no_zero_divisor, symbol_dtypes=FLOATS,
    notes={
        "dtypes": "/ takes floats only; integers have // for the floor and onnx.Div for this quotient",
        "nan": _NAN,
        "overflow": _LOWEST,
        "zero divisor": _ZERO + "floats: an infinity, or NaN for 0 / 0",
        **_STOPS,
    },
)  # fmt: skip
FLOORDIV = Operation(
    name="floordiv",
    title="FloorDiv",
    operands=(Operand("a", NUMERIC), Operand("b", NUMERIC)),
    infer=_same,
    reference=_floor_divide,
    summary="The floor of the quotient; of floats the floor of the quotient as the dtype rounds it.",
    symbol="//",
    source="Python's // for integers; ONNX Floor of Div for floats",
    check=_no_zero_divisor,
    notes={
        "nan": _NAN,
        "overflow": _LOWEST,
        "zero divisor": _ZERO + "floats: an infinity, or NaN for 0 // 0",
        **_STOPS,
    },
)
MOD = _binary(
    "mod", "%", NUMERIC, np.mod, "The remainder, with the divisor's sign.",
    "DML_ELEMENT_WISE_MODULUS_FLOOR_OPERATOR_DESC; ONNX Mod; Python's %", check=_no_zero_divisor,
    notes={"nan": _NAN, "zero divisor": _ZERO + "floats: NaN", **_STOPS},
)  # fmt: skip
POW = _binary(
    "pow", "**", NUMERIC, _power, "a to the power b.", "DML_ELEMENT_WISE_POW_OPERATOR_DESC; ONNX Pow",
    check=_no_negative_exponent,
    notes={
        "nan": "NaN, but x ** 0 and 1 ** x are 1; -inf ** 0.5 is unspecified, infinity or as a square root NaN",
        "overflow": "integers: unspecified, the reference wraps modulo 2^n; floats become infinite",
        "overflow on ONNX Runtime CPU": "integers pass through f64, so that large ones lose digits and too large ones "
        "become the lowest",
        "negative exponent": "integers: an error where the exponent is a constant, else unspecified; "
        "the reference truncates the real value toward zero",
    },
)  # fmt: skip
MIN = _binary(
    "min",
    None,
    NUMERIC,
    np.minimum,
    "The smaller element.",
    "DML_ELEMENT_WISE_MIN_OPERATOR_DESC; ONNX Min",
    notes=_EXTREME,
)
MAX = _binary(
    "max",
    None,
    NUMERIC,
    np.maximum,
    "The larger element.",
    "DML_ELEMENT_WISE_MAX_OPERATOR_DESC; ONNX Max",
    notes=_EXTREME,
)
AND = _binary(
    "and", "&", BITS, np.bitwise_and, "Logical and of bool, bitwise and of integers.",
    "DML_ELEMENT_WISE_LOGICAL_AND_OPERATOR_DESC, DML_ELEMENT_WISE_BIT_AND_OPERATOR_DESC; ONNX And, BitwiseAnd",
)  # fmt: skip
OR = _binary(
    "or", "|", BITS, np.bitwise_or, "Logical or of bool, bitwise or of integers.",
    "DML_ELEMENT_WISE_LOGICAL_OR_OPERATOR_DESC, DML_ELEMENT_WISE_BIT_OR_OPERATOR_DESC; ONNX Or, BitwiseOr",
)  # fmt: skip
XOR = _binary(
    "xor", "^", BITS, np.bitwise_xor, "Exclusive or of bool, bitwise exclusive or of integers.",
    "DML_ELEMENT_WISE_LOGICAL_XOR_OPERATOR_DESC, DML_ELEMENT_WISE_BIT_XOR_OPERATOR_DESC; ONNX Xor, BitwiseXor",
)  # fmt: skip
EQUAL = _compare(
    "equal",
    "==",
    DTYPES,
    np.equal,
    "True where a equals b.",
    "DML_ELEMENT_WISE_LOGICAL_EQUALS_OPERATOR_DESC; ONNX Equal",
    "NaN equals nothing",
)
NOT_EQUAL = _compare(
    "not_equal",
    "!=",
    DTYPES,
    np.not_equal,
    "True where a differs from b.",
    "ONNX Not of Equal",
    "NaN differs from everything",
)
LESS = _compare(
    "less",
    "<",
    NUMERIC,
    np.less,
    "True where a is less than b.",
    "DML_ELEMENT_WISE_LOGICAL_LESS_THAN_OPERATOR_DESC; ONNX Less",
    "false",
)
LESS_EQUAL = _compare(
    "less_equal", "<=", NUMERIC, np.less_equal, "True where a is at most b.",
    "DML_ELEMENT_WISE_LOGICAL_LESS_THAN_OR_EQUAL_OPERATOR_DESC; ONNX LessOrEqual", "false",
)  # fmt: skip
GREATER = _compare(
    "greater", ">", NUMERIC, np.greater, "True where a is greater than b.",
    "DML_ELEMENT_WISE_LOGICAL_GREATER_THAN_OPERATOR_DESC; ONNX Greater", "false",
)  # fmt: skip
GREATER_EQUAL = _compare(
    "greater_equal", ">=", NUMERIC, np.greater_equal, "True where a is at least b.",
    "DML_ELEMENT_WISE_LOGICAL_GREATER_THAN_OR_EQUAL_OPERATOR_DESC; ONNX GreaterOrEqual", "false",
)  # fmt: skip

BINARY: tuple[Operation, ...] = (
    ADD, SUB, MUL, DIV, FLOORDIV, MOD, POW, MIN, MAX, AND, OR, XOR,
    EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, GREATER, GREATER_EQUAL,
)  # fmt: skip
