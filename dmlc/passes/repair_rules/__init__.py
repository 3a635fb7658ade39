"""The rules of ``repair``, a family of known failures a file."""

from collections.abc import Sequence
from typing import Any

from dmlc.passes.repair_rules import (
    casts,
    einsum,
    empty,
    idle,
    layer_norm,
    log_sum_exp,
    narrow,
    pads,
    rank,
    remainder,
    top_k,
)
from dmlc.passes.repair_rules.empty import EmptyRule
from dmlc.passes.repair_rules.rule import RepairRule, Trouble

#: All of them.
RULES: Sequence[type[RepairRule[Any]]] = (
    casts.TruthByComparison,
    *empty.RULES,
    einsum.SpellEllipsis,
    idle.DropIdleAttribute,
    layer_norm.OneLayerNormResult,
    log_sum_exp.ShiftLogSumExp,
    narrow.NarrowExtreme,
    pads.SliceNegativePads,
    *rank.RULES,
    remainder.RemainderByDivision,
    top_k.TopKBySearch,
)

__all__ = ["RULES", "EmptyRule", "RepairRule", "Trouble"]
