"""The rules of ``canonicalize-reduce``, one idea a file."""

from dmlc.passes.reduce_rules.axes import DropEmptyReduction, DropUnitAxes, SortAxes
from dmlc.passes.reduce_rules.casts import DropCasts
from dmlc.passes.reduce_rules.expanded import DropExpanded
from dmlc.passes.reduce_rules.flattened import DropFlatten
from dmlc.passes.reduce_rules.keepdims import AbsorbMove
from dmlc.passes.reduce_rules.merge import MergeNested
from dmlc.passes.reduce_rules.rank import LowerRank
from dmlc.passes.reduce_rules.transposed import DropTranspose, SinkTranspose

__all__ = [
    "AbsorbMove",
    "DropCasts",
    "DropEmptyReduction",
    "DropExpanded",
    "DropFlatten",
    "DropTranspose",
    "DropUnitAxes",
    "LowerRank",
    "MergeNested",
    "SinkTranspose",
    "SortAxes",
]
