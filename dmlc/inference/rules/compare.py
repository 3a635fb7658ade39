"""Operators whose result is a truth."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from onnx import TensorProto

from dmlc.inference.fact import OPEN, Fact, of_elements
from dmlc.inference.query import Query
from dmlc.inference.registry import rule
from dmlc.inference.rules.elementwise import mapped


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
