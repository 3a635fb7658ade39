"""``canonicalize-reduce``: every reduction in one form, and as few of them as the program allows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.passes.canonicalize_reduce.axes import (
    AbsorbMove,
    DropEmptyReduction,
    DropUnitAxes,
    LowerRank,
    MergeNested,
)
from dmlc.passes.canonicalize_reduce.layouts import DropCasts, DropExpanded, DropFlatten, DropTranspose, SinkTranspose
from dmlc.passes.fold_constants import MOVE_RULES
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
            DropEmptyReduction,
            DropUnitAxes,
            MergeNested,
            AbsorbMove,
            DropTranspose,
            SinkTranspose,
            DropFlatten,
            DropExpanded,
            DropCasts,
            LowerRank,
            *MOVE_RULES,
        ]
