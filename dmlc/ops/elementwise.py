"""Operations on each element of one tensor. A declaration here is the only code that a new one needs."""

# mypy: disable-error-code="no-any-return"
# Arrays have no element type in functions that generated code copies: one function serves all dtypes.

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import field

from dmlc.ir import FLOATS, INTEGERS, NUMERIC, Array, Attributes, DType, Inference, Operand, Operation, TensorType
from dmlc.ir.dtype import bool_, i8, i16, i32, i64
from dmlc.ops.attributes import RealKind, WordKind, attribute
from dmlc.ops.literals import quiet
from dmlc.ops.rules import same_type

SIGNED: tuple[DType, ...] = (*FLOATS, i8, i16, i32, i64)
BITS: tuple[DType, ...] = (*INTEGERS, bool_)


class UnaryOperation(Operation, frozen=True, eq=False, kw_only=True):
    """An elementwise operation of one operand. Every list of such operations elsewhere derives from these fields.

    ``function`` computes one array, with the attributes as keywords. Generated NumPy code calls ``numpy`` if it names
    a function of NumPy, and else a copy of ``function``, which then uses nothing but ``np``.

    ``onnx`` is the ONNX operator that computes the same at every opset and dtype, with attributes of the same names
    and defaults. ``directml`` is the DirectML operator, ``directml_fields`` its fixed fields; an attribute ``alpha``
    becomes the field ``Alpha``. An empty name means that the code generator has a lowering of its own.

    ``rounding``: ``exact`` if every result is a number of the dtype (a choice, a sign, an integer), ``correct`` if IEEE
    754 rounds it to the nearest, ``approximate`` if kernels differ in the last digits. ``rises``: the real function
    never falls on its domain, and strictly rises unless ``rounding`` is ``exact``. ``jumps``: a small change of the
    operand can change the result by a step. ``domain_from`` is the smallest number whose result is not NaN. ``bounds``
    enclose every result but NaN.
    """

    function: Callable[..., Any]
    numpy: str = ""
    onnx: str = ""
    directml: str = ""
    directml_fields: Mapping[str, Any] = field(default_factory=dict)
    rounding: Literal["exact", "correct", "approximate"] = "approximate"
    rises: bool = False
    jumps: bool = False
    domain_from: float = -math.inf
    bounds: tuple[float, float] = (-math.inf, math.inf)

    #: Writes the operation in others, ``o("abs", x)``, ``o("+", x, 1)``, for dtypes that a target has no kernel for.
    composed: Callable[..., Any] | None = None

    def __repr__(self) -> str:
        return Operation.__repr__(self)


def attributes_of(op: UnaryOperation, attributes: Attributes) -> dict[str, Any]:
    """Return the attributes of a call by name, as ``function`` and the ONNX operator take them."""
    return {name: getattr(attributes, name) for name in op.attributes.__struct_fields__}


def _unary(
    name: str,
    dtypes: tuple[DType, ...],
    function: Callable[..., Any],
    summary: str,
    *,
    onnx: str,
    directml: str,
    notes: Mapping[str, str],
    source: str = "",
    attributes: type[Attributes] = Attributes,
    **facts: Any,
) -> UnaryOperation:
    """Declare an operation whose result has the operand's type."""
    names = attributes.__struct_fields__
    return UnaryOperation(
        name=name,
        operands=(Operand("x", dtypes),),
        attributes=attributes,
        infer=same_type,
        reference=quiet(lambda a, x: function(x, **{n: getattr(a, n) for n in names})),
        summary=summary,
        source=source or f"DML_{directml}_OPERATOR_DESC; ONNX {onnx}",
        notes=notes,
        function=function,
        onnx=onnx,
        directml=directml,
        **facts,
    )


def _test(name: str, function: Callable[[Array], Any], summary: str, **facts: Any) -> UnaryOperation:
    """Declare a test of each element, whose result is bool."""

    def infer(call: Inference) -> Sequence[TensorType]:
        return [call.type(0).with_dtype(bool_)]

    def reference(_: Attributes, x: Array) -> Array:
        return np.asarray(function(x))

    return UnaryOperation(
        name=name,
        operands=(Operand("x", FLOATS),),
        infer=infer,
        reference=reference,
        summary=summary,
        source=f"DML_{facts['directml']}_OPERATOR_DESC; ONNX {facts['onnx']}",
        function=function,
        rounding="exact",
        bounds=(0, 1),
        **facts,
    )


