"""``fold-constants``: what can be computed now is, and what changes nothing goes away."""

from __future__ import annotations

from typing import Any, ClassVar

from dmlc.diagnostics.limits import DEFAULTS
from dmlc.ir import Graph
from dmlc.passes.fold_rules import (
    MOVE_RULES,
    AroundElementwise,
    CastChain,
    DifferentTruths,
    DropExpand,
    Evaluate,
    Idempotent,
    InlineBranch,
    Inverse,
    KnownTruth,
    NeutralOperand,
    ReadAgain,
    SameCast,
    SignIntoFactor,
    SliceChain,
)
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
