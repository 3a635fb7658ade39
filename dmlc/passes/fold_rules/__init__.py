"""The rules of ``fold-constants``, one idea a file."""

from dmlc.passes.fold_rules.again import ReadAgain
from dmlc.passes.fold_rules.arithmetic import (
    CastChain,
    DifferentTruths,
    Idempotent,
    Inverse,
    KnownTruth,
    NeutralOperand,
    SameCast,
)
from dmlc.passes.fold_rules.around import AroundElementwise
from dmlc.passes.fold_rules.branch import InlineBranch
from dmlc.passes.fold_rules.evaluate import Evaluate
from dmlc.passes.fold_rules.expands import DropExpand
from dmlc.passes.fold_rules.moves import (
    ReshapeChain,
    SliceChain,
    SplitOffNothing,
    StandStill,
    TransposeChain,
    TransposeOfOnes,
)
from dmlc.passes.fold_rules.signs import SignIntoFactor

#: The moves alone, for passes whose new reshapes and transposes may meet those of the program.
MOVE_RULES = (StandStill(), SplitOffNothing(), ReshapeChain(), TransposeChain(), TransposeOfOnes())

__all__ = [
    "MOVE_RULES",
    "AroundElementwise",
    "CastChain",
    "DifferentTruths",
    "DropExpand",
    "Evaluate",
    "Idempotent",
    "InlineBranch",
    "Inverse",
    "KnownTruth",
    "NeutralOperand",
    "ReadAgain",
    "ReshapeChain",
    "SameCast",
    "SignIntoFactor",
    "SliceChain",
    "SplitOffNothing",
    "StandStill",
    "TransposeChain",
    "TransposeOfOnes",
]
