"""Operators that arrange elements anew: shapes, axes, joins and cuts."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from onnx import TensorProto

from dmlc.inference.fact import MOST_ELEMENTS, OPEN, Elements, Fact, Open, of_elements, vector
from dmlc.inference.query import Fault, Query, ends_at_front, need_equal, place, remaining, vanishes_with, within
from dmlc.inference.registry import rule
from dmlc.ir import Dim, DimExpr, Shape, floordiv, larger, product, smaller


def moved(q: Query, shape: Shape | None, elements: Elements | None) -> Fact:
    """The first operand's elements in another arrangement."""
    if elements is None:
        return Fact(q.element(0), shape)
    return of_elements(q.element(0), elements)


@rule("Shape")
def shape_of(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    if shape is None:
        return [Fact(TensorProto.INT64, (q.new_dim(),))]
    end = q.integer("end", len(shape))
    return [vector(TensorProto.INT64, list(shape[q.integer("start") : end]))]


@rule("Size")
def size_of(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    return [of_elements(TensorProto.INT64, OPEN if shape is None else product(shape))]


@rule("Reshape")
def reshape(q: Query) -> Sequence[Fact]:
    if q.opset >= 5:
        q.need_rank(1, 1)
    wanted: Sequence[Dim | Open] | None = q.integers("shape") if q.opset < 5 else q.sizes(1)
    if wanted is None:
        return [Fact(q.element(0))]
    shape = _resolved(q, q.shape(0), list(wanted), copies=not q.integer("allowzero"))
    elements = q.elements(0)
    static = [d for d in shape if isinstance(d, int)]
    have = [d for d in q.shape(0) or () if isinstance(d, int)]
    is_known = len(static) == len(shape) and q.shape(0) is not None and len(have) == q.rank(0)
    if is_known and prod(static) != prod(have):
        q.fails(f"{prod(have)} elements do not become {prod(static)}, as the shape {static} asks")
    if elements is not None and len(static) == len(shape) and prod(static) == elements.size:
        return [moved(q, shape, elements.reshape(static))]
    return [Fact(q.element(0), shape)]


def _resolved(q: Query, have: Shape | None, wanted: list[Dim | Open], *, copies: bool) -> Shape:
    """The sizes with 0 and -1 in their meanings. An open element may be either; so may a size that can be 0."""
    out: list[Dim] = []
    is_sure = have is not None
    # with as many elements as the operand has, a copy of another size than 0 fails
    copies &= have is None or not _has_elements_of(have, wanted)
    rest: int | None = None
    for i, size in enumerate(wanted):
        own = have[i] if have is not None and i < len(have) else None
        if isinstance(size, Open):
            is_sure = False
            out.append(q.new_dim())
        elif isinstance(size, DimExpr):
            has_own = have is None or i < len(have)  # behind the operand's last axis a 0 is refused
            may_copy = copies and has_own and q.dims.interval(size)[0] <= 0
            may_copy = may_copy and (own is None or not vanishes_with(own, size))
            may_rest = q.dims.interval(size)[0] < 0
            is_sure &= not may_copy and not may_rest
            out.append(q.new_dim() if may_copy or may_rest else size)
        elif size == 0 and copies:
            if have is not None and i >= len(have):
                raise Fault(f"size {i} of the shape is copied, and the operand has {len(have)} axes")
            is_sure &= own is not None
            out.append(q.new_dim() if own is None else own)
        elif size == -1:
            rest = i
            out.append(1)
        elif size < 0:
            raise Fault(f"a size is {size}")
        else:
            out.append(size)
    if rest is not None:
        _need_whole(have, wanted, out, rest)
        out[rest] = _left(q, have, out, rest) if is_sure and have is not None else q.new_dim()
    return tuple(out)


def _need_whole(have: Shape | None, wanted: Sequence[Dim | Open], out: Sequence[Dim], rest: int) -> None:
    """Raise ``Fault`` where no size in place of -1 gives as many elements as the operand has. Copied sizes cancel."""
    kept = {i for i, size in enumerate(wanted) if size == 0 and out[i] != 0}
    mine = [d for i, d in enumerate(have or ()) if i not in kept]
    theirs = [d for i, d in enumerate(out) if i not in kept and i != rest]
    mine_known, others = ([d for d in sizes if isinstance(d, int)] for sizes in (mine, theirs))
    if have is None or len(mine_known) < len(mine) or len(others) < len(theirs) or 0 in others:
        return
    if any(isinstance(size, Open) for size in wanted) or prod(mine_known) % prod(others) == 0:
        return
    raise Fault(f"{prod(mine_known)} elements do not divide by {prod(others)}, so that -1 has no size")


def _has_elements_of(have: Shape, wanted: Sequence[Dim | Open]) -> bool:
    sizes = [size for size in wanted if not isinstance(size, Open) and size not in (0, -1)]
    return len(sizes) == len(wanted) and product(sizes) == product(have)


def _left(q: Query, have: Shape, out: Sequence[Dim], rest: int) -> Dim:
    left = remaining(have, [*out[:rest], *out[rest + 1 :]])
    can_be_zero = isinstance(left, DimExpr) and any(q.dims.interval(d)[0] <= 0 for d in left.divisors())
    return q.new_dim() if can_be_zero else left


@rule("Flatten")
def flatten(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    if shape is None:
        return [Fact(q.element(0), q.fresh_shape(2))]
    axis = q.integer("axis", 1)
    if not -len(shape) <= axis <= len(shape):
        raise Fault(f"axis {axis} does not exist: there are {len(shape)} axes")
    axis = axis + len(shape) if axis < 0 else axis
    return [Fact(q.element(0), (product(shape[:axis]), product(shape[axis:])))]


@rule("Transpose")
def transpose(q: Query) -> Sequence[Fact]:
    shape, perm = q.shape(0), q.integers("perm")
    if shape is None:
        return [Fact(q.element(0), None if perm is None else q.fresh_shape(len(perm)))]
    perm = tuple(reversed(range(len(shape)))) if perm is None else perm
    if len({*perm}) < len(perm) or not all(0 <= axis < len(shape) for axis in perm):
        raise Fault(f"perm {list(perm)} does not permute {len(shape)} axes")
    if len(perm) < len(shape):
        q.fails(f"perm {list(perm)} does not permute {len(shape)} axes")
        return []  # ONNX does not look at it
    elements = q.elements(0)
    out = tuple([shape[i] for i in perm])
    return [moved(q, out, None if elements is None else elements.transpose(perm))]


@rule("Squeeze")
def squeeze(q: Query) -> Sequence[Fact]:
    shape, elements = q.shape(0), q.elements(0)
    is_given = "axes" in q.attributes if q.opset < 13 else q.has(1)
    axes = q.axes(13)
    if shape is None or (is_given and axes is None):
        is_one = is_given and q.shape(1) == (1,)  # two of several axes may be the same, and ONNX Runtime takes them
        return [Fact(q.element(0), q.fresh_shape(len(shape) - 1) if shape and is_one else None)]
    if not is_given:
        if not all(isinstance(d, int) for d in shape):
            return [Fact(q.element(0))]  # sizes that are 1 at run time go too
        axes = tuple([i for i, d in enumerate(shape) if d == 1])
    if is_given and not axes and any(not isinstance(d, int) or d == 1 for d in shape):
        return [Fact(q.element(0))]  # an empty list drops nothing in ONNX, and every size of 1 in ONNX Runtime
    gone = {place(a, len(shape)) for a in axes or ()}
    for axis in gone:
        need_equal(shape[axis], 1, f"the size of the axis {axis} that is dropped and 1")
    out = tuple([d for i, d in enumerate(shape) if i not in gone])
    return [moved(q, out, None if elements is None else elements.reshape([d for d in out if isinstance(d, int)]))]


@rule("Unsqueeze")
def unsqueeze(q: Query) -> Sequence[Fact]:
    shape, axes, elements = q.shape(0), q.axes(13), q.elements(0)
    if shape is None:
        return [Fact(q.element(0))]
    if axes is None:
        count = q.shape(1) if q.opset >= 13 else None
        if count is not None and len(count) == 1 and isinstance(count[0], int):
            return [Fact(q.element(0), q.fresh_shape(len(shape) + count[0]))]
        return [Fact(q.element(0))]
    rank = len(shape) + len(axes)
    new = {place(a, rank) for a in axes}
    if len(new) < len(axes):
        raise Fault(f"an axis is twice among {list(axes)}")
    rest = iter(shape)
    out = tuple([1 if i in new else next(rest) for i in range(rank)])
    return [moved(q, out, None if elements is None else elements.reshape([d for d in out if isinstance(d, int)]))]


@rule("Expand")
def expand(q: Query) -> Sequence[Fact]:
    shape, sizes = q.shape(0), q.sizes(1)
    if shape is None or sizes is None:
        return [Fact(q.element(0))]
    wanted = tuple([q.size_of(s) for s in sizes])
    out = q.broadcast(shape, wanted)
    elements = q.elements(0)
    if elements is not None and out is not None and all(isinstance(d, int) for d in out):
        static = [d for d in out if isinstance(d, int)]
        if prod(static) <= MOST_ELEMENTS:
            return [moved(q, out, np.broadcast_to(elements, static))]
    return [Fact(q.element(0), out)]


@rule("Tile")
def tile(q: Query) -> Sequence[Fact]:
    shape, sizes = q.shape(0), q.sizes(1)
    if shape is None or q.opset < 6:
        return [Fact(q.element(0), None if shape is None else q.fresh_shape(len(shape)))]
    if sizes is None:
        return [Fact(q.element(0), q.fresh_shape(len(shape)))]
    if q.elements(1) is not None:
        need_equal(len(sizes), len(shape), "the numbers of repeats and of axes")
    elif len(sizes) != len(shape):
        return [Fact(q.element(0), q.fresh_shape(len(shape)))]
    out = tuple([q.new_dim() if isinstance(s, Open) else d * s for d, s in zip(shape, sizes, strict=True)])
    elements = q.elements(0)
    repeats = [s for s in sizes if isinstance(s, int)]
    if elements is not None and len(repeats) == len(sizes) and elements.size * prod(repeats) <= MOST_ELEMENTS:
        return [moved(q, out, np.tile(elements, repeats))]
    return [Fact(q.element(0), out)]


@rule("Concat")
def concat(q: Query) -> Sequence[Fact]:
    element = next((q.element(i) for i in range(len(q.operands)) if q.element(i)), 0)
    shapes = [q.shape(i) for i in range(len(q.operands))]
    known = [s for s in shapes if s is not None]
    if not known:
        return [Fact(element)]
    rank = len(known[0])
    axis = q.axis(1 if q.opset < 4 else 0, rank)
    for s in known:
        need_equal(rank, len(s), "the numbers of axes of the operands")
    if len(known) == len(shapes):
        elements = [q.elements(i) for i in range(len(q.operands))]
        present = [e for e in elements if e is not None]
        if len(present) == len(elements) and sum(e.size for e in present) <= MOST_ELEMENTS:
            return [of_elements(element, np.concatenate(present, axis=axis))]
        if rank == 1 and any(e is not None for e in elements):
            partly = _joined_lists(shapes, elements)
            if partly is not None:
                return [vector(element, partly)]
    out = [0 if i == axis else _agreed([s[i] for s in known], i) for i in range(rank)]
    total: Dim = 0
    for s in known:
        total = total + s[axis]
    out[axis] = total if len(known) == len(shapes) else q.new_dim()
    return [Fact(element, tuple(out))]


def _joined_lists(shapes: Sequence[Shape | None], elements: Sequence[Elements | None]) -> list[Any] | None:
    """The elements of lists of known lengths, ``OPEN`` for a list that keeps none."""
    out: list[Any] = []
    for shape, items in zip(shapes, elements, strict=True):
        length = None if shape is None else shape[0]
        if not isinstance(length, int) or len(out) + length > MOST_ELEMENTS:
            return None
        out += [OPEN] * length if items is None else items.tolist()
    return out


def _agreed(sizes: Sequence[Dim], axis: int) -> Dim:
    """One of the sizes, which are equal where the node runs: a number where one is."""
    found = next((d for d in sizes if isinstance(d, int)), sizes[0])
    for size in sizes:
        need_equal(found, size, f"the operands' sizes of axis {axis}")
    return found


@rule("Split")
def split(q: Query) -> Sequence[Fact]:
    shape, count = q.shape(0), q.results
    if shape is None:
        return [Fact(q.element(0))] * count
    axis = q.axis(0, len(shape))
    size = shape[axis]
    sizes: Sequence[Dim | Open] | None
    if q.opset < 13:
        sizes = q.integers("split")
    else:
        sizes = q.sizes(1) if q.has(1) else None
    if sizes is None and (q.opset < 13 or not q.has(1)):
        need_equal(q.integer("num_outputs", count), count, "num_outputs and the number of results")
        sizes = _even(size, count)
    elif sizes is not None and (q.opset < 13 or q.elements(1) is not None):
        need_equal(len(sizes), count, "the numbers of parts and of results")
        if all(isinstance(s, int) for s in sizes):
            need_equal(sum(s for s in sizes if isinstance(s, int)), size, "the sum of the parts and the size")
    if sizes is None or len(sizes) != count:
        sizes = [OPEN] * count
    elements, facts, first = q.elements(0), [], 0
    for part in sizes:
        cut = None
        if elements is not None and isinstance(part, int) and first >= 0:
            cut = elements.take(range(first, first + part), axis=axis)
        first = first + part if isinstance(part, int) and first >= 0 else -1
        facts.append(moved(q, (*shape[:axis], q.size_of(part), *shape[axis + 1 :]), cut))
    return facts


def _even(size: Dim, count: int) -> list[Dim | Open]:
    if isinstance(size, int):
        each = -(-size // count)
        return [*[each] * (count - 1), size - each * (count - 1)]
    if count == 1:
        return [size]
    quotient = floordiv(size, count)
    return [quotient] * count if quotient * count == size else [OPEN] * count


@rule("Slice")
def slice_(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    if shape is None:
        return [Fact(q.element(0))]
    if q.opset < 10:
        starts: Sequence[Dim | Open] | None = q.integers("starts")
        ends: Sequence[Dim | Open] | None = q.integers("ends")
        axes, steps = q.integers("axes"), None
    else:
        starts, ends = q.sizes(1), q.sizes(2)
        axes = q.numbers(3) if q.has(3) else None
        steps = q.sizes(4) if q.has(4) else None
        if (q.has(3) and axes is None) or (q.has(4) and steps is None):
            return [Fact(q.element(0), q.fresh_shape(len(shape)))]
    if starts is None or ends is None:
        return [Fact(q.element(0), q.fresh_shape(len(shape)))]
    if q.opset < 10 or (q.elements(1) is not None and q.elements(2) is not None):
        need_equal(len(starts), len(ends), "the numbers of starts and ends")
    if len(starts) != len(ends):
        return [Fact(q.element(0), q.fresh_shape(len(shape)))]
    axes = tuple(range(len(starts))) if axes is None else axes
    strides: Sequence[Dim | Open] = [1] * len(starts) if steps is None else steps
    out, cuts = list(shape), [slice(None)] * len(shape)
    if len(axes) != len(starts) or len(strides) != len(starts):
        return [Fact(q.element(0), q.fresh_shape(len(shape)))]
    is_sure = True
    if any(isinstance(bound, Open) for bound in (*starts, *ends)) and None in [within(a, len(shape)) for a in axes]:
        return [Fact(q.element(0), q.fresh_shape(len(shape)))]  # ONNX looks at the axes of known bounds alone
    for axis, start, end, step in zip(axes, starts, ends, strides, strict=True):
        at = place(axis, len(shape))
        if step == 0:
            raise Fault("a step is 0")
        out[at] = _cut(q, shape[at], start, end, step)
        cuts[at] = _as_slice(shape[at], start, end, step)
        is_sure &= isinstance(start, int) and isinstance(end, int) and isinstance(step, int)
        is_sure &= not ends_at_front(end, step)
    elements = q.elements(0)
    return [moved(q, tuple(out), elements[tuple(cuts)] if elements is not None and is_sure else None)]


def _as_slice(size: Any, start: Any, end: Any, step: Any) -> slice:
    """ONNX's bounds as NumPy's: backwards, ONNX clamps a start below the first element to it; NumPy takes nothing."""
    if not all(isinstance(number, int) for number in (size, start, end, step)):
        return slice(None)
    return slice(0 if step < 0 and start < -size else start, end, step)


def _cut(q: Query, size: Dim, start: Dim | Open, end: Dim | Open, step: Dim | Open) -> Dim:
    """The size of a slice of an axis: clamped as NumPy clamps."""
    if ends_at_front(end, step):
        return q.new_dim()
    if isinstance(start, int) and isinstance(end, int) and isinstance(step, int) and isinstance(size, int):
        return len(range(size)[_as_slice(size, start, end, step)])
    if isinstance(start, Open) or isinstance(end, Open) or not isinstance(step, int) or step == 0:
        return q.new_dim()
    if step < 0:
        whole = isinstance(start, int) and isinstance(end, int) and (start == -1 or start >= 2**30) and end < -(2**30)
        return size if step == -1 and whole else q.new_dim()
    low, high = _clamped(q, size, start), _clamped(q, size, end)
    if low is None or high is None or q.dims.at_most(low, high) is not True:
        return q.new_dim()
    length = high - low
    return length if step == 1 else floordiv(length + (step - 1), step)


def _clamped(q: Query, size: Dim, bound: Dim) -> Dim | None:
    """A bound counted from the front and clamped to the axis; None where its sign is not known."""
    low, high = q.dims.interval(bound)
    if high < 0:
        bound = bound + size
        return bound if q.dims.at_most(0, bound) else larger(bound, 0)
    if low < 0:
        return None
    if q.dims.at_most(bound, size):
        return bound
    return size if q.dims.at_most(size, bound) or low >= 2**30 else smaller(bound, size)


@rule("Pad")
def pad(q: Query) -> Sequence[Fact]:
    shape = q.shape(0)
    if shape is None:
        return [Fact(q.element(0))]
    rank = len(shape)
    pads: Sequence[Dim | Open] | None
    pads = (q.integers("pads") or q.integers("paddings")) if q.opset < 11 else q.sizes(1)
    axes: Sequence[int] | None = range(rank)
    if q.has(3):
        axes = q.numbers(3)
    if pads is not None and axes is not None and (q.opset < 11 or q.elements(1) is not None):
        need_equal(len(pads), 2 * len(axes), "the number of pads and twice the number of axes")
    if pads is None or axes is None or len(pads) != 2 * len(axes):
        return [Fact(q.element(0), q.fresh_shape(rank))]
    out = list(shape)
    for i, axis in enumerate(axes):
        at = place(axis, rank)
        before, after = pads[i], pads[i + len(axes)]
        out[at] = q.new_dim() if isinstance(before, Open) or isinstance(after, Open) else out[at] + before + after
    return [Fact(q.element(0), tuple(out))]


@rule("DepthToSpace", "SpaceToDepth")
def blocks(q: Query) -> Sequence[Fact]:
    shape, block = q.shape(0), q.integer("blocksize")
    q.need_rank(0, 4)
    if block < 1:
        raise Fault(f"blocksize is {block}")
    if shape is None:
        return [Fact(q.element(0), q.fresh_shape(4))]
    n, c, h, w = shape
    if q.op_type == "DepthToSpace":
        q.fails_unless_divides(block * block, c, "the number of channels")
        return [Fact(q.element(0), (n, floordiv(c, block * block), h * block, w * block))]
    q.fails_unless_divides(block, h, "the height")
    q.fails_unless_divides(block, w, "the width")
    return [Fact(q.element(0), (n, c * (block * block), floordiv(h, block), floordiv(w, block)))]


@rule("CenterCropPad")
def crop_or_pad(q: Query) -> Sequence[Fact]:
    shape, sizes, axes = q.shape(0), q.sizes(1), q.integers("axes")
    if shape is None:
        return [Fact(q.element(0))]
    places = [within(a, len(shape)) for a in (range(len(shape)) if axes is None else axes)]
    if sizes is None or len(sizes) != len(places) or None in places:
        return [Fact(q.element(0), q.fresh_shape(len(shape)))]
    out = list(shape)
    for at, size in zip(places, sizes, strict=True):
        assert at is not None
        out[at] = q.size_of(size)
    return [Fact(q.element(0), tuple(out))]
