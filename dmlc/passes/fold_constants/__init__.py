"""``fold-constants``: what can be computed now is, and what changes nothing goes away."""

from __future__ import annotations

from typing import Any, ClassVar

from dmlc.diagnostics.limits import DEFAULTS
from dmlc.ir import Graph
from dmlc.passes.fold_constants.again import ReadAgain
from dmlc.passes.fold_constants.arithmetic import (
    CastChain,
    DifferentTruths,
    Idempotent,
    Inverse,
    KnownTruth,
    NeutralOperand,
    SameCast,
    SignIntoFactor,
)
from dmlc.passes.fold_constants.evaluate import Evaluate, FillScalar
from dmlc.passes.fold_constants.layouts import (
    AroundElementwise,
    DropExpand,
    ReshapeChain,
    SliceChain,
    SplitOffNothing,
    StandStill,
    TransposeChain,
    TransposeOfOnes,
)
from dmlc.passes.fold_constants.opaque import InlineBranch
from dmlc.passes.manager import REASSOCIATES, Pass, PassContext
from dmlc.passes.rewrite import Rule, rewrite
from dmlc.records import dataclass


@dataclass(frozen=True)
class FoldConstants(Pass):
    """Options: ``max_elements`` has the largest constant that folding reads or makes, ``max_bytes`` take all that it
    makes.

    ``exact`` are operations whose result every target gives bit for bit (data movement, integers, comparisons,
    ``+ - * /`` and ``sqrt``, casts) and identities such as ``x * 1``; folding of other float functions and of float
    sums is ``reassociates``. What the language leaves unspecified (a division by zero, NaN beside max) stays.
    """

    max_elements: int = DEFAULTS.folded_elements
    max_bytes: int = DEFAULTS.folded_bytes

    name: ClassVar[str] = "fold-constants"
    summary: ClassVar[str] = "Evaluate constant nodes and drop operations that change nothing."
    rewrite_class: ClassVar[str] = REASSOCIATES

    def rules(self, context: PassContext) -> list[Rule[Any]]:
        return [
            Evaluate(self.max_elements, self.max_bytes, context),
            FillScalar(),
            NeutralOperand(),
            KnownTruth(),
            DifferentTruths(),
            SameCast(),
            CastChain(),
            Inverse(),
            Idempotent(),
            SignIntoFactor(),
            InlineBranch(),
            DropExpand(),
            ReadAgain(),
            *MOVE_RULES,
            SliceChain(),
            AroundElementwise(),
        ]

    def run(self, graph: Graph, context: PassContext) -> bool:
        return rewrite(graph, self.rules(context), context)


#: The moves alone, for passes whose new reshapes and transposes may meet those of the program.
MOVE_RULES = (StandStill(), SplitOffNothing(), ReshapeChain(), TransposeChain(), TransposeOfOnes())
