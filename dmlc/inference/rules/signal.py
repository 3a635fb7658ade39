"""Fourier transforms."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.inference.fact import Fact
from dmlc.inference.query import Query, place
from dmlc.inference.registry import rule
from dmlc.ir import Dim, floordiv


@rule("DFT")
def transform(q: Query) -> Sequence[Fact]:
    x, element = q.shape(0), q.element(0)
    if not x:
        return [Fact(element)]
    if q.opset < 20:
        axis: int | None = q.axis(1, len(x))
    else:
        given = q.numbers(2) if q.has(2) else (-2,)
        axis = place(given[0], len(x)) if given else None
    is_inverse, is_half = q.integer("inverse"), q.integer("onesided")
    parts = 1 if is_half and is_inverse else 2
    if axis is None:
        keeps_sizes = not is_half and not q.has(1)
        return [Fact(element, (*(x[:-1] if keeps_sizes else q.fresh_shape(len(x) - 1)), parts))]
    size: Dim = x[axis]
    if q.has(1):
        length = q.sizes(1)
        size = q.size_of(length[0]) if length else q.new_dim()
    out = list(x)
    if is_half and is_inverse:
        size = size if q.has(1) else (size - 1) * 2
    out[axis] = floordiv(size, 2) + 1 if is_half and not is_inverse else size
    out[-1] = parts
    return [Fact(element, tuple(out))]


@rule("STFT")
def short_time_transform(q: Query) -> Sequence[Fact]:
    x, element = q.shape(0), q.element(0)
    step, length = q.numbers(1), q.numbers(3) if q.has(3) else None
    window = q.shape(2) if q.has(2) else None
    size: Dim | None = length[0] if length else (window[0] if window else None)
    if x is None:
        return [Fact(element, q.fresh_shape(4))]
    if size is None or not step:
        return [Fact(element, (x[0], *q.fresh_shape(2), 2))]
    bins = floordiv(size, 2) + 1 if q.integer("onesided", 1) else size
    return [Fact(element, (x[0], floordiv(x[1] - size, step[0]) + 1, bins, 2))]
