"""The rules of ``fuse-selection``, one idea a file."""

from dmlc.passes.select_rules.flattened import FlattenedSelection
from dmlc.passes.select_rules.gathered import GatheredExtreme
from dmlc.passes.select_rules.hardmax import HardmaxFromOneHot
from dmlc.passes.select_rules.monotone import DropMonotone
from dmlc.passes.select_rules.negated import SelectionOfNegation
from dmlc.passes.select_rules.top_one import TopOne

__all__ = [
    "DropMonotone",
    "FlattenedSelection",
    "GatheredExtreme",
    "HardmaxFromOneHot",
    "SelectionOfNegation",
    "TopOne",
]
