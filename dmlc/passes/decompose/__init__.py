"""``decompose``: operators that the user names are written in primitive ones, the reverse of fusion."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.passes.decompose.attention import decompose_attention, decompose_rotary
from dmlc.passes.decompose.decomposition import operator_of
from dmlc.passes.decompose.elementwise import decompose_elementwise
from dmlc.passes.decompose.norms import (
    decompose_axes_norm,
    decompose_batch_norm,
    decompose_channel_norm,
    decompose_layer_norm,
)
from dmlc.passes.decompose.products import decompose_einsum, decompose_gemm
from dmlc.passes.decompose.selections import decompose_hardmax, decompose_reduction, decompose_softmax
from dmlc.passes.manager import REASSOCIATES, PassContext
from dmlc.passes.rewrite import RewritePass, Rule

RULES: Sequence[type[Any]] = (
    decompose_layer_norm,
    decompose_channel_norm,
    decompose_batch_norm,
    decompose_axes_norm,
    decompose_softmax,
    decompose_hardmax,
    decompose_reduction,
    decompose_elementwise,
    decompose_gemm,
    decompose_einsum,
    decompose_attention,
    decompose_rotary,
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
