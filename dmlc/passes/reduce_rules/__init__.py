"""The rules of ``canonicalize-reduce``, one idea a file."""

from dmlc.ops.choose import CAST
from dmlc.ops.move import EXPAND, RESHAPE, SQUEEZE, TRANSPOSE, UNSQUEEZE
from dmlc.ops.normalize import LOG_SOFTMAX, LP_NORM, MEAN_VARIANCE_NORM, SOFTMAX
from dmlc.ops.reduce import REDUCE_L1, REDUCE_MAX, REDUCE_MEAN, REDUCE_MIN, REDUCE_SUM, REDUCE_SUM_SQUARE, REDUCTIONS
from dmlc.ops.scan import CUMPROD, CUMSUM
from dmlc.ops.select import ARGMAX, ARGMIN, HARDMAX, TOP_K
from dmlc.passes.later import Later

AbsorbMove = Later(
    "dmlc.passes.reduce_rules.keepdims:AbsorbMove", "absorb-move-into-keepdims", (SQUEEZE, UNSQUEEZE, RESHAPE)
)
DropCasts = Later("dmlc.passes.reduce_rules.casts:DropCasts", "casts-around-maximum", (CAST,))
DropEmptyReduction = Later("dmlc.passes.reduce_rules.axes:DropEmptyReduction", "drop-empty-reduction", REDUCTIONS)
DropExpanded = Later(
    "dmlc.passes.reduce_rules.expanded:DropExpanded",
    "reduction-of-expand",
    (REDUCE_SUM, REDUCE_L1, REDUCE_SUM_SQUARE, REDUCE_MEAN, REDUCE_MAX, REDUCE_MIN),
    (EXPAND,),
)
DropFlatten = Later(
    "dmlc.passes.reduce_rules.flattened:DropFlatten",
    "drop-flatten-before-reduction",
    REDUCTIONS,
    (UNSQUEEZE, RESHAPE, SQUEEZE),
)
DropTranspose = Later(
    "dmlc.passes.reduce_rules.transposed:DropTranspose",
    "drop-transpose-before-reduction",
    (*REDUCTIONS, ARGMAX, ARGMIN),
    (TRANSPOSE,),
)
DropUnitAxes = Later(
    "dmlc.passes.reduce_rules.axes:DropUnitAxes",
    "drop-unit-axes",
    (*REDUCTIONS, ARGMAX, ARGMIN, HARDMAX, SOFTMAX, LOG_SOFTMAX),
)
LowerRank = Later(
    "dmlc.passes.reduce_rules.rank:LowerRank",
    "lower-rank",
    (*REDUCTIONS, ARGMAX, ARGMIN, HARDMAX, SOFTMAX, LOG_SOFTMAX, MEAN_VARIANCE_NORM, TOP_K, CUMSUM, CUMPROD, LP_NORM),
    optional=False,
)
MergeNested = Later(
    "dmlc.passes.reduce_rules.merge:MergeNested",
    "merge-nested-reductions",
    REDUCTIONS,
    (*REDUCTIONS, UNSQUEEZE, SQUEEZE, RESHAPE),
)
SinkTranspose = Later(
    "dmlc.passes.reduce_rules.transposed:SinkTranspose", "sink-transpose-between-reductions", REDUCTIONS, (TRANSPOSE,)
)
SortAxes = Later(
    "dmlc.passes.reduce_rules.axes:SortAxes", "sort-axes", (*REDUCTIONS, ARGMAX, ARGMIN, HARDMAX, SOFTMAX, LOG_SOFTMAX)
)