def _sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)); the exponential of a non-positive number never overflows."""
    small = np.exp(-np.abs(x))
    return (np.where(x >= 0, 1, small) / (1 + small)).astype(x.dtype, copy=False)


def _relu(x: np.ndarray) -> np.ndarray:
    """x where it is positive, else 0."""
    return np.maximum(x, x.dtype.type(0))


def _softsign(x: np.ndarray) -> np.ndarray:
    """x / (1 + |x|)."""
    return x / (x.dtype.type(1) + np.abs(x))


def _softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + exp(x)); the exponential of a non-positive number never overflows."""
    return np.maximum(x, x.dtype.type(0)) + np.log1p(np.exp(-np.abs(x)))


def _elu(x: np.ndarray, alpha: float) -> np.ndarray:
    """x where it is positive, else alpha * (exp(x) - 1)."""
    return np.where(x > 0, x, x.dtype.type(alpha) * np.expm1(np.minimum(x, x.dtype.type(0))))


def _leaky_relu(x: np.ndarray, alpha: float) -> np.ndarray:
    """x where it is 0 or more, else alpha * x."""
    return np.where(x < 0, x.dtype.type(alpha) * x, x)


def _hard_sigmoid(x: np.ndarray, alpha: float, beta: float) -> np.ndarray:
    """alpha * x + beta, but not below 0 and not above 1."""
    line = x.dtype.type(alpha) * x + x.dtype.type(beta)
    return np.clip(line, x.dtype.type(0), x.dtype.type(1))


def _silu(x: np.ndarray) -> np.ndarray:
    """x * sigmoid(x): for a large number below 0 it is as small as it should be, for exp(-x) would overflow."""
    return x * _sigmoid(x)


_ERF = np.frompyfunc(math.erf, 1, 1)


def _erf(x: Array) -> Any:
    return np.asarray(_ERF(x.astype(np.float64)), dtype=np.float64)


def _gelu(x: Array, approximate: str) -> Any:
    if approximate == "none":
        return x * (1 + _erf(x * math.sqrt(0.5))) / 2
    return x / (1 + np.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)))


_NAN = {"nan": "NaN gives NaN"}
_WRAPS = {**_NAN, "overflow": "of the type's lowest value it wraps to itself"}
_NOT_OF_INFINITY = {**_NAN, "domain": "of an infinity it is NaN"}
_NOT_OF_MINUS_INFINITY = {**_NAN, "domain": "of -inf it is NaN"}

