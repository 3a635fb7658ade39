"""Operators that pick elements by index."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import TensorProto

from dmlc.inference.fact import MOST_ELEMENTS, OPEN, Elements, Fact, of_elements
from dmlc.inference.query import Fault, Query, place
from dmlc.inference.registry import rule
from dmlc.ir import Dim


@rule("Gather")
def gather(q: Query) -> Sequence[Fact]:
    data, indices = q.shape(0), q.shape(1)
    if data is None or indices is None:
        return [Fact(q.element(0))]
    axis = q.axis(0, len(data))
    elements, places = q.elements(0), q.elements(1)
    size = data[axis]
    if places is not None and isinstance(size, int):
        beyond = [p for p in places.ravel().tolist() if isinstance(p, int) and not -size <= p < size]
        if beyond:
            q.fails(f"index {beyond[0]} does not exist: axis {axis} has {size} elements")
    if elements is not None and places is not None:
        return [of_elements(q.element(0), _picked(elements, places, axis))]
    return [Fact(q.element(0), (*data[:axis], *indices, *data[axis + 1 :]))]


def _picked(elements: Elements, places: Elements, axis: int) -> Elements:
    """The elements at the places; those at a place that is not known, or does not exist, are open."""
    size = elements.shape[axis]
    known = [p if isinstance(p, int) and -size <= p < size else None for p in places.ravel().tolist()]
    if size == 0:
        out = np.empty((*elements.shape[:axis], *places.shape, *elements.shape[axis + 1 :]), object)
        out[...] = OPEN
        return out
    taken = elements.take([0 if p is None else p for p in known], axis=axis)
    if None in known:
        taken = taken.copy()
        at = [slice(None)] * taken.ndim
        for i, p in enumerate(known):
            if p is None:
                at[axis] = slice(i, i + 1)
                taken[tuple(at)] = OPEN
    return taken.reshape((*elements.shape[:axis], *places.shape, *elements.shape[axis + 1 :]))


@rule("GatherElements")
def gather_elements(q: Query) -> Sequence[Fact]:
    return [Fact(q.element(0), q.shape(1))]


@rule("GatherND")
def gather_nd(q: Query) -> Sequence[Fact]:
    data, indices = q.shape(0), q.shape(1)
    if data is None or indices is None or not indices or not isinstance(indices[-1], int):
        return [Fact(q.element(0))]
    depth = indices[-1] + q.integer("batch_dims")
    if depth > len(data):
        raise Fault(f"{depth} indices choose from {len(data)} axes")
    return [Fact(q.element(0), (*indices[:-1], *data[depth:]))]


@rule("Compress", counts=True)
def compress(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    if "axis" not in q.attributes:
        return [Fact(q.element(0), (q.new_dim(),))]
    if shape is None:
        return [Fact(q.element(0))]
    axis = q.axis(0, len(shape))
    return [Fact(q.element(0), (*shape[:axis], q.new_dim(), *shape[axis + 1 :]))]


@rule("NonZero", counts=True)
def non_zero(q: Query) -> Sequence[Fact]:
    rank, numbers = q.rank(0), q.numbers(0)
    count: Dim = q.new_dim() if numbers is None else sum([number != 0 for number in numbers])
    return [Fact(TensorProto.INT64, (q.new_dim() if rank is None else max(rank, 1), count))]


@rule("Unique", counts=True)
def unique(q: Query) -> Sequence[Fact]:
    count, shape = q.new_dim(), q.shape(0)
    lists = [
        Fact(TensorProto.INT64, (count,)),
        Fact(TensorProto.INT64, (q.new_dim(),)),
        Fact(TensorProto.INT64, (count,)),
    ]
    if "axis" not in q.attributes:
        return [Fact(q.element(0), (count,)), *lists]
    if shape is None:
        return [Fact(q.element(0)), *lists]
    axis = q.axis(0, len(shape))
    return [Fact(q.element(0), (*shape[:axis], count, *shape[axis + 1 :])), *lists]


@rule("OneHot")
def one_hot(q: Query) -> Sequence[Fact]:
    indices, depth = q.shape(0), q.elements(1)
    if indices is None:
        return [Fact(q.element(2))]
    axis = place(q.integer("axis", -1), len(indices) + 1)
    size = depth.ravel()[0] if depth is not None and depth.size == 1 else None
    length = size if isinstance(size, int) and not isinstance(size, bool) else None
    if length is None and size is not None and size is not OPEN and not isinstance(size, float):
        length = size
    hot = _hot(q, length, axis) if isinstance(length, int) else None
    if hot is not None:
        return [of_elements(q.element(2), hot)]
    return [Fact(q.element(2), (*indices[:axis], q.new_dim() if length is None else length, *indices[axis:]))]


def _hot(q: Query, length: int, axis: int) -> Elements | None:
    """The elements, where both values are known and few; PyTorch counts repetitions so."""
    places, values = q.elements(0), q.elements(2)
    if places is None or values is None or values.size != 2 or not 0 < length * places.size <= MOST_ELEMENTS:
        return None
    off, on = values.ravel().tolist()
    out = np.full((places.size, length), off, object)
    for row, index in zip(out, places.ravel().tolist(), strict=True):
        if not isinstance(index, int):
            row[:] = OPEN
        elif -length <= index < length:
            row[index] = on
    return np.moveaxis(out.reshape(*places.shape, length), -1, axis)


@rule("NonMaxSuppression", counts=True)
def suppression(q: Query) -> Sequence[Fact]:
    return [Fact(TensorProto.INT64, (q.new_dim(), 3))]
