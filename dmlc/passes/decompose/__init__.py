"""``decompose``: operators that the user names are written in primitive ones, the reverse of fusion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.passes.decompose.attention import DecomposeAttention, DecomposeRotary
from dmlc.passes.decompose.decomposition import Decomposition, operator_of
from dmlc.passes.decompose.elementwise import DecomposeElementwise
from dmlc.passes.decompose.norms import (
    DecomposeAxesNorm,
    DecomposeBatchNorm,
    DecomposeChannelNorm,
    DecomposeLayerNorm,
)
from dmlc.passes.decompose.products import DecomposeEinsum, DecomposeGemm
from dmlc.passes.decompose.selections import DecomposeHardmax, DecomposeReduction, DecomposeSoftmax
from dmlc.passes.manager import REASSOCIATES, PassContext
from dmlc.passes.rewrite import RewritePass, Rule

RULES: Sequence[type[Decomposition]] = (
    DecomposeLayerNorm,
    DecomposeChannelNorm,
    DecomposeBatchNorm,
    DecomposeAxesNorm,
    DecomposeSoftmax,
    DecomposeHardmax,
    DecomposeReduction,
    DecomposeElementwise,
    DecomposeGemm,
    DecomposeEinsum,
    DecomposeAttention,
    DecomposeRotary,
)
#: Operators that ONNX's own definition decomposes.
DEFINED = ("Attention", "RotaryEmbedding")
#: Every operator that can be decomposed, with its domain if that is not ONNX's own.
OPERATORS: tuple[str, ...] = tuple(sorted({*DEFINED, *[name for rule in RULES for name in rule.operators]}))


class Decompose(RewritePass, frozen=True):
    """The only pass of ``dmlc decompose``: all other nodes stay as the model has them."""

    name: ClassVar[str] = "decompose"
    summary: ClassVar[str] = "Write the named operators in primitive ones."
    rewrite_class: ClassVar[str] = REASSOCIATES

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return RULES


__all__ = ["DEFINED", "OPERATORS", "RULES", "Decompose", "operator_of"]