ABS = _unary(
    "abs", NUMERIC, np.abs, "The absolute value.", onnx="Abs", directml="",
    source="DML_ELEMENT_WISE_ABS_OPERATOR_DESC; ONNX Abs",
    numpy="abs", rounding="exact", bounds=(0, math.inf), notes=_WRAPS,
)  # fmt: skip
NEG = _unary(
    "neg", SIGNED, np.negative, "The negative.", onnx="Neg", directml="ELEMENT_WISE_NEGATE", symbol="-",
    numpy="negative", rounding="exact", notes=_WRAPS,
)  # fmt: skip
EXP = _unary(
    "exp", FLOATS, np.exp, "The exponential.", onnx="Exp", directml="ELEMENT_WISE_EXP", numpy="exp",
    rises=True, bounds=(0, math.inf), notes={**_NAN, "overflow": "inf"},
)  # fmt: skip
LOG = _unary(
    "log", FLOATS, np.log, "The natural logarithm.", onnx="Log", directml="ELEMENT_WISE_LOG", numpy="log",
    rises=True, domain_from=0, notes={**_NAN, "domain": "of 0 it is -inf, of a negative number NaN"},
)  # fmt: skip
SQRT = _unary(
    "sqrt", FLOATS, np.sqrt, "The square root.", onnx="Sqrt", directml="ELEMENT_WISE_SQRT", numpy="sqrt",
    rounding="correct", rises=True, domain_from=0, bounds=(0, math.inf),
    notes={**_NAN, "domain": "of a negative number it is NaN"},
)  # fmt: skip
RECIPROCAL = _unary(
    "reciprocal", FLOATS, np.reciprocal, "One over x.", onnx="Reciprocal", directml="ELEMENT_WISE_RECIP",
    numpy="reciprocal", notes={**_NAN, "domain": "of 0 it is an infinity with the zero's sign"},
)  # fmt: skip
SIGN = _unary(
    "sign", NUMERIC, np.sign, "-1, 0 or 1.", onnx="Sign", directml="ELEMENT_WISE_SIGN", numpy="sign",
    rounding="exact", rises=True, jumps=True, bounds=(-1, 1),
    notes={"nan": "unspecified; NaN in the reference", "nan on ONNX Runtime CPU": "0"},
)  # fmt: skip
FLOOR = _unary(
    "floor", FLOATS, np.floor, "The largest integer not above x.", onnx="Floor", directml="ELEMENT_WISE_FLOOR",
    numpy="floor", rounding="exact", rises=True, jumps=True, notes=_NAN,
)  # fmt: skip
CEIL = _unary(
    "ceil", FLOATS, np.ceil, "The smallest integer not below x.", onnx="Ceil", directml="ELEMENT_WISE_CEIL",
    numpy="ceil", rounding="exact", rises=True, jumps=True, notes=_NAN,
)  # fmt: skip
ROUND = _unary(
    "round", FLOATS, np.rint, "The nearest integer; halves go to the even one.", onnx="Round",
    directml="ELEMENT_WISE_ROUND", directml_fields={"RoundingMode": "DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN"},
    source="DML_ELEMENT_WISE_ROUND_OPERATOR_DESC, DML_ROUNDING_MODE_HALVES_TO_NEAREST_EVEN; ONNX Round",
    numpy="rint", rounding="exact", rises=True, jumps=True, notes=_NAN,
)  # fmt: skip
SIN = _unary(
    "sin", FLOATS, np.sin, "The sine of radians.", onnx="Sin", directml="ELEMENT_WISE_SIN", numpy="sin",
    bounds=(-1, 1), notes=_NOT_OF_INFINITY,
)  # fmt: skip
COS = _unary(
    "cos", FLOATS, np.cos, "The cosine of radians.", onnx="Cos", directml="ELEMENT_WISE_COS", numpy="cos",
    bounds=(-1, 1), notes=_NOT_OF_INFINITY,
)  # fmt: skip
TANH = _unary(
    "tanh", FLOATS, np.tanh, "The hyperbolic tangent.", onnx="Tanh", directml="ELEMENT_WISE_TANH", numpy="tanh",
    rises=True, bounds=(-1, 1), notes=_NAN,
)  # fmt: skip
SIGMOID = _unary(
    "sigmoid", FLOATS, _sigmoid, "1 / (1 + exp(-x)).", onnx="Sigmoid", directml="ACTIVATION_SIGMOID",
    rises=True, bounds=(0, 1), notes={**_NAN, "overflow": "none: 0 and 1 at the ends"},
)  # fmt: skip
RELU = _unary(
    "relu", SIGNED, _relu, "x where it is positive, else 0.", onnx="Relu", directml="",
    source="DML_ACTIVATION_RELU_OPERATOR_DESC; ONNX Relu", rounding="exact", rises=True, bounds=(0, math.inf),
    notes={"nan": "NaN gives NaN in the reference"},
)  # fmt: skip
ERF = _unary(
    "erf", FLOATS, _erf, "The error function.", onnx="Erf", directml="ELEMENT_WISE_ERF",
    rises=True, bounds=(-1, 1), notes=_NAN,
)  # fmt: skip
SOFTSIGN = _unary(
    "softsign", FLOATS, _softsign, "x / (1 + abs(x)).", onnx="Softsign", directml="ACTIVATION_SOFTSIGN",
    composed=lambda o, x: o("/", x, o("+", o("abs", x), 1)),
    rises=True, bounds=(-1, 1), notes=_NOT_OF_INFINITY,
)  # fmt: skip


def _log1p(o: Callable[..., Any], x: Any) -> Any:
    """log(1 + x) for x from 0 to 1, to the last places.

    u is 1 + x rounded. log(u) lacks log(1 + (x - (u - 1)) / u), whose operand is as small as a rounding.
    """
    u = o("+", x, 1)
    return o("+", o("log", u), o("/", o("-", x, o("-", u, 1)), u))


def _expm1(o: Callable[..., Any], x: Any) -> Any:
    """exp(x) - 1 to the last places, also near 0: tanh(x / 2) * (exp(x) + 1)."""
    return o("*", o("tanh", o("*", x, 0.5)), o("+", o("exp", x), 1))


SOFTPLUS = _unary(
    "softplus", FLOATS, _softplus, "log(1 + exp(x)).", onnx="Softplus", directml="ACTIVATION_SOFTPLUS",
    composed=lambda o, x: o("+", o("relu", x), _log1p(o, o("exp", o("neg", o("abs", x))))),
    directml_fields={"Steepness": 1.0}, rises=True, bounds=(0, math.inf), notes=_NAN,
)  # fmt: skip


class EluAttributes(Attributes, frozen=True, kw_only=True):
    alpha: Annotated[float, attribute(RealKind(), "factor of the negative part", default=1.0)]


