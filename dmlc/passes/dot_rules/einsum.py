"""A batch of dot products as one ONNX operator."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase

from dmlc.ir import Graph, Node, Value
from dmlc.ir.dtype import f32
from dmlc.ops.binary import MUL
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes
from dmlc.ops.reduce import REDUCE_SUM, ReduceAttributes
from dmlc.passes.dot_rules.arrange import summed_product
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere
from dmlc.records import dataclass


@dataclass(slots=True, eq=False)
class _EinsumMatch(Match):
    shapes: tuple[str, str] = ("", "")


class EinsumFromSum(Rule[_EinsumMatch]):
    """reduce_sum(a * b) of two equal shapes becomes Einsum on DirectML, whose provider runs it as just these two.

    ``reassociates``, for another provider may add in another order. Nothing is gained but a node: DirectML's operators
    and dispatches are the same. Other targets keep the two: ONNX Runtime's CPU provider is 2 to 4 times slower with
    Einsum. So is f16, which that provider's Einsum does not take, and a result that keeps the summed axes.
    """

    name = "einsum-from-sum"
    roots = (REDUCE_SUM,)
    fed_by = (MUL,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _EinsumMatch | None:
        product = summed_product(graph, node)
        if product is None or node.result.type.dtype is not f32:
            return None
        return _EinsumMatch(node, (product.node,), product.text)

    def check(self, match: _EinsumMatch, graph: Graph) -> Miss | None:
        product = match.consumed[0]
        if product.operand(0).shape != product.operand(1).shape:
            return Miss("the product broadcasts a factor, {0} or {1}", match.shapes)
        if match.root.attributes_as(ReduceAttributes).keepdims:
            return Miss("the sum keeps its axes, and Einsum makes no axes of size 1")
        return used_elsewhere(product.result)

    def build(self, match: _EinsumMatch, rewriter: Rewriter) -> Sequence[Value]:
        root, product = match.root, match.consumed[0]
        axes = root.attributes_as(ReduceAttributes).axes
        names = ascii_lowercase[: product.result.type.rank]
        left = "".join([name for a, name in enumerate(names) if a not in axes])
        record = OpaqueAttributes(
            op_type="Einsum", types=(root.result.type,), attributes=(("equation", f"{names},{names}->{left}"),)
        )
        return [rewriter.add(OPAQUE, product.operands, record)]
