"""``canonicalize-reduce``: every reduction in one form, and as few of them as the program allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.passes.canonicalize_reduce import axes, layouts
from dmlc.passes.fold_constants.layouts import MOVE_RULES
from dmlc.passes.manager import RANGE, PassContext
from dmlc.passes.rewrite import RewritePass, Rule


class CanonicalizeReduce(RewritePass, frozen=True):
    """Rules about the axes, the rank and the nesting of reductions.

    Afterwards an axis of size 1 is reduced only where ``keepdims=false`` takes it out anyway. A reduction over nothing
    is its elementwise part, and nested reductions of one kind are one. ``keepdims`` replaces a squeeze or unsqueeze.

    The rules about axes and ``keepdims``, and the merging of max, min and wrapping integers are ``exact``. Float sums
    reassociate. A merge that may overflow in between is ``range``.
    """

    name: ClassVar[str] = "canonicalize-reduce"
    summary: ClassVar[str] = "Bring reductions to one form and merge nested ones."
    rewrite_class: ClassVar[str] = RANGE
    ensures: ClassVar[tuple[str, ...]] = ("canonical-reduce",)

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return [
            axes.drop_empty_reduction,
            axes.drop_unit_axes,
            axes.merge_nested_reductions,
            axes.absorb_move_into_keepdims,
            layouts.drop_transpose_before_reduction,
            layouts.sink_transpose_between_reductions,
            layouts.drop_flatten_before_reduction,
            layouts.reduction_of_expand,
            layouts.casts_around_maximum,
            axes.lower_rank,
            *MOVE_RULES,
        ]
