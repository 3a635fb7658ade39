"""The first of the largest elements is the maximum, and its index that of the maximum."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Graph, Node, Value
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_MIN, ReduceAttributes
from dmlc.ops.select import ARGMAX, ARGMIN, TOP_K, ArgAttributes, TopKAttributes
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule
from dmlc.passes.select_rules.gathered import WRONG_ORDER


class TopOne(Rule[Match]):
    """top_k(x, k=1) becomes reduce_max(x) where only values are used, argmax(x) where only indices are, else both.

    ``reassociates``, though every number is the same: which wins beside a NaN is unspecified. DirectML issues about one
    dispatch a row for a top_k and one for each of the others; the CPU provider finds one index fastest by its TopK, and
    where both results are wanted a top_k stays one node on other targets.
    """

    name = "top-one"
    roots = (TOP_K,)
    rewrite_class = REASSOCIATES

    def __init__(self, target: str) -> None:
        self.target = target

    def match(self, node: Node, graph: Graph) -> Match | None:
        return Match(node) if node.attributes_as(TopKAttributes).k == 1 else None

    def check(self, match: Match, graph: Graph) -> Miss | None:
        values, indices = match.root.results
        dtype = values.type.dtype
        if values.uses and dtype in WRONG_ORDER:
            return Miss("ONNX Runtime's maximum of {0} is wrong where two share their high half", (dtype,))
        if values.uses and indices.uses and self.target != "directml":
            return Miss("values and indices are used, and one top_k gives both")
        if indices.uses and self.target == "cpu":
            return Miss("TopK finds one index fastest on the CPU")
        return None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        node, a = match.root, match.root.attributes_as(TopKAttributes)
        x, axes, largest = node.operand(0), (a.axis,), a.order == "largest"
        values, indices = node.results
        out = [values, indices]
        if values.uses:
            reduce = REDUCE_MAX if largest else REDUCE_MIN
            out[0] = rewriter.add(reduce, [x], ReduceAttributes(axes=axes, keepdims=True))
        if indices.uses:
            record = ArgAttributes(axes=axes, ties="first", dtype=a.dtype, keepdims=True)
            out[1] = rewriter.add(ARGMAX if largest else ARGMIN, [x], record)
        return out
