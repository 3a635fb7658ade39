"""hardmax: from the index of the winner, without a transpose, or the target's own over axes brought together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlc.ir import Dim, Node, product
from dmlc.ir.dtype import f16, f32, f64, i32, i64
from dmlc.ops.select import HARDMAX, HardmaxAttributes
from dmlc.passes.choose_lowering.plan import Plan, plan
from dmlc.passes.choose_lowering.search import MOST_WRITTEN, may_be_empty, offsets, row_of
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import Lowered
from dmlc.passes.rewrite import Miss


def _axes(node: Node) -> tuple[int, ...]:
    return node.attributes_as(HardmaxAttributes).axes


@plan(HARDMAX)
def hardmax_by_places(e: Sketch, node: Node, x: Term) -> Lowered:
    """A hardmax becomes an argmax whose index is compared with each place."""
    axes = _axes(node)
    places = product([x.shape[a] for a in axes])
    if isinstance(places, int) and places > i32.highest:
        return Miss("{0} places are more than i32 counts", (places,))
    if reason := may_be_empty(e, x.shape):
        return reason
    index = e.argmax(x, axes=axes, ties="first", dtype=i32, keepdims=True)
    hot = e.equal(index, _places(e, [size if i in axes else 1 for i, size in enumerate(x.shape)]))
    if x.dtype is f16:
        hot = hot.cast(f32)  # the cast of bool to f16 is many times slower
    return hot.cast(x.dtype)


def _places(e: Sketch, shape: Sequence[Dim]) -> Term:
    """0, 1, 2 and so on in that shape."""
    length = product(shape)
    if isinstance(length, int) and length <= MOST_WRITTEN:
        return e.number(np.arange(length).reshape([int(str(d)) for d in shape]), i32)
    return e.iota(length=length, dtype=i32).reshape(shape)


@plan(HARDMAX)
def hardmax_by_scatter(e: Sketch, node: Node, x: Term) -> Lowered:
    """A hardmax becomes zeros into which a one is put at each index of an argmax."""
    axes = _axes(node)
    if not all(isinstance(d, int) for d in x.shape):
        return Miss("the zeros to put ones into are not of a known size")
    index = e.argmax(x, axes=axes, ties="first", dtype=i64, keepdims=True)
    shape, axis = x.shape, axes[0]
    if len(axes) > 1:  # places in the flat tensor, from the places along the axes and the places of the groups
        strides = [product(shape[i + 1 :]) for i in range(len(shape))]
        place = row_of(index, [shape[a] for a in axes], [strides[a] for a in axes])
        own = offsets(e, shape, strides, [i for i in range(len(shape)) if i not in axes])
        place = place if own is None else place + own
        index, shape, axis = place.reshape((product(place.shape),)), (product(shape),), 0
    zeros, ones = e.full(shape=shape, value=0, dtype=x.dtype), e.full(shape=index.shape, value=1, dtype=x.dtype)
    return e.scatter_elements(zeros, index, ones, axis=axis).reshape(x.shape)


@plan(HARDMAX)
def hardmax_merged(e: Sketch, node: Node, x: Term) -> Lowered:
    """A hardmax over several axes becomes the target's own over one, brought together by transposes if they must."""
    axes = _axes(node)
    if len(axes) == 1 or x.dtype is f64:
        return Miss("there is one axis" if len(axes) == 1 else "there is no kernel of f64")
    if reason := may_be_empty(e, x.shape):
        return reason
    perm = (*[i for i in range(x.rank) if i not in axes], *axes)
    moved = x.transposed(perm)
    kept, length = moved.shape[: -len(axes)], product(moved.shape[-len(axes) :])
    hot = e.hardmax(moved.reshape((*kept, length)), axes=(len(kept),))
    return hot.reshape(moved.shape).transposed([perm.index(i) for i in range(len(perm))])


PLANS: tuple[type[Plan], ...] = (hardmax_by_places, hardmax_by_scatter, hardmax_merged)
