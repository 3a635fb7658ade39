"""Passes: each changes a graph in place, states its contract, and says why it did not fire."""

from dmlc.ir.history import CLASSES
from dmlc.passes.canonicalize_reduce import CanonicalizeReduce
from dmlc.passes.cse import Cse
from dmlc.passes.dce import Dce
from dmlc.passes.fold_constants import FoldConstants
from dmlc.passes.infer_shapes import InferShapes
from dmlc.passes.legalize import Legalize
from dmlc.passes.lower_hardmax import LowerHardmax
from dmlc.passes.manager import (
    EXACT,
    RANGE,
    REASSOCIATES,
    LedgerEntry,
    Pass,
    PassContext,
    PassManager,
    Remark,
)
from dmlc.passes.pipeline import default_pipeline

__all__ = [
    "CLASSES",
    "EXACT",
    "RANGE",
    "REASSOCIATES",
    "CanonicalizeReduce",
    "Cse",
    "Dce",
    "FoldConstants",
    "InferShapes",
    "LedgerEntry",
    "Legalize",
    "LowerHardmax",
    "Pass",
    "PassContext",
    "PassManager",
    "Remark",
    "default_pipeline",
]
