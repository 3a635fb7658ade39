"""A convolution multiplied by a constant for each channel has scaled weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlc.ir import Array, Graph, Node, StoredTensor, Tensor, Value
from dmlc.ops.binary import DIV, MUL
from dmlc.ops.constant import constant_of
from dmlc.ops.opaque import OPAQUE
from dmlc.passes.conv_rules.weights import Conv, channel_values, conv_of, rebuilt, wide
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.patterns import both_ways
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere
from dmlc.records import dataclass


@dataclass(slots=True, eq=False)
class _ScaleMatch(Match):
    conv: Conv | None = None
    scale: Tensor | None = None


class FoldScale(Rule[_ScaleMatch]):
    """Conv(x) * c and Conv(x) / c with one c for each channel become a Conv with scaled weights.

    ``reassociates``: the scale is multiplied into the weights instead of the sums. The new weights are computed in f64
    and rounded once.
    """

    name = "fold-scale-into-conv"
    roots = (MUL, DIV)
    fed_by = (OPAQUE,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _ScaleMatch | None:
        pairs = both_ways(node) if node.op is MUL else [(node.operand(0), node.operand(1))]
        for value, other in pairs:
            conv = conv_of(value)
            scale = constant_of(other)
            if conv is not None and scale is not None and not (isinstance(scale, StoredTensor) and scale.is_apart):
                return _ScaleMatch(node, (conv.node,), conv, scale)
        return None

    def check(self, match: _ScaleMatch, graph: Graph) -> Miss | None:
        conv, scale = match.conv, match.scale
        assert conv is not None
        assert scale is not None
        if channel_values(scale, conv) is None:
            return Miss("{0} does not vary by channel alone", (scale.type,))
        for data in (conv.weight, *([] if conv.bias is None else [conv.bias])):
            if not np.isfinite(_scaled(match, data)).all():
                return Miss("the scaled weights leave the range of {0}", (data.dtype,))
        return used_elsewhere(conv.node.result)

    def build(self, match: _ScaleMatch, rewriter: Rewriter) -> Sequence[Value]:
        conv = match.conv
        assert conv is not None
        bias = None if conv.bias is None else _scaled(match, conv.bias)
        return [rebuilt(rewriter, conv, _scaled(match, conv.weight), bias)]


def _scaled(match: _ScaleMatch, data: Tensor) -> Array:
    """The data, of which the first axis is the channel, times the scale: computed in f64, rounded to its own dtype."""
    assert match.conv is not None
    assert match.scale is not None
    values = channel_values(match.scale, match.conv)
    assert values is not None
    (wanted,) = wide([data])
    column = values.astype(np.float64).reshape(-1, *[1] * (wanted.ndim - 1))
    with np.errstate(all="ignore"):
        out: Array = (wanted * column if match.root.op is MUL else wanted / column).astype(data.dtype.numpy)
    return out