ELU = _unary(
    "elu", FLOATS, _elu, "x where it is positive, else alpha * (exp(x) - 1).", onnx="Elu", directml="ACTIVATION_ELU",
    composed=lambda o, x, alpha: o("+", o("relu", x), o("*", _expm1(o, o("min", x, 0)), alpha)),
    attributes=EluAttributes, notes=_NAN,
)  # fmt: skip


class LeakyReluAttributes(Attributes, frozen=True, kw_only=True):
    alpha: Annotated[float, attribute(RealKind(), "factor of the negative part", default=0.01)]


LEAKY_RELU = _unary(
    "leaky_relu", FLOATS, _leaky_relu, "x where it is 0 or more, else alpha * x.",
    onnx="LeakyRelu", directml="ACTIVATION_LEAKY_RELU",
    composed=lambda o, x, alpha: o("+", o("max", x, 0), o("*", o("min", x, 0), alpha)),
    attributes=LeakyReluAttributes, notes=_NAN,
)  # fmt: skip


class HardSigmoidAttributes(Attributes, frozen=True, kw_only=True):
    alpha: Annotated[float, attribute(RealKind(), "slope of the line", default=0.2)]
    beta: Annotated[float, attribute(RealKind(), "value of the line at 0", default=0.5)]


HARD_SIGMOID = _unary(
    "hard_sigmoid", FLOATS, _hard_sigmoid, "alpha * x + beta, but not below 0 and not above 1.",
    onnx="HardSigmoid", directml="ACTIVATION_HARD_SIGMOID",
    composed=lambda o, x, alpha, beta: o("max", o("min", o("+", o("*", x, alpha), beta), 1), 0),
    attributes=HardSigmoidAttributes, bounds=(0, 1), notes={"nan": "NaN gives NaN in the reference"},
)  # fmt: skip
SILU = _unary(
    "silu", FLOATS, _silu, "x * sigmoid(x).", onnx="", directml="",
    source="DML_ACTIVATION_SWISH_OPERATOR_DESC; ONNX Swish-24",
    composed=lambda o, x: o("*", x, o("sigmoid", x)),
    bounds=(-0.2785, math.inf), notes=_NOT_OF_MINUS_INFINITY,
)  # fmt: skip


class GeluAttributes(Attributes, frozen=True, kw_only=True):
    approximate: Annotated[
        str,
        attribute(
            WordKind("none", "tanh"),
            "tanh: x * sigmoid(2 * sqrt(2 / pi) * (x + 0.044715 * x ** 3)) instead of the error function",
            default="none",
        ),
    ]


def _gelu_composed(o: Callable[..., Any], x: Any, approximate: str) -> Any:
    """The tanh form by sigmoid, as (1 + tanh(u)) / 2 is sigmoid(2 * u): no pass of ONNX Runtime takes that spelling."""
    if approximate == "none":
        return o("*", o("*", x, 0.5), o("+", o("erf", o("*", x, math.sqrt(0.5))), 1))
    linear = 2 * math.sqrt(2 / math.pi)
    factor = o("+", o("*", o("*", x, x), linear * 0.044715), linear)
    return o("*", x, o("sigmoid", o("*", factor, x)))


GELU = _unary(
    "gelu", FLOATS, _gelu, "x * (1 + erf(x / sqrt(2))) / 2, or its approximation by tanh.", onnx="Gelu", directml="",
    source="DML_ACTIVATION_GELU_OPERATOR_DESC; ONNX Gelu-20", composed=_gelu_composed,
    attributes=GeluAttributes, bounds=(-0.1701, math.inf), notes=_NOT_OF_MINUS_INFINITY,
)  # fmt: skip
IS_NAN = _test(
    "is_nan", np.isnan, "True where x is NaN.", onnx="IsNaN", directml="ELEMENT_WISE_IS_NAN", numpy="isnan"
)  # fmt: skip
IS_INF = _test(
    "is_inf", np.isinf, "True where x is an infinity, of either sign.", onnx="IsInf", numpy="isinf", jumps=True,
    directml="ELEMENT_WISE_IS_INFINITY", directml_fields={"InfinityMode": "DML_IS_INFINITY_MODE_EITHER"},
)  # fmt: skip
NOT = _unary(
    "not", BITS, np.invert, "Logical not of bool; all bits flipped of an integer.", onnx="",
    directml="", symbol="!", numpy="invert", rounding="exact",
    source="DML_ELEMENT_WISE_LOGICAL_NOT_OPERATOR_DESC, DML_ELEMENT_WISE_BIT_NOT_OPERATOR_DESC; ONNX Not, BitwiseNot",
    notes={},
)  # fmt: skip

#: Every operation above, in that order.
UNARY: tuple[UnaryOperation, ...] = tuple([op for op in globals().values() if isinstance(op, UnaryOperation)])
