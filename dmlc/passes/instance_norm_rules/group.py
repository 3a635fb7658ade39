"""An instance normalization between two reshapes is a group normalization."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlc.ir import Graph, Node, Value
from dmlc.ops.move import RESHAPE
from dmlc.ops.opaque import attribute_of, is_opaque
from dmlc.passes.instance_norm_rules.nodes import GROUP, INSTANCE, affine_of, channels, make_norm, norm_of
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.patterns import made_by, used_outside
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule


class GroupNorm(Rule[Match]):
    """reshape(InstanceNormalization(reshape(x))) over groups of channels becomes a GroupNormalization.

    ``reassociates``. Only for plain ONNX from opset 21 on: DirectML has no kernel for it.
    """

    name = "fuse-group-norm"
    roots = (RESHAPE,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> Match | None:
        norm = norm_of(node.operand(0))
        before = made_by(norm.operand(0), RESHAPE) if norm is not None else None
        if norm is None or before is None or not is_opaque(norm, INSTANCE):
            return None
        return Match(node, (norm, before))

    def check(self, match: Match, graph: Graph) -> Miss | None:
        norm, before = match.consumed
        x, grouped = before.operand(0), before.result
        if match.root.result.shape != x.shape:
            return Miss("the second reshape does not undo the first")
        count, groups = channels(x), channels(grouped)
        if count is None or groups is None or count % groups:
            return Miss("{0} are no groups of the channels of {1}", (grouped.type, x.type))
        if grouped.shape[0] != x.shape[0]:
            return Miss("the groups of {0} mix the batch of {1}", (grouped.type, x.type))
        scale, bias = affine_of(norm)
        if (scale != 1).any() or bias.any():
            return Miss("its inner scale and bias are for each group, not 1 and 0")
        return used_outside(match.consumed, match.root)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        norm, before = match.consumed
        x = before.operand(0)
        count, groups = channels(x), channels(before.result)
        assert count is not None and groups is not None
        attributes = {"epsilon": attribute_of(norm, "epsilon", 1e-5), "num_groups": groups}
        return [make_norm(rewriter, GROUP, x, np.ones(count), np.zeros(count), attributes)]
