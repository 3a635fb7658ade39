"""``fold-constants``: what can be computed now is, and what changes nothing goes away."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.passes.fold_constants import arithmetic, between, bodies, evaluate, layouts, opaque
from dmlc.passes.manager import REASSOCIATES, PassContext
from dmlc.passes.rewrite import RewritePass, Rule, rules_of

#: All rules, in the order in which they are tried at a node.
_FILES = (evaluate, arithmetic, bodies, opaque, layouts, between)
_RULES = rules_of(*[vars(file) for file in _FILES])


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
        return _RULES
