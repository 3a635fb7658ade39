"""Normalizations of a sum, SkipLayerNormalization and its simplified form, as the provider reads them."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import FOREIGN, Graph, Node, Value
from dmlc.ops.binary import ADD
from dmlc.ops.move import EXPAND, ExpandAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, is_opaque
from dmlc.passes.legal_rules.build import Maker
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.repair_rules.rule import RepairRule
from dmlc.passes.rewrite import Match, Rewriter

_MICROSOFT = "com.microsoft"
_FULL, _SIMPLIFIED = "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"
#: The operand of the simplified form that is a bias, and that the provider reads as another.
_BIAS = 3


class PlainSkipNorm(RepairRule[Match]):
    """A skip that broadcasts is expanded, and the bias of the simplified form is added before the node."""

    name = "plain-skip-norm"
    optional = True
    roots = (OPAQUE,)
    repairs = ("skip-norm-bias", "skip-norm-broadcast")
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> Match | None:
        if not self.support.exists or not any(is_opaque(node, op, _MICROSOFT) for op in (_FULL, _SIMPLIFIED)):
            return None
        x, skip = node.operands[:2]
        if x is None or skip is None or FOREIGN in (x.type.dtype, skip.type.dtype):
            return None
        return Match(node) if _broadcasts(skip, x) or _bias_of(node) is not None else None

    def describe(self, match: Match) -> str:
        return match.root.attributes_as(OpaqueAttributes).op_type

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, root = Maker(rewriter), match.root
        x, skip, *rest = root.operands
        assert x is not None and skip is not None
        bias = _bias_of(root)
        if bias is not None:
            skip, rest = make(ADD, skip, bias), rest[:1]
        if _broadcasts(skip, x):
            skip = make(EXPAND, skip, attributes=ExpandAttributes(shape=x.shape))
        return rewriter.add_node(OPAQUE, [x, skip, *rest], root.attributes_as(OpaqueAttributes)).results


def _broadcasts(skip: Value, x: Value) -> bool:
    """Return whether the skip broadcasts. Open sizes of which neither is 1 are equal in every model that runs."""
    if skip.type.rank != x.type.rank:
        return True
    return any(m != n and m == 1 for m, n in zip(skip.shape, x.shape, strict=True))


def _bias_of(node: Node) -> Value | None:
    simplified = is_opaque(node, _SIMPLIFIED, _MICROSOFT)
    return node.operands[_BIAS] if simplified and len(node.operands) > _BIAS else None
