"""Operators that change the element type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import TensorProto

from dmlc.inference.fact import FLOATS, INTEGERS, OPEN, Fact, of_elements
from dmlc.inference.query import Fault, Query
from dmlc.inference.registry import rule
from dmlc.inference.rules.elementwise import mapped
from dmlc.ir import DimExpr


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
