"""The rules of ``fuse-dot``."""

from dmlc.ops.binary import MUL
from dmlc.ops.reduce import REDUCE_SUM
from dmlc.passes.later import Later

EinsumFromSum = Later("dmlc.passes.dot_rules.einsum:EinsumFromSum", "einsum-from-sum", (REDUCE_SUM,), (MUL,))
MatmulFromSum = Later("dmlc.passes.dot_rules.outer:MatmulFromSum", "matmul-from-sum", (REDUCE_SUM,), (MUL,))
MatmulFromWeightedSum = Later(
    "dmlc.passes.dot_rules.weighted:MatmulFromWeightedSum", "matmul-from-weighted-sum", (REDUCE_SUM,), (MUL,)
)
