"""``fuse-softmax``: softmax and its logarithm become the operations that they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.passes.fuse_softmax import decomposed, transposed
from dmlc.passes.manager import RANGE, PassContext
from dmlc.passes.rewrite import RewritePass, Rule


class FuseSoftmax(RewritePass, frozen=True):
    """Without the maximum taken out, and for the logarithm of a softmax, the class is ``range``."""

    name: ClassVar[str] = "fuse-softmax"
    summary: ClassVar[str] = "Fuse softmax and log-softmax that are written out."
    rewrite_class: ClassVar[str] = RANGE

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return [
            decomposed.written_out_softmax,
            decomposed.difference_from_log_sum_exp,
            decomposed.log_of_softmax,
            decomposed.power_of_log_softmax,
            decomposed.shift_before_softmax,
            transposed.softmax_of_transpose,
            transposed.softmax_of_reshape,
        ]
