"""``fuse-selection``: searches for the largest or smallest element, and what is done with their index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.passes.fold_constants.arithmetic import double_inverse
from dmlc.passes.fold_constants.layouts import MOVE_RULES
from dmlc.passes.fuse_selection import flattened, index, order
from dmlc.passes.manager import RANGE, PassContext
from dmlc.passes.rewrite import RewritePass, Rule


class FuseSelection(RewritePass, frozen=True):
    """Fuse an arg reduction or top_k with the operations on its index.

    The language does not define which element a selection takes if one is NaN. A rewrite is ``exact`` if the same kind
    of operation still selects. If another operation selects, results differ next to a NaN (ONNX Runtime's Hardmax of a
    group that starts with one is all zeros, and one_hot of its ArgMax is not): ``reassociates``. Rewrites that remove a
    rounding or saturating operation before the selection are ``range``.
    """

    name: ClassVar[str] = "fuse-selection"
    summary: ClassVar[str] = "Make one node of argmax or top-k and the operations on its index."
    rewrite_class: ClassVar[str] = RANGE

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return [
            flattened.top_one,
            flattened.arg_of_flattened,
            order.arg_of_negation,
            order.top_k_of_negation,
            order.search_of_wider,
            order.search_of_rising,
            index.gather_at_arg,
            index.hot_argmax,
            double_inverse,
            *MOVE_RULES,
        ]
