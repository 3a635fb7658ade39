"""The rules of ``fuse-selection``, one idea a file."""

from dmlc.ops.binary import DIV, MUL, SUB
from dmlc.ops.choose import CAST
from dmlc.ops.elementwise import NEG
from dmlc.ops.index import GATHER, GATHER_ELEMENTS, ONE_HOT
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_MIN
from dmlc.ops.select import ARGMAX, ARGMIN, TOP_K
from dmlc.passes.later import Later

ArgOfFlattened = Later("dmlc.passes.selection_rules.flattened:ArgOfFlattened", "arg-of-flattened", (ARGMAX, ARGMIN))
ArgOfNegation = Later("dmlc.passes.selection_rules.negated:ArgOfNegation", "arg-of-negation", (ARGMAX, ARGMIN))
GatherAtArg = Later("dmlc.passes.selection_rules.gathered:GatherAtArg", "gather-at-arg", (GATHER_ELEMENTS, GATHER))
HotArgmax = Later("dmlc.passes.selection_rules.hot:HotArgmax", "hot-argmax", (ONE_HOT, CAST))
NegatedExtremeOfNegation = Later(
    "dmlc.passes.selection_rules.negated:NegatedExtremeOfNegation",
    "negated-extreme-of-negation",
    (NEG, SUB, MUL, DIV),
    (REDUCE_MAX, REDUCE_MIN),
)
SearchOfRising = Later("dmlc.passes.selection_rules.monotone:SearchOfRising", "search-of-rising", (ARGMAX, TOP_K))
SearchOfWider = Later("dmlc.passes.selection_rules.monotone:SearchOfWider", "search-of-wider", (ARGMAX, ARGMIN, TOP_K))
TopKOfNegation = Later("dmlc.passes.selection_rules.negated:TopKOfNegation", "top-k-of-negation", (TOP_K,))
TopOne = Later("dmlc.passes.selection_rules.top_one:TopOne", "top-one", (TOP_K,))
