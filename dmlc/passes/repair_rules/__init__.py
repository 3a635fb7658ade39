"""The rules of ``repair``, a family of known failures a file."""

from collections.abc import Sequence

from dmlc.ops import ALL_OPERATIONS
from dmlc.ops.binary import BINARY, EQUAL, MOD, POW
from dmlc.ops.choose import CAST, CLIP, WHERE
from dmlc.ops.constant import CONSTANT
from dmlc.ops.elementwise import ERF, TANH, UNARY
from dmlc.ops.index import FULL, IOTA, SCATTER_ELEMENTS
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import CONCAT, PAD, SLICE, SPLIT, TRANSPOSE
from dmlc.ops.opaque import OPAQUE
from dmlc.ops.reduce import REDUCE_LOG_SUM_EXP, REDUCE_MAX, REDUCE_MIN, REDUCTIONS
from dmlc.ops.scan import CUMSUM
from dmlc.ops.select import TOP_K
from dmlc.passes.later import Later

TruthByComparison = Later(
    "dmlc.passes.repair_rules.casts:TruthByComparison", "truth-by-comparison", (CAST, OPAQUE), optional=False
)
BothBounds = Later("dmlc.passes.repair_rules.clip:BothBounds", "both-bounds", (CLIP, OPAQUE), optional=False)
PowerByProducts = Later(
    "dmlc.passes.repair_rules.powers:PowerByProducts", "power-by-products", (POW, OPAQUE), optional=False
)
MatMulOfMergedBatch = Later(
    "dmlc.passes.repair_rules.merged_batch:MatMulOfMergedBatch", "merge-matmul-batch", (MATMUL,), optional=False
)
TriluOfMergedBatch = Later(
    "dmlc.passes.repair_rules.merged_batch:TriluOfMergedBatch", "merge-trilu-batch", (OPAQUE,), optional=False
)
LrnOfFourAxes = Later(
    "dmlc.passes.repair_rules.merged_batch:LrnOfFourAxes", "merge-lrn-axes", (OPAQUE,), optional=False
)
PlainSkipNorm = Later("dmlc.passes.repair_rules.skip_norm:PlainSkipNorm", "plain-skip-norm", (OPAQUE,))
SlicesOfGate = Later("dmlc.passes.repair_rules.split_gate:SlicesOfGate", "slices-of-gate", (SPLIT,), optional=False)
NothingToCompute = Later(
    "dmlc.passes.repair_rules.empty:NothingToCompute",
    "nothing-to-compute",
    (*[op for op in ALL_OPERATIONS if op not in (CONSTANT, FULL, IOTA)], OPAQUE),
    optional=False,
)
ReductionOfNothing = Later(
    "dmlc.passes.repair_rules.empty:ReductionOfNothing", "reduction-of-nothing", REDUCTIONS, optional=False
)
ProductOfNothing = Later(
    "dmlc.passes.repair_rules.empty:ProductOfNothing", "product-of-nothing", (MATMUL,), optional=False
)
ConcatOfSome = Later("dmlc.passes.repair_rules.empty:ConcatOfSome", "concat-of-some", (CONCAT,), optional=False)
PadOfNothing = Later("dmlc.passes.repair_rules.empty:PadOfNothing", "pad-of-nothing", (PAD,), optional=False)
ScatterOfNothing = Later(
    "dmlc.passes.repair_rules.empty:ScatterOfNothing", "scatter-of-nothing", (SCATTER_ELEMENTS,), optional=False
)
ForeignTruth = Later(
    "dmlc.passes.repair_rules.foreign:ForeignTruth", "truth-of-unknown-rank", (OPAQUE,), optional=False
)
ForeignLogSumExp = Later(
    "dmlc.passes.repair_rules.foreign:ForeignLogSumExp", "shift-log-sum-exp-of-unknown-rank", (OPAQUE,), optional=False
)
ForeignMean = Later(
    "dmlc.passes.repair_rules.foreign:ForeignMean", "exact-mean-of-unknown-rank", (OPAQUE,), optional=False
)
SpellEllipsis = Later("dmlc.passes.repair_rules.einsum:SpellEllipsis", "spell-ellipsis", (OPAQUE,))
DropIdleAttribute = Later("dmlc.passes.repair_rules.idle:DropIdleAttribute", "drop-idle-attribute", (OPAQUE,))
EqualTruths = Later("dmlc.passes.repair_rules.truths:EqualTruths", "equality-of-truths", (EQUAL,), optional=False)
ErfGelu = Later("dmlc.passes.repair_rules.gelu:ErfGelu", "erf-gelu", (ERF,))
TanhGelu = Later("dmlc.passes.repair_rules.gelu:TanhGelu", "tanh-gelu", (TANH,))
GeluOperator = Later("dmlc.passes.repair_rules.gelu:GeluOperator", "gelu-operator", (OPAQUE,))
OneLayerNormResult = Later("dmlc.passes.repair_rules.layer_norm:OneLayerNormResult", "one-layer-norm-result", (OPAQUE,))
ShiftLogSumExp = Later(
    "dmlc.passes.repair_rules.log_sum_exp:ShiftLogSumExp", "shift-log-sum-exp", (REDUCE_LOG_SUM_EXP,), optional=False
)
NarrowExtreme = Later(
    "dmlc.passes.repair_rules.narrow:NarrowExtreme", "narrow-extreme", (REDUCE_MAX, REDUCE_MIN), optional=False
)
SliceNegativePads = Later(
    "dmlc.passes.repair_rules.pads:SliceNegativePads", "slice-negative-pads", (OPAQUE,), optional=False
)
MergeElementwise = Later(
    "dmlc.passes.repair_rules.rank:MergeElementwise",
    "merge-elementwise-axes",
    (*BINARY, *UNARY, CAST, CLIP, WHERE, OPAQUE),
    optional=False,
)
MergeBeside = Later(
    "dmlc.passes.repair_rules.rank:MergeBeside", "merge-axes-beside", (CONCAT, SPLIT, SLICE, CUMSUM), optional=False
)
MergeTransposed = Later(
    "dmlc.passes.repair_rules.rank:MergeTransposed", "merge-transposed-axes", (TRANSPOSE,), optional=False
)
RemainderByDivision = Later(
    "dmlc.passes.repair_rules.remainder:RemainderByDivision", "remainder-by-division", (MOD,), optional=False
)
TileByExpand = Later("dmlc.passes.repair_rules.tile:TileByExpand", "tile-by-expand", (OPAQUE,), optional=False)
TopKBySearch = Later("dmlc.passes.repair_rules.top_k:TopKBySearch", "top-k-by-search", (TOP_K,))

#: Those that see to nodes without elements.
EMPTY_RULES: Sequence[Later] = (
    NothingToCompute,
    ReductionOfNothing,
    ProductOfNothing,
    ConcatOfSome,
    PadOfNothing,
    ScatterOfNothing,
)
#: All of them.
RULES: Sequence[Later] = (
    TruthByComparison,
    ForeignTruth,
    ForeignLogSumExp,
    ForeignMean,
    BothBounds,
    PowerByProducts,
    MatMulOfMergedBatch,
    TriluOfMergedBatch,
    LrnOfFourAxes,
    PlainSkipNorm,
    SlicesOfGate,
    *EMPTY_RULES,
    SpellEllipsis,
    DropIdleAttribute,
    EqualTruths,
    ErfGelu,
    TanhGelu,
    GeluOperator,
    OneLayerNormResult,
    ShiftLogSumExp,
    NarrowExtreme,
    SliceNegativePads,
    MergeElementwise,
    MergeBeside,
    MergeTransposed,
    RemainderByDivision,
    TileByExpand,
    TopKBySearch,
)
