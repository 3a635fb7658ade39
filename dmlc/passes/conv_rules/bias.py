"""A constant that is added after a convolution is its bias."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlc.ir import Graph, Node, StoredTensor, Tensor, Value
from dmlc.ops.binary import ADD
from dmlc.ops.constant import constant_of
from dmlc.ops.opaque import OPAQUE
from dmlc.passes.conv_rules.weights import Conv, channel_values, conv_of, rebuilt, wide
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.patterns import both_ways
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere
from dmlc.records import dataclass


@dataclass(slots=True, eq=False)
class _BiasMatch(Match):
    conv: Conv | None = None
    bias: Tensor | None = None


class FoldBias(Rule[_BiasMatch]):
    """Conv(x) + c with one c for each channel becomes a Conv with a bias.

    ``reassociates``: a runtime may add the bias to the sum before its last term.
    """

    name = "fold-bias-into-conv"
    roots = (ADD,)
    fed_by = (OPAQUE,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _BiasMatch | None:
        for value, other in both_ways(node):
            conv = conv_of(value)
            bias = constant_of(other)
            if conv is not None and bias is not None and not (isinstance(bias, StoredTensor) and bias.is_apart):
                return _BiasMatch(node, (conv.node,), conv, bias)
        return None

    def check(self, match: _BiasMatch, graph: Graph) -> Miss | None:
        assert match.conv is not None
        assert match.bias is not None
        if channel_values(match.bias, match.conv) is None:
            return Miss("{0} does not vary by channel alone", (match.bias.type,))
        return used_elsewhere(match.conv.node.result)

    def build(self, match: _BiasMatch, rewriter: Rewriter) -> Sequence[Value]:
        conv = match.conv
        assert conv is not None
        assert match.bias is not None
        values = channel_values(match.bias, conv)
        assert values is not None
        old = np.zeros(()) if conv.bias is None else wide([conv.bias])[0]
        return [rebuilt(rewriter, conv, None, old + values.astype(np.float64))]
