"""``fold-constants``: what can be computed now is, and what changes nothing goes away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.passes.fold_constants import arithmetic, layouts
from dmlc.passes.fold_constants.around_elementwise import AroundElementwise
from dmlc.passes.fold_constants.bounds import DecidedComparison, WithinBounds, bounds_in_a_row
from dmlc.passes.fold_constants.branches import InlineBranch
from dmlc.passes.fold_constants.evaluate import Evaluate, FillScalar
from dmlc.passes.fold_constants.layouts import MOVE_RULES
from dmlc.passes.fold_constants.opaque import KnownSize, ReadAgain
from dmlc.passes.fold_constants.recurrent import ZeroInitialState
from dmlc.passes.fold_constants.regrouped import concat_of_places, matmul_between_reshapes, ones_around_transpose
from dmlc.passes.fold_constants.scans import RunsTogether
from dmlc.passes.fold_constants.sequences import KnownSequence
from dmlc.passes.fold_constants.sunk_transposes import RULES as SUNK_TRANSPOSES
from dmlc.passes.manager import REASSOCIATES, PassContext
from dmlc.passes.rewrite import RewritePass, Rule


class FoldConstants(RewritePass, frozen=True):
    """Rules that evaluate and simplify, within the limits of the context.

    ``exact`` are operations whose result every target gives bit for bit (data movement, integers, comparisons,
    ``+ - * /`` and ``sqrt``, casts) and identities such as ``x * 1``; folding of other float functions and of float
    sums is ``reassociates``. Results that the language leaves unspecified (a division by zero, NaN beside max) stay.
    """

    name: ClassVar[str] = "fold-constants"
    summary: ClassVar[str] = "Evaluate constant nodes and drop operations that change nothing."
    rewrite_class: ClassVar[str] = REASSOCIATES

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return [
            Evaluate,
            FillScalar,
            *arithmetic.RULES,
            WithinBounds,
            DecidedComparison,
            bounds_in_a_row,
            arithmetic.sign_into_factor,
            arithmetic.scales_of_product,
            InlineBranch,
            RunsTogether,
            KnownSequence,
            ZeroInitialState,
            layouts.drop_expand,
            layouts.drop_fill,
            ReadAgain,
            KnownSize,
            *MOVE_RULES,
            layouts.slice_chain,
            layouts.concat_chain,
            concat_of_places,
            AroundElementwise,
            ones_around_transpose,
            *SUNK_TRANSPOSES,
            matmul_between_reshapes,
        ]
