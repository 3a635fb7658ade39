"""Operators that work element by element or keep the shape of their first operand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import ceil, copysign, isqrt, prod
from operator import add
from typing import Any

import numpy as np
from onnx import TensorProto

from dmlc.inference.fact import (
    FLOATS,
    INTEGERS,
    MOST_ELEMENTS,
    OPEN,
    Element,
    Elements,
    Fact,
    Open,
    of_array,
    of_elements,
    vector,
)
from dmlc.inference.query import Fault, Query, need_equal
from dmlc.inference.registry import rule
from dmlc.ir import Dim, DimExpr, Tensor, floordiv, larger, smaller
from dmlc.onnx_schema.types import ELEMENT_TYPE


def same(q: Query, index: int = 0) -> Fact:
    """The type of an operand, without its elements."""
    fact = q.fact(index)
    return Fact(fact.element, fact.shape, None, fact.proto)


def mapped(q: Query, function: Callable[..., Any]) -> Elements | None:
    """The function over the elements of all operands, broadcast; None where one of them keeps no elements."""
    given = [q.elements(i) for i in range(len(q.operands))]
    present = [g for g in given if g is not None]
    if len(present) < len(given) or max([np.size(p) for p in present], default=0) == 0:
        return None
    out = np.frompyfunc(lambda *xs: OPEN if any(isinstance(x, Open) for x in xs) else function(*xs), len(given), 1)(
        *present
    )
    array = np.empty(np.shape(out), object)
    array[...] = out
    return array


@rule(
    *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BatchNormalization", "Bernoulli", "Celu", "Cos", "Cosh"),
    *("CumProd", "CumSum", "Elu", "Erf", "Exp", "Gelu", "GroupNormalization", "HardSigmoid", "HardSwish", "Hardmax"),
    *("InstanceNormalization", "LRN", "LeakyRelu", "Log", "LogSoftmax", "LpNormalization", "MeanVarianceNormalization"),
    *("Mish", "PRelu", "RMSNormalization", "Reciprocal", "Relu", "ReverseSequence", "RotaryEmbedding", "Round"),
    *("Scatter", "ScatterElements", "ScatterND", "Selu", "Shrink", "Sigmoid", "Sign", "Sin", "Sinh", "Softmax"),
    *("Softplus", "Softsign", "Swish", "Tan", "Tanh", "TensorScatter", "ThresholdedRelu", "Trilu"),
    *("BitwiseNot", "Clip", "Not"),
)
def like_the_first(q: Query) -> Sequence[Fact]:
    first = same(q)
    if q.op_type in ("Softmax", "LogSoftmax", "Hardmax") and first.shape is not None:
        q.axis(-1 if q.opset >= 13 else 1, len(first.shape))
    if q.op_type == "Bernoulli":
        return [Fact(q.integer("dtype") or first.element, first.shape)]
    if q.op_type == "Not" and (found := mapped(q, lambda x: not x)) is not None:
        return [of_elements(TensorProto.BOOL, found)]
    if q.op_type == "Trilu":
        q.need_rank(0, 2, -1)
    if q.op_type == "BatchNormalization" and q.opset >= 9:
        for index in range(1, 5):
            q.need_rank(index, 1)
            sizes = q.shape(index)
            if sizes and first.shape is not None and len(first.shape) > 1:
                need_equal(sizes[0], first.shape[1], f"the size of operand {index + 1} and the number of channels")
    if q.op_type == "BatchNormalization" and q.results > 1:
        statistics = same(q, 3)
        return [first, *[statistics] * 4]
    return [first]


@rule("Identity")
def identity(q: Query) -> Sequence[Fact]:
    return [q.fact(0)]


@rule("Dropout")
def dropout(q: Query) -> Sequence[Fact]:
    first = same(q)
    mask = TensorProto.BOOL if q.opset >= 10 else first.element
    return [first, Fact(mask, first.shape)]


@rule("Abs", "Ceil", "Floor", "Neg", "Sqrt")
def unary(q: Query) -> Sequence[Fact]:
    first, dims = q.fact(0), q.dims

    def computed(x: Element) -> Element:
        if q.op_type == "Sqrt":
            return _root(x)
        if q.op_type == "Neg":
            return -x if not isinstance(x, bool) else OPEN
        if isinstance(x, DimExpr):
            return x if q.op_type != "Abs" or dims.interval(x)[0] >= 0 else OPEN
        assert not isinstance(x, Open)
        if q.op_type == "Abs":
            return abs(x)
        return float(np.ceil(x) if q.op_type == "Ceil" else np.floor(x))

    found = mapped(q, computed)
    return [same(q) if found is None else of_elements(first.element, found)]


# --- two operands


@rule("Add", "Sub", "Mul", "Div", "Mod", "Pow", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor")
def binary(q: Query) -> Sequence[Fact]:
    element = q.element(0) or (q.element(1) if q.op_type != "Pow" else 0)
    shape = _aligned(q) if q.opset < 7 else q.broadcast(q.shape(0), q.shape(1))
    combine = _COMBINE.get(q.op_type)
    if combine is None or q.opset < 7 or element not in INTEGERS | FLOATS:
        return [Fact(element, shape)]
    found = mapped(q, lambda a, b: combine(q, element, a, b))
    return [Fact(element, shape) if found is None else of_elements(element, found)]


def _aligned(q: Query) -> tuple[Dim, ...] | None:
    """Before opset 7 the second operand is broadcast to the first, where ``broadcast`` says so."""
    return q.shape(0)


def _div(q: Query, element: int, a: Any, b: Any) -> Any:
    if element in FLOATS:
        return a / b if b else OPEN
    if isinstance(a, int) and isinstance(b, int):
        if b == 0:
            return OPEN
        quotient = abs(a) // abs(b)
        return quotient if (a < 0) == (b < 0) else -quotient
    # ONNX truncates; the quotient of two numbers that are not negative is the floor
    return floordiv(a, b) if q.dims.at_most(0, a) and q.dims.interval(b)[0] > 0 else OPEN


def _mod(q: Query, element: int, a: Any, b: Any) -> Any:
    if element in FLOATS or not b or not (isinstance(b, int) or q.dims.interval(b)[0] > 0):
        return OPEN
    if q.integer("fmod"):
        return int(np.fmod(a, b)) if isinstance(a, int) and isinstance(b, int) else OPEN
    return a % b if isinstance(a, int) and isinstance(b, int) else a - floordiv(a, b) * b


def _root(x: Any) -> Element:
    """The square root of a square, which floats hold; the side of a square of tokens is computed so."""
    if not isinstance(x, int | float) or not 0 < x < 2**53 or x != int(x):
        return OPEN
    root = isqrt(int(x))
    return float(root) if root * root == x else OPEN


def _pow(q: Query, element: int, a: Any, b: Any) -> Any:
    if element in FLOATS and b == 0.5:
        return _root(a)
    if isinstance(a, int) and isinstance(b, int) and 0 <= b < 64:
        return a**b
    return OPEN  # a kernel's power of floats is not rounded in one way


_COMBINE: dict[str, Callable[[Query, int, Any, Any], Any]] = {
    "Add": lambda q, e, a, b: a + b,
    "Sub": lambda q, e, a, b: a - b,
    "Mul": lambda q, e, a, b: a * b,
    "Div": _div,
    "Mod": _mod,
    "Pow": _pow,
}


@rule("Max", "Min", "Sum", "Mean")
def variadic(q: Query) -> Sequence[Fact]:
    element = next((q.element(i) for i in range(len(q.operands)) if q.element(i)), 0)
    shape = q.shape(0) if q.opset < 8 else q.broadcast(*[q.shape(i) for i in range(len(q.operands))])
    if q.op_type == "Mean" or (q.op_type == "Sum" and element not in FLOATS):
        return [Fact(element, shape)]
    found = mapped(q, lambda *xs: _chosen(q, xs))
    return [Fact(element, shape) if found is None else of_elements(element, found)]


def _chosen(q: Query, values: Sequence[Any]) -> Any:
    if q.op_type == "Sum":
        return reduce(add, values) if len(values) <= 2 else OPEN  # the order of a longer sum is not stated
    best = values[0]
    for value in values[1:]:
        if isinstance(best, float) or isinstance(value, float):
            if best != best or value != value or (best == value and not _is_same(best, value)):
                return OPEN
            at_most = best <= value
        else:
            proved = q.dims.at_most(best, value)
            if proved is None:
                proved = True if q.dims.equal(best, value) else None
            if proved is None and q.dims.at_most(value, best):
                proved = False
            if proved is None:
                best = larger(best, value) if q.op_type == "Max" else smaller(best, value)
                continue
            at_most = proved
        best = value if at_most == (q.op_type == "Max") else best
    return best


def _is_same(a: Any, b: Any) -> bool:
    """True for equal elements; zeros of different signs are not equal."""
    return type(a) is type(b) and a == b and (not isinstance(a, float) or copysign(1, a) == copysign(1, b))


@rule("Where")
def where(q: Query) -> Sequence[Fact]:
    element = q.element(1) or q.element(2)
    shape = q.broadcast(q.shape(0), q.shape(1), q.shape(2))

    given = [g for g in map(q.elements, range(3)) if g is not None]
    if len(given) < 3 or shape is None:
        return [Fact(element, shape)]

    def choose(condition: Element, a: Element, b: Element) -> Element:
        if isinstance(condition, Open):
            return a if _is_same(a, b) else OPEN
        return a if condition else b

    out = np.empty(np.broadcast_shapes(*[g.shape for g in given]), object)
    out[...] = np.frompyfunc(choose, 3, 1)(*given)
    return [of_elements(element, out)]


# --- Operators that change the element type


def _wanted(q: Query) -> int:
    to = q.integer("to")
    if to not in TensorProto.DataType.values():
        raise Fault(f"to is {to}, which is not an element type")
    return to


@rule("Cast")
def cast(q: Query) -> Sequence[Fact]:
    return [_cast(q, _wanted(q))]


@rule("CastLike")
def cast_like(q: Query) -> Sequence[Fact]:
    return [Fact(q.element(1), q.shape(0))]


@rule("BitCast")
def bit_cast(q: Query) -> Sequence[Fact]:
    return [Fact(_wanted(q), q.shape(0))]


def _cast(q: Query, to: int) -> Fact:
    plain = Fact(to, q.shape(0))
    if to not in INTEGERS | FLOATS | {TensorProto.BOOL} or q.element(0) == TensorProto.STRING:
        return plain
    found = mapped(q, lambda x: _converted(q, x, to))
    return plain if found is None else of_elements(to, found)


def _converted(q: Query, x: Any, to: int) -> Any:
    if isinstance(x, DimExpr):
        if to == TensorProto.BOOL:
            low, high = q.dims.interval(x)
            return True if low > 0 or high < 0 else OPEN
        return x if to in INTEGERS else OPEN  # a float may not hold it
    if to == TensorProto.BOOL:
        return bool(x)
    if to in INTEGERS:
        return int(x) if isinstance(x, int) or abs(x) < 2**63 else OPEN
    return float(x)


@rule("QuantizeLinear")
def quantize(q: Query) -> Sequence[Fact]:
    element = q.element(2) if q.has(2) else q.integer("output_dtype") or TensorProto.UINT8
    return [Fact(element, q.shape(0))]


@rule("DequantizeLinear")
def dequantize(q: Query) -> Sequence[Fact]:
    element = q.integer("output_dtype") or (q.element(1) if q.opset >= 19 else TensorProto.FLOAT)
    return [Fact(element, q.shape(0))]


@rule("DynamicQuantizeLinear")
def quantize_dynamically(q: Query) -> Sequence[Fact]:
    return [Fact(TensorProto.UINT8, q.shape(0)), Fact(TensorProto.FLOAT, ()), Fact(TensorProto.UINT8, ())]


# --- Operators whose result is a truth


@rule("Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor")
def comparison(q: Query) -> Sequence[Fact]:
    shape = q.shape(0) if q.opset < 7 else q.broadcast(q.shape(0), q.shape(1))
    found = None if q.opset < 7 else mapped(q, lambda a, b: _holds(q, a, b))
    return [Fact(TensorProto.BOOL, shape) if found is None else of_elements(TensorProto.BOOL, found)]


def _holds(q: Query, a: Any, b: Any) -> Any:
    kind = q.op_type
    if kind in ("And", "Or", "Xor"):
        return {"And": a and b, "Or": a or b, "Xor": a != b}[kind]
    if isinstance(a, float) or isinstance(b, float):
        truths = {"Equal": a == b, "Greater": a > b, "GreaterOrEqual": a >= b, "Less": a < b, "LessOrEqual": a <= b}
        return truths[kind]
    if kind == "Equal":
        known = q.dims.equal(a, b)
    elif kind in ("LessOrEqual", "Greater"):
        known = q.dims.at_most(a, b)
    else:
        known = q.dims.at_most(b, a)
    if known is None:
        return OPEN
    return known if kind in ("Equal", "LessOrEqual", "GreaterOrEqual") else not known


@rule("IsInf", "IsNaN")
def classification(q: Query) -> Sequence[Fact]:
    return [Fact(TensorProto.BOOL, q.shape(0))]


@rule("OptionalHasElement")
def presence(q: Query) -> Sequence[Fact]:
    return [Fact(TensorProto.BOOL, ())]


# --- Operators that make a tensor from sizes or attributes


@rule("Constant")
def constant(q: Query) -> Sequence[Fact]:
    for name, value in q.attributes.items():
        if isinstance(value, Fact):
            return [value]
        if name == "value" and isinstance(value, Tensor):
            return [of_array(ELEMENT_TYPE[value.dtype], value.array)]
        if name in ("value_int", "value_ints"):
            return [of_array(TensorProto.INT64, np.asarray(value, np.int64))]
        if name in ("value_float", "value_floats"):
            return [of_array(TensorProto.FLOAT, np.asarray(value, np.float32))]
        if name == "value_string":
            return [Fact(TensorProto.STRING, ())]
        if name == "value_strings" and isinstance(value, tuple):
            return [Fact(TensorProto.STRING, (len(value),))]
    return []


@rule("ConstantOfShape")
def constant_of_shape(q: Query) -> Sequence[Fact]:
    value, sizes = q.attributes.get("value"), q.sizes(0)
    element = _element(value)
    if sizes is None:
        return [Fact(element)]
    shape = tuple([q.size_of(s) for s in sizes])
    if any(isinstance(size, int) and size < 0 for size in shape):
        raise Fault(f"a size of {list(map(str, shape))} is negative")
    static = [s for s in shape if isinstance(s, int)]
    is_known = len(static) == len(shape) and min(static, default=0) >= 0 and not isinstance(value, Fact)
    if not is_known or prod(static) > MOST_ELEMENTS:
        return [Fact(element, shape)]
    filled = np.empty(static, object)
    filled[...] = value.array.reshape(-1)[0].item() if isinstance(value, Tensor) else 0.0
    return [of_elements(element, filled)]


def _element(value: object) -> int:
    if isinstance(value, Fact):
        return value.element
    return ELEMENT_TYPE[value.dtype] if isinstance(value, Tensor) else TensorProto.FLOAT


@rule("Range")
def range_(q: Query) -> Sequence[Fact]:
    element = next((q.element(i) for i in range(3) if q.element(i)), 0)
    given = [q.elements(i) for i in range(3)]
    if any(g is None or g.size != 1 for g in given):
        return [Fact(element, (q.new_dim(),))]
    start, limit, step = [g.ravel()[0] for g in given if g is not None]
    if all(isinstance(e, int) for e in (start, limit, step)) and step != 0:
        numbers = range(start, limit, step)
        if not numbers[MOST_ELEMENTS:]:
            return [vector(element, list(numbers))]
        length = -(-(limit - start) // step)  # ``len`` counts no further than a machine word
        return [Fact(element, (length,))]
    if element in FLOATS and all(isinstance(e, float) for e in (start, limit, step)) and step != 0:
        return [Fact(element, (max(ceil((limit - start) / step), 0),))]
    if element in INTEGERS and isinstance(step, int) and step > 0 and not isinstance(start, Open):
        return [Fact(element, (_length(q, start, limit, step),))]
    return [Fact(element, (q.new_dim(),))]


def _length(q: Query, start: Dim, limit: Dim | Open, step: int) -> Dim:
    if not isinstance(limit, (int, DimExpr)) or q.dims.at_most(start, limit) is not True:
        return q.new_dim()
    return floordiv(limit - start + (step - 1), step)


@rule("EyeLike")
def eye(q: Query) -> Sequence[Fact]:
    return [Fact(q.integer("dtype") or q.element(0), q.shape(0))]


@rule("RandomNormal", "RandomUniform")
def random(q: Query) -> Sequence[Fact]:
    return [Fact(q.integer("dtype", TensorProto.FLOAT), q.integers("shape"))]


@rule("RandomNormalLike", "RandomUniformLike")
def random_like(q: Query) -> Sequence[Fact]:
    return [Fact(q.integer("dtype") or q.element(0), q.shape(0))]


@rule("Multinomial")
def multinomial(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    first = q.new_dim() if shape is None else shape[0]
    return [Fact(q.integer("dtype", TensorProto.INT32), (first, q.integer("sample_size", 1)))]


@rule("BlackmanWindow", "HammingWindow", "HannWindow")
def window(q: Query) -> Sequence[Fact]:
    sizes = q.elements(0)
    size = OPEN if sizes is None or sizes.size != 1 else sizes.ravel()[0]
    length = size if isinstance(size, (int, DimExpr)) else q.new_dim()
    return [Fact(q.integer("output_datatype", TensorProto.FLOAT), (length,))]


@rule("MelWeightMatrix")
def mel_weights(q: Query) -> Sequence[Fact]:
    bins, length = q.numbers(0), q.numbers(1)
    rows = length[0] // 2 + 1 if length else q.new_dim()
    return [Fact(q.integer("output_datatype", TensorProto.FLOAT), (rows, bins[0] if bins else q.new_dim()))]
