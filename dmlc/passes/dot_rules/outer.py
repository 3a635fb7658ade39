"""A sum over products that broadcast both factors is a matrix product."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Graph, Node, Value
from dmlc.ops.binary import MUL
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import TRANSPOSE, TransposeAttributes
from dmlc.ops.reduce import REDUCE_SUM
from dmlc.passes.dot_rules.arrange import SummedProduct, arranged, summed_product
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.reduce_rules.moves import reshape_ones
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere
from dmlc.records import dataclass


@dataclass(slots=True, eq=False)
class _SummedProductMatch(Match):
    """``left`` is the factor that has the rows, of the axes of the product ``rows`` and ``columns`` are those that
    only it and only the other has."""

    product: SummedProduct | None = None
    left: int = 0
    rows: int = 0
    columns: int = 0


class MatmulFromSum(Rule[_SummedProductMatch]):
    """reduce_sum(a * b) becomes matmul(a, b) where the product broadcasts both: it holds rows times columns elements.

    ``reassociates``. Up to 70 times faster on ONNX Runtime's CPU provider and never slower there, one dispatch less on
    DirectML where no factor needs a transpose; the product is never written.
    """

    name = "matmul-from-sum"
    roots = (REDUCE_SUM,)
    fed_by = (MUL,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _SummedProductMatch | None:
        product = summed_product(graph, node)
        if product is None:
            return None
        found = _SummedProductMatch(node, (product.node,), product)
        if product.only[0] and product.only[1]:
            # Further axes of one factor are a batch, along which the other is broadcast. The factor whose axis comes
            # first has the rows, so that the result needs no transpose.
            last = (product.only[0][-1], product.only[1][-1])
            found.left = int(last[1] < last[0])
            found.rows, found.columns = last[found.left], last[1 - found.left]
        return found

    def check(self, match: _SummedProductMatch, graph: Graph) -> Miss | None:
        product = match.product
        assert product is not None
        if product.inner is None:
            return Miss("it sums over axes {0}, not over one that both factors have", (list(product.axes),))
        if not product.only[0] or not product.only[1]:
            return Miss("the product is no larger than its factors, {0} and {1}", product.text)
        return used_elsewhere(product.node.result)

    def build(self, match: _SummedProductMatch, rewriter: Rewriter) -> Sequence[Value]:
        product = match.product
        assert product is not None and product.inner is not None
        rank = product.node.result.type.rank
        matrix = (match.rows, match.columns, product.inner)
        varying = [a for a in range(rank) if product.shapes[0][a] != 1 or product.shapes[1][a] != 1]
        batch = [a for a in varying if a not in matrix]
        right = 1 - match.left
        factors = [
            arranged(rewriter, product.factor(match.left), product.shapes[match.left], [*batch, *matrix[::2]]),
            arranged(rewriter, product.factor(right), product.shapes[right], [*batch, product.inner, match.columns]),
        ]
        made = rewriter.add(MATMUL, factors)
        order = [*batch, match.rows, match.columns]
        perm = tuple([order.index(a) for a in sorted(order)])
        if perm != tuple(range(len(perm))):
            made = rewriter.add(TRANSPOSE, [made], TransposeAttributes(perm=perm))
        return [reshape_ones(rewriter, made, match.root.result.shape)]
