"""MultiHeadAttention with a bias that broadcasts, which the provider takes in full size only."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import FOREIGN, Dim, Graph, Node, Value
from dmlc.ops.move import EXPAND, ExpandAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of, is_opaque
from dmlc.passes.kernel_support import Maker
from dmlc.passes.repair.rule import RepairRule
from dmlc.passes.rewrite import Match, Rewriter

_MICROSOFT = "com.microsoft"
#: The number of the operand attention_bias, of [batch, heads, length, total].
_BIAS = 5


class FullAttentionBias(RepairRule[Match]):
    """An attention_bias of one element along the batch or the heads is expanded."""

    name = "full-attention-bias"
    roots = (OPAQUE,)
    repairs = ("mha-bias-broadcast",)

    def match(self, node: Node, graph: Graph) -> Match | None:
        if not self.support.exists or not is_opaque(node, "MultiHeadAttention", _MICROSOFT):
            return None
        bias = node.operands[_BIAS] if len(node.operands) > _BIAS else None
        query = node.operands[0]
        if bias is None or query is None or FOREIGN in (bias.type.dtype, query.type.dtype):
            return None
        return Match(node) if bias.type.rank == 4 and _full(node, bias) != bias.shape else None

    def describe(self, match: Match) -> str:
        return "the attention_bias of MultiHeadAttention"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        bias = root.operand(_BIAS)
        wide = Maker(rewriter)(EXPAND, bias, attributes=ExpandAttributes(shape=_full(root, bias)))
        operands = [*root.operands[:_BIAS], wide, *root.operands[_BIAS + 1 :]]
        return rewriter.add_node(OPAQUE, operands, root.attributes_as(OpaqueAttributes)).results


def _full(node: Node, bias: Value) -> tuple[Dim, ...]:
    """The shape of the bias with the sizes of the batch and of the heads."""
    batch, heads = node.operand(0).shape[0], int(attribute_of(node, "num_heads", 1))
    own = bias.shape
    return (batch if own[0] == 1 else own[0], heads if own[1] == 1 else own[1], *own[2:])
