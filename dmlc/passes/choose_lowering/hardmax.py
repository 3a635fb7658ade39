"""hardmax: the target's own, or from the index of the winner, without a transpose."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from dmlc.ir import Dim, Graph, Node, Operation, product
from dmlc.ir.dtype import bool_, f16, f32, f64, i32, i64
from dmlc.ir.history import AS_WRITTEN
from dmlc.ops.select import ARGMAX, HARDMAX, ArgAttributes, HardmaxAttributes
from dmlc.passes.choose_lowering import arg
from dmlc.passes.choose_lowering.plan import Cheapest, Lowered, Plan, Sizes, Sketch, Standing, Step, Term, Work
from dmlc.passes.choose_lowering.search import cast_steps, may_be_empty, offsets, row_of, search_steps, small_steps
from dmlc.passes.choose_lowering.view import View, view_of

#: Positions that are written into the model; more are counted at run time.
_MOST_WRITTEN = 4096


def axes_of(node: Node) -> tuple[int, ...]:
    return node.attributes_as(HardmaxAttributes).axes


def _view(node: Node) -> View:
    return view_of(node.graph, node, axes_of(node))


class HardmaxAsItStands(Standing):
    """The target's own over one axis; argmax and one_hot over several, with transposes where they stand apart."""

    roots: ClassVar[tuple[Operation, ...]] = (HARDMAX,)

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Work]:
        view, dtype = _view(node), node.operand("x").type.dtype
        shape = view.at(sizes)
        total = math.prod(shape)
        if len(axes_of(node)) == 1 and dtype is not f64:
            return [*cast_steps(dtype, f32, total), _own_step(node, sizes), *cast_steps(f32, dtype, total)]
        home = dtype.accumulator
        out: list[Work] = [*cast_steps(dtype, home, total), *search_steps(home, view, shape)]
        length = math.prod([shape[i] for i in view.groups])
        run = length if len(view.groups) == 1 and view.groups[0] < len(shape) - 1 else 1
        out.append(Step("OneHot", f32, total // max(length, 1), total, run))
        out += cast_steps(f32, dtype, total)
        moved = [step for step in out if isinstance(step, Step) and step.kernel == "Transpose"]
        return [*out, *(moved or [Step("Reshape", dtype, total, total)])]


def _own_step(node: Node, sizes: Sizes) -> Step:
    """The kernel over one axis: it swaps the axis with the last one, which is cheap where that is its neighbour."""
    shape, (axis,) = sizes.of(node.operand("x")), axes_of(node)
    total, behind = math.prod(shape), math.prod(shape[axis + 1 :])
    kernel = "Hardmax" if behind == 1 else "Hardmax strided" if behind == shape[-1] else "Hardmax far"
    return Step(kernel, f32, total, total, shape[axis])


class _FromIndex(Plan):
    """A hardmax that is made from the index of the winner."""

    roots: ClassVar[tuple[Operation, ...]] = (HARDMAX,)

    def search_of(self, node: Node) -> Node:
        """The argmax that is needed, as a node outside of the graph: for what it costs."""
        record = ArgAttributes(axes=axes_of(node), ties="first", dtype=i32, keepdims=True)
        apart = Node(ARGMAX, node.operands, record, (), (), AS_WRITTEN)
        apart.graph = node.graph
        return apart

    def search_work(self, node: Node, sizes: Sizes) -> list[Work]:
        apart, graph = self.search_of(node), node.graph
        assert graph is not None
        plans = [kind(self.context) for kind in arg.PLANS]
        return [Cheapest(tuple([tuple(p.steps(apart, sizes)) for p in plans if p.applies(apart, graph) is None]))]


class ComparePlaces(_FromIndex):
    """A hardmax becomes an argmax whose index is compared with each place."""

    name: ClassVar[str] = "hardmax-by-places"

    def applies(self, node: Node, graph: Graph) -> str | None:
        places = product([node.operand("x").shape[a] for a in axes_of(node)])
        if isinstance(places, int) and places > i32.highest:
            return f"{places} places are more than i32 counts"
        return may_be_empty(self.capabilities, graph, node.operand("x").shape)

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Work]:
        shape, dtype = sizes.of(node.operand("x")), node.operand("x").type.dtype
        total, last = math.prod(shape), shape[-1]
        equal = Step("Equal", i32, total, total, last)
        casts = [*cast_steps(bool_, f32, total), *cast_steps(f32, dtype, total)]
        if dtype is f64:
            casts = cast_steps(bool_, f64, total)
        return [*self.search_work(node, sizes), Step("Cast", i64), equal, *casts]

    def lower(self, e: Sketch, node: Node, x: Term) -> Lowered:
        axes = axes_of(node)
        index = e.argmax(x, axes=axes, ties="first", dtype=i32, keepdims=True)
        hot = e.equal(index, _places(e, [size if i in axes else 1 for i, size in enumerate(x.shape)]))
        if x.dtype is f16:
            hot = hot.cast(f32)  # the cast of bool to f16 is many times slower
        return hot.cast(x.dtype)


def _places(e: Sketch, shape: Sequence[Dim]) -> Term:
    """0, 1, 2 and so on in that shape."""
    length = product(shape)
    if isinstance(length, int) and length <= _MOST_WRITTEN:
        return e.number(np.arange(length).reshape([int(str(d)) for d in shape]), i32)
    return e.iota(length=length, dtype=i32).reshape(shape)


class ScatterOnes(_FromIndex):
    """A hardmax becomes zeros into which a one is put at each index of an argmax."""

    name: ClassVar[str] = "hardmax-by-scatter"

    def applies(self, node: Node, graph: Graph) -> str | None:
        if not all(isinstance(d, int) for d in node.operand("x").shape):
            return "the zeros to put ones into are not of a known size"
        return None

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Work]:
        view, dtype = _view(node), node.operand("x").type.dtype
        shape = view.at(sizes)
        total = math.prod(shape)
        kept = total // max(math.prod([shape[i] for i in view.groups]), 1)
        out = [*self.search_work(node, sizes), *small_steps(3, kept)]
        out.append(Step("ScatterElements", dtype, kept, total, 1))
        return out if len(axes_of(node)) == 1 else [*out, Step("Reshape", dtype, total, total)]

    def lower(self, e: Sketch, node: Node, x: Term) -> Lowered:
        axes = axes_of(node)
        index = e.argmax(x, axes=axes, ties="first", dtype=i64, keepdims=True)
        shape, axis = x.shape, axes[0]
        if len(axes) > 1:
            index, shape, axis = self._flat(e, node, index)
        zeros, ones = e.full(shape=shape, value=0, dtype=x.dtype), e.full(shape=index.shape, value=1, dtype=x.dtype)
        return e.scatter_elements(zeros, index, ones, axis=axis).reshape(x.shape)

    def _flat(self, e: Sketch, node: Node, index: Term) -> tuple[Term, tuple[Dim, ...], int]:
        """Return the positions of the selected elements in the flat tensor, from those along the axes and of their
        groups."""
        shape, axes = node.operand("x").shape, axes_of(node)
        strides = [product(shape[i + 1 :]) for i in range(len(shape))]
        place = row_of(index, [shape[a] for a in axes], [strides[a] for a in axes])
        own = offsets(e, shape, strides, [i for i in range(len(shape)) if i not in axes])
        place = place if own is None else place + own
        return place.reshape((product(place.shape),)), (product(shape),), 0


