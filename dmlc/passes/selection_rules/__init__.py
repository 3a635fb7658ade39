"""The rules of ``fuse-selection``, one idea a file."""

from dmlc.passes.selection_rules.flattened import ArgOfFlattened
from dmlc.passes.selection_rules.gathered import GatherAtArg
from dmlc.passes.selection_rules.goal import Goal
from dmlc.passes.selection_rules.hot import HotArgmax
from dmlc.passes.selection_rules.monotone import SearchOfRising, SearchOfWider
from dmlc.passes.selection_rules.negated import ArgOfNegation, NegatedExtremeOfNegation, TopKOfNegation
from dmlc.passes.selection_rules.top_one import TopOne

__all__ = [
    "ArgOfFlattened",
    "ArgOfNegation",
    "GatherAtArg",
    "Goal",
    "HotArgmax",
    "NegatedExtremeOfNegation",
    "SearchOfRising",
    "SearchOfWider",
    "TopKOfNegation",
    "TopOne",
]
