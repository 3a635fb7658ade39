"""``fold-constants``: what can be computed now is, and what changes nothing goes away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.passes.fold_constants.arithmetic import (
    CastChain,
    CastOfFill,
    ChoiceByProducts,
    DifferentTruths,
    Idempotent,
    Inverse,
    KnownChoice,
    KnownTruth,
    NeutralOperand,
    ProductWithZero,
    SameCast,
    ScalesOfProduct,
    SignIntoFactor,
    SwappedChoice,
)
from dmlc.passes.fold_constants.around_elementwise import AroundElementwise
from dmlc.passes.fold_constants.bounds import BoundsInARow, DecidedComparison, WithinBounds
from dmlc.passes.fold_constants.branches import InlineBranch
from dmlc.passes.fold_constants.evaluate import Evaluate, FillScalar
from dmlc.passes.fold_constants.layouts import (
    ConcatChain,
    DropExpand,
    DropFill,
    ReshapeChain,
    SliceChain,
    SplitOffNothing,
    StandStill,
    TransposeChain,
    TransposeOfBlocks,
    TransposeOfOnes,
)
from dmlc.passes.fold_constants.opaque import KnownSize, ReadAgain
from dmlc.passes.fold_constants.recurrent import ZeroInitialState
from dmlc.passes.fold_constants.regrouped import ConcatOfPlaces, MatmulBetweenReshapes, OnesAroundTranspose
from dmlc.passes.fold_constants.scans import RunsTogether
from dmlc.passes.fold_constants.sequences import KnownSequence
from dmlc.passes.fold_constants.sunk_transposes import (
    TransposesAroundReshape,
    TransposesAroundSlice,
    TransposesTogether,
)
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
            NeutralOperand,
            ProductWithZero,
            KnownTruth,
            KnownChoice,
            SwappedChoice,
            DifferentTruths,
            ChoiceByProducts,
            SameCast,
            CastChain,
            CastOfFill,
            Inverse,
            Idempotent,
            WithinBounds,
            DecidedComparison,
            BoundsInARow,
            SignIntoFactor,
            ScalesOfProduct,
            InlineBranch,
            RunsTogether,
            KnownSequence,
            ZeroInitialState,
            DropExpand,
            DropFill,
            ReadAgain,
            KnownSize,
            *MOVE_RULES,
            SliceChain,
            ConcatChain,
            ConcatOfPlaces,
            AroundElementwise,
            OnesAroundTranspose,
            TransposesAroundReshape,
            TransposesAroundSlice,
            TransposesTogether,
            MatmulBetweenReshapes,
        ]


#: The moves alone, for passes whose new reshapes and transposes may meet others of the program.
MOVE_RULES = (StandStill, SplitOffNothing, ReshapeChain, TransposeChain, TransposeOfOnes, TransposeOfBlocks)
