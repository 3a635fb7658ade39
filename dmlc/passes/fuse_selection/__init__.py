"""``fuse-selection``: searches for the largest or smallest element, and what is done with their index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.passes.fold_constants import MOVE_RULES
from dmlc.passes.fold_constants.arithmetic import Inverse
from dmlc.passes.fuse_selection.flattened import ArgOfFlattened, TopOne
from dmlc.passes.fuse_selection.index import GatherAtArg, HotArgmax
from dmlc.passes.fuse_selection.order import (
    ArgOfNegation,
    SearchOfRising,
    SearchOfWider,
    TopKOfNegation,
)
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
            TopOne,
            ArgOfFlattened,
            ArgOfNegation,
            TopKOfNegation,
            SearchOfWider,
            SearchOfRising,
            GatherAtArg,
            HotArgmax,
            Inverse,
            *MOVE_RULES,
        ]