class MergedHardmax(Plan):
    """A hardmax over several axes becomes the target's own over one, brought together by transposes if they must."""

    name: ClassVar[str] = "hardmax-merged"
    roots: ClassVar[tuple[Operation, ...]] = (HARDMAX,)

    def applies(self, node: Node, graph: Graph) -> str | None:
        if len(axes_of(node)) == 1:
            return "there is one axis"
        if node.operand("x").type.dtype is f64:
            return "there is no kernel of f64"
        return may_be_empty(self.capabilities, graph, node.operand("x").shape)

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Work]:
        view, dtype = _view(node), node.operand("x").type.dtype
        shape = view.at(sizes)
        total = math.prod(shape)
        length = math.prod([shape[i] for i in view.groups])
        moves = [Step("Transpose", dtype, total, total, shape[-1] if view.searched[-1] else 1)] * 2
        out = [
            *cast_steps(dtype, f32, total),
            Step("Hardmax", f32, total, total, length),
            *cast_steps(f32, dtype, total),
        ]
        if view.kind in ("R", "KR"):
            return [*out, Step("Reshape", dtype), Step("Reshape", dtype, total, total)]
        return [*out, *moves, *[Step("Reshape", dtype)] * 2]

    def lower(self, e: Sketch, node: Node, x: Term) -> Lowered:
        axes = axes_of(node)
        perm = (*[i for i in range(x.rank) if i not in axes], *axes)
        moved = x.transposed(perm)
        kept, length = moved.shape[: -len(axes)], product(moved.shape[-len(axes) :])
        hot = e.hardmax(moved.reshape((*kept, length)), axes=(len(kept),))
        return hot.reshape(moved.shape).transposed([perm.index(i) for i in range(len(perm))])


PLANS: Sequence[type[Plan]] = (HardmaxAsItStands, ComparePlaces, ScatterOnes, MergedHardmax)
