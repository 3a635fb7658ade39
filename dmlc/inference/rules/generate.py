"""Operators that make a tensor from sizes or attributes."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod

import numpy as np
from onnx import TensorProto

from dmlc.inference.fact import FLOATS, INTEGERS, MOST_ELEMENTS, OPEN, Fact, Open, of_array, of_elements, vector
from dmlc.inference.query import Fault, Query
from dmlc.inference.registry import rule
from dmlc.ir import Dim, DimExpr, Tensor, floordiv
from dmlc.onnx_schema.types import ELEMENT_TYPE


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
