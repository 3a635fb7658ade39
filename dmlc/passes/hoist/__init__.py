"""``hoist``: what can be done after a reduction is done after it, to fewer elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.passes.fold_constants.layouts import MOVE_RULES
from dmlc.passes.hoist.constants import constants_in_a_row
from dmlc.passes.hoist.extremum import RisingAfterExtreme
from dmlc.passes.hoist.layouts import reduction_before_expand
from dmlc.passes.hoist.linear import ScaleAfterSum, ShiftAfterMean
from dmlc.passes.manager import REASSOCIATES, PassContext
from dmlc.passes.rewrite import RewritePass, Rule


class Hoist(RewritePass, frozen=True):
    """Runs after the fusions that want an elementwise operation before its reduction (norms, softmax, means).

    A tensor that only a reduction reads is then not written: less memory on every target, with as many nodes.
    Constants that meet become one.
    """

    name: ClassVar[str] = "hoist"
    summary: ClassVar[str] = "Move operations behind a reduction, where they have fewer elements."
    rewrite_class: ClassVar[str] = REASSOCIATES

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return [
            RisingAfterExtreme,
            ScaleAfterSum,
            ShiftAfterMean,
            constants_in_a_row,
            reduction_before_expand,
            *MOVE_RULES,
        ]
