"""The rules of ``fuse-dot``."""

from dmlc.passes.dot_rules.einsum import SINCE as EINSUM_SINCE
from dmlc.passes.dot_rules.einsum import EinsumFromSum
from dmlc.passes.dot_rules.outer import MatmulFromSum
from dmlc.passes.dot_rules.weighted import MatmulFromWeightedSum

__all__ = ["EINSUM_SINCE", "EinsumFromSum", "MatmulFromSum", "MatmulFromWeightedSum"]
