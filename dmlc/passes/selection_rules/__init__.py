"""The rules of ``fuse-selection``, one idea a file."""

from dmlc.passes.selection_rules.flattened import FlattenedSelection
from dmlc.passes.selection_rules.gathered import GatheredExtreme
from dmlc.passes.selection_rules.hardmax import HardmaxFromOneHot
from dmlc.passes.selection_rules.monotone import DropMonotone
from dmlc.passes.selection_rules.negated import SelectionOfNegation
from dmlc.passes.selection_rules.top_one import TopOne

__all__ = [
    "DropMonotone",
    "FlattenedSelection",
    "GatheredExtreme",
    "HardmaxFromOneHot",
    "SelectionOfNegation",
    "TopOne",
]
