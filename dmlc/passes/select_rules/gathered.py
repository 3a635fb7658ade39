"""What stands at the place of the maximum is the maximum."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import DType, Graph, Node, Value
from dmlc.ir.dtype import i64, u64
from dmlc.ops.index import GATHER_ELEMENTS, IndexAttributes
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_MIN, ReduceAttributes
from dmlc.ops.select import ARGMAX, ARGMIN, ArgAttributes
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.patterns import made_by
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere

#: ReduceMax of these is wrong on ONNX Runtime's CPU provider above 2^31, where ArgMax is right (its issue 32475).
WRONG_ORDER: tuple[DType, ...] = (i64, u64)


class GatheredExtreme(Rule[Match]):
    """gather_elements(x, argmax(x)) becomes reduce_max(x), and with argmin reduce_min(x).

    ``reassociates``, though every number is the same: which of them wins beside a NaN is unspecified.
    """

    name = "gathered-extreme"
    roots = (GATHER_ELEMENTS,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = made_by(node.operand(1), ARGMAX, ARGMIN)
        return None if inner is None else Match(node, (inner,))

    def check(self, match: Match, graph: Graph) -> Miss | None:
        (inner,) = match.consumed
        arg, axis = inner.attributes_as(ArgAttributes), match.root.attributes_as(IndexAttributes).axis
        if inner.operand(0) is not match.root.operand(0):
            return Miss("it reads another tensor than {0} searches", (inner.op.name,))
        if arg.axes != (axis,) or not arg.keepdims:
            return Miss("it reads along axis {0}, the index is over {1}", (axis, list(arg.axes)))
        dtype = inner.operand(0).type.dtype
        if dtype in WRONG_ORDER:
            return Miss("ONNX Runtime's maximum of {0} is wrong where two share their high half", (dtype,))
        return used_elsewhere(inner.result)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        (inner,) = match.consumed
        op = REDUCE_MAX if inner.op is ARGMAX else REDUCE_MIN
        record = ReduceAttributes(axes=inner.attributes_as(ArgAttributes).axes, keepdims=True)
        return [rewriter.add(op, [inner.operand(0)], record)]
