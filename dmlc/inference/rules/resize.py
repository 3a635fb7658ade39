"""Resize and its forerunner."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor

import numpy as np

from dmlc.inference.fact import Fact, Open
from dmlc.inference.query import Fault, Query, place
from dmlc.inference.registry import rule
from dmlc.ir import Dim, Shape


@rule("Upsample")
def upsample(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    scales = q.attributes.get("scales") if q.opset < 9 else _floats(q, 1)
    if shape is None:
        return [Fact(q.element(0))]
    return [Fact(q.element(0), _scaled(q, shape, scales))]


@rule("Resize")
def resize_without_region(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    return [Fact(q.element(0), None if shape is None else _scaled(q, shape, _floats(q, 1)))]


@rule("Resize", since=11)
def resize(q: Query) -> Sequence[Fact]:
    shape, axes = q.shape(0), q.integers("axes")
    if q.opset >= 13 and q.has(2) == q.has(3) and q.shape(2) != (0,):
        raise Fault("it takes either sizes or scales")
    if q.has(2) and q.shape(2) != (0,) and q.word("keep_aspect_ratio_policy", "stretch") != "stretch":
        raise Fault("a keep_aspect_ratio_policy is for sizes, and it is given scales")
    if shape is None:
        return [Fact(q.element(0))]
    places = [place(a, len(shape)) for a in (range(len(shape)) if axes is None else axes)]
    part = tuple([shape[p] for p in places])
    q.need_rank(3, 1)
    sizes = q.sizes(3) if q.has(3) and q.shape(3) != (0,) else None
    if sizes is not None and len(sizes) == len(part):
        out = _sized(q, part, sizes, q.word("keep_aspect_ratio_policy", "stretch"))
    elif (q.has(3) and q.shape(3) != (0,)) or q.word("coordinate_transformation_mode") == "tf_crop_and_resize":
        out = q.fresh_shape(len(part))
    else:
        out = _scaled(q, part, _floats(q, 2))
    full = list(shape)
    for at, size in zip(places, out, strict=True):
        full[at] = size
    return [Fact(q.element(0), tuple(full))]


def _sized(q: Query, shape: Shape, sizes: Sequence[Dim | Open], policy: str) -> Shape:
    """The sizes asked for; a policy other than ``stretch`` scales all axes by one factor and rounds halves up."""
    if policy == "stretch":
        return tuple([q.size_of(s) for s in sizes])
    pairs = [(d, s) for d, s in zip(shape, sizes, strict=True) if isinstance(d, int) and isinstance(s, int) and d]
    if len(pairs) < len(shape):
        return q.fresh_shape(len(shape))
    factors = [s / d for d, s in pairs]
    factor = min(factors) if policy == "not_larger" else max(factors)
    return tuple([floor(d * factor + 0.5) for d, _ in pairs])


def _floats(q: Query, index: int) -> list[float | Open] | None:
    elements = q.elements(index)
    if elements is None:
        return None
    return [e if isinstance(e, Open) else float(e) for e in elements.ravel().tolist()]


def _scaled(q: Query, shape: Shape, scales: object) -> Shape:
    """``floor(size * scale)`` of each, in f32 as runtimes compute it; a whole scale multiplies open sizes too."""
    if not isinstance(scales, (list, tuple)) or len(scales) != len(shape):
        return q.fresh_shape(len(shape))
    out: list[Dim] = []
    for size, scale in zip(shape, scales, strict=True):
        if isinstance(scale, Open):
            out.append(q.new_dim())
        elif isinstance(size, int):
            out.append(floor(np.float32(size) * np.float32(scale)))
        else:
            out.append(size * int(scale) if float(scale).is_integer() else q.new_dim())
    return tuple(out)
