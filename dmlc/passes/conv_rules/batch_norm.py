"""A batch normalization after a convolution is part of its weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlc.ir import Graph, Node, StoredTensor, Tensor, Value
from dmlc.ops.constant import constant_of
from dmlc.ops.opaque import OPAQUE, attribute_of, is_opaque
from dmlc.passes.conv_rules.weights import Conv, conv_of, rebuilt, wide
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere
from dmlc.records import dataclass


@dataclass(slots=True, eq=False)
class _BatchNormMatch(Match):
    conv: Conv | None = None
    statistics: tuple[Tensor, ...] = ()


class FoldBatchNorm(Rule[_BatchNormMatch]):
    """BatchNormalization(Conv(x)) becomes a Conv with scaled weights and a bias.

    ``reassociates``: the scale is multiplied into the weights instead of the sums. The statistics are constants, as in
    inference; the new weights are computed in f64 and rounded once.
    """

    name = "fold-batch-norm"
    roots = (OPAQUE,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _BatchNormMatch | None:
        if not is_opaque(node, "BatchNormalization"):
            return None
        conv = conv_of(node.operand(0))
        if conv is None or attribute_of(node, "training_mode", 0) or any(r.uses for r in node.results[1:]):
            return None
        found = [constant_of(v) for v in node.operands[1:]]
        statistics = tuple([t for t in found if t is not None])
        if len(statistics) != 4 or any(isinstance(t, StoredTensor) and t.is_apart for t in statistics):
            return None
        return _BatchNormMatch(node, (conv.node,), conv, statistics)

    def check(self, match: _BatchNormMatch, graph: Graph) -> Miss | None:
        assert match.conv is not None
        if any(t.type.shape != (match.conv.channels,) for t in match.statistics):
            return Miss("its statistics are not one for each of the {0} channels", (match.conv.channels,))
        if len({t.dtype for t in (match.conv.weight, *match.statistics)}) > 1:
            return Miss("weights and statistics have several dtypes")
        return used_elsewhere(match.conv.node.result)

    def build(self, match: _BatchNormMatch, rewriter: Rewriter) -> Sequence[Value]:
        conv = match.conv
        assert conv is not None
        gamma, beta, mean, variance = wide(match.statistics)
        with np.errstate(all="ignore"):
            scale = gamma / np.sqrt(variance + attribute_of(match.root, "epsilon", 1e-5))
            shift = beta - mean * scale
        (weight,) = wide([conv.weight])
        bias = 0 if conv.bias is None else wide([conv.bias])[0]
        column = scale.reshape(-1, *[1] * (weight.ndim - 1))
        made = rebuilt(rewriter, conv, weight * column, bias * scale + shift)
        return [made, *match.root.results[1:]]
