"""argmax and argmin: as one search, or inner axes first; big ones in blocks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from dmlc.ir import DType, Graph, Node, Operation, product
from dmlc.ir.dtype import i64
from dmlc.ops.select import ARGMAX, ARGMIN, EXTREME_OF
from dmlc.passes.choose_lowering import blocks
from dmlc.passes.choose_lowering.plan import Lowered, Plan, Sizes, Sketch, Standing, Step, Term
from dmlc.passes.choose_lowering.search import (
    arg_of,
    arg_view,
    cast_steps,
    frame_steps,
    gather_step,
    home_of,
    may_be_empty,
    scaled,
    search,
    search_steps,
    small_steps,
)
from dmlc.passes.choose_lowering.view import View


class SearchAsItStands(Standing):
    """ArgMax of the axes as one, brought together by a transpose where others lie between."""

    roots: ClassVar[tuple[Operation, ...]] = (ARGMAX, ARGMIN)

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Step]:
        view, dtype = arg_view(node), node.operand("x").type.dtype
        shape, home = view.at(sizes), self.capabilities.compute_dtype(node.op, dtype) or i64
        frame = frame_steps(node, view) if len(arg_of(node).axes) > 1 else []
        return [*frame, *cast_steps(dtype, home, math.prod(shape)), *search_steps(home, view, shape)]


class InnerFirst(Plan):
    """An argmax or argmin over axes that are not adjacent reduces the inner ones first, then their winners."""

    name: ClassVar[str] = "inner-first-argmax"
    roots: ClassVar[tuple[Operation, ...]] = (ARGMAX, ARGMIN)

    def applies(self, node: Node, graph: Graph) -> str | None:
        view = arg_view(node)
        if len(view.groups) == 1:
            return "the axes are adjacent"
        if not isinstance(product([view.sizes[i] for i in view.groups[1:]]), int):
            return "the sizes of the inner axes are not known"
        if self._home(node) is None:
            return f"winners of {node.operand('x').type.dtype} cannot be compared"
        return may_be_empty(self.capabilities, graph, view.sizes)

    def _home(self, node: Node) -> DType | None:
        return home_of(self.capabilities, node.operand("x").type.dtype, node.op)

    def _reduces(self, node: Node, view: View, home: DType) -> bool:
        """Return whether the selected values are found by a reduction, not by gathering."""
        return len(view.groups) > 2 or self.capabilities.has_kernel(EXTREME_OF[node.op], home)

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Step]:
        view, home, dtype = arg_view(node), self._home(node), node.operand("x").type.dtype
        assert home is not None
        shape = list(view.at(sizes))
        outer, *inner = view.groups
        out = [*frame_steps(node, view), *cast_steps(dtype, home, math.prod(shape))]
        within = View(view.sizes, tuple([i in inner for i in range(len(shape))]))
        out += search_steps(home, within, shape)
        reduces = self._reduces(node, view, home)
        for i in reversed(inner):
            if reduces:
                out.append(blocks.reduce_step(home, shape, i))
            shape[i] = 1
        count = math.prod(shape)
        if not reduces:
            out.append(gather_step(home, math.prod(view.at(sizes)), view.at(sizes)[inner[0]], count))
        out += search_steps(home, view, shape)
        kept = count // max(shape[outer], 1)
        return [*out, Step("GatherElements", i64, kept, kept, 1), *small_steps(2, kept)]

    def lower(self, e: Sketch, node: Node, x: Term) -> Lowered:
        view, home = arg_view(node), self._home(node)
        assert home is not None
        outer, *inner = view.groups
        x = x.cast(home).reshape(view.sizes)
        reduces = self._reduces(node, view, home)
        inside = search(e, node, x, inner, keep=not reduces)
        if reduces:
            best = x
            for i in reversed(inner):
                best = e.reduced(EXTREME_OF[node.op], best, [i], keepdims=False)
        else:
            best = e.gather_elements(x, inside, axis=inner[0])
        block = search(e, node, best, [outer])
        inside = e.gather_elements(inside, block, axis=outer)
        index = scaled(block, product([view.sizes[i] for i in inner])) + inside
        return index.reshape(node.result.shape).cast(arg_of(node).dtype)


PLANS: Sequence[type[Plan]] = (SearchAsItStands, *blocks.PLANS, InnerFirst)
