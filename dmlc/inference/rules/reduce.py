"""Reductions and selections."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from dmlc.inference.fact import FLOATS, OPEN, Element, Fact, Open, fitting, of_elements
from dmlc.inference.query import Fault, Query, place
from dmlc.inference.registry import rule
from dmlc.ir import Dim, Shape, product
from dmlc.ops.rules import reduced_shape

#: The opset from which axes are an operand.
_AXES_SINCE = {"ReduceSum": 13}


@rule(
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin"),
    *("ReduceProd", "ReduceSum", "ReduceSumSquare"),
)
def reduction(q: Query) -> Sequence[Fact]:
    element, shape = q.element(0), q.shape(0)
    keep = q.integer("keepdims", 1)
    since = _AXES_SINCE.get(q.op_type, 18)
    given: tuple[int, ...] | None
    if q.opset < since:
        given = q.integers("axes") or ()
    else:
        given = q.numbers(1) if q.has(1) else ()
        if q.has(1) and given is None:
            return [Fact(element, _of_unknown_axes(q, shape, keep))]
        if not given and q.integer("noop_with_empty_axes"):
            return [Fact(element, shape)]
    if shape is None:
        return [Fact(element, None if given or keep else ())]
    out = reduced_shape(shape, [place(a, len(shape)) for a in given or range(len(shape))], bool(keep))
    total = _joined(q) if len(shape) == 1 else OPEN
    if isinstance(total, Open):
        return [Fact(element, out)]
    elements = np.empty((1,) if keep else (), object)
    elements[...] = total
    return [of_elements(element, elements)]


def _joined(q: Query) -> Element:
    """The one element that is left of a known list: a largest, a smallest, a product or a sum."""
    elements = q.elements(0)
    items: list[Any] = [] if elements is None else elements.tolist()
    if not items or any(isinstance(e, Open) for e in items):
        return OPEN
    if len(items) == 1 and q.op_type in ("ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceMean"):
        return fitting(q.element(0), items[0])
    if q.element(0) in FLOATS or q.op_type not in ("ReduceMax", "ReduceMin", "ReduceProd", "ReduceSum"):
        return OPEN
    if q.op_type in ("ReduceProd", "ReduceSum"):
        total: Dim = product(items) if q.op_type == "ReduceProd" else sum(items)
        return total
    if not all(isinstance(e, int) for e in items):
        return OPEN
    best: int = max(items) if q.op_type == "ReduceMax" else min(items)
    return best


def _of_unknown_axes(q: Query, shape: Shape | None, keep: int) -> Shape | None:
    """Every axis may be reduced where axes are kept; a size of 1 stays. Where they are not kept, one of them goes, but
    two may name the same: ONNX Runtime takes an axis that is given twice."""
    if shape is None:
        return None
    if keep:
        return tuple([1 if size == 1 else q.new_dim() for size in shape])
    count = q.shape(1)
    return q.fresh_shape(len(shape) - 1) if count == (1,) and shape else None


@rule("ArgMax", "ArgMin")
def selection(q: Query) -> Sequence[Fact]:
    shape, keep = q.shape(0), q.integer("keepdims", 1)
    if shape is None:
        return [Fact(TensorProto.INT64)]
    return [Fact(TensorProto.INT64, reduced_shape(shape, [q.axis(0, len(shape))], bool(keep)))]


@rule("TopK")
def top_k(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    if shape is None:
        return [Fact(q.element(0)), Fact(TensorProto.INT64)]
    axis = q.axis(-1, len(shape))
    sizes = [q.integer("k")] if q.opset < 10 else (q.sizes(1) or [])
    k = q.size_of(sizes[0]) if sizes else q.new_dim()
    size = shape[axis]
    if isinstance(k, int) and isinstance(size, int) and k > size:
        why = f"{k} elements are picked from {size}"
        if q.opset >= 10:
            raise Fault(why)
        q.fails(why)  # ONNX does not look at it
    out = (*shape[:axis], k, *shape[axis + 1 :])
    return [Fact(q.element(0), out), Fact(TensorProto.INT64, out)]


@rule("LayerNormalization")
def layer_norm(q: Query) -> Sequence[Fact]:
    shape, element = q.shape(0), q.element(0)
    statistics = q.integer("stash_type", 1) if q.domain == "" else TensorProto.FLOAT
    if q.results > 1 and statistics not in (TensorProto.FLOAT, TensorProto.BFLOAT16):
        raise Fault(f"stash_type is {statistics}: Mean and InvStdDev are float or bfloat16")
    first = Fact(element, shape)
    if shape is None:
        return [first, Fact(statistics), Fact(statistics)]
    axis = q.axis(-1, len(shape))
    kept = (*shape[:axis], *[1] * (len(shape) - axis))
    return [first, Fact(statistics, kept), Fact(statistics, kept)]
