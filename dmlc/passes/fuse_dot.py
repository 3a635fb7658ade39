"""``fuse-dot``: sums of products become matrix products."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from string import ascii_lowercase
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct

from dmlc.ir import Dim, Graph, Node, Operation, Shape, StoredTensor, Tensor, Value, product
from dmlc.ir.dtype import f32
from dmlc.ops.binary import MUL
from dmlc.ops.constant import constant_of
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import EXPAND, TRANSPOSE, TransposeAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes
from dmlc.ops.reduce import REDUCE_SUM, ReduceAttributes
from dmlc.passes.fold_constants import MOVE_RULES
from dmlc.passes.layouts import is_unit
from dmlc.passes.manager import REASSOCIATES, PassContext
from dmlc.passes.patterns import made_by
from dmlc.passes.rewrite import Match, Miss, RewritePass, Rewriter, Rule, used_elsewhere


class FuseDot(RewritePass, frozen=True):
    """Replace sums over products by matrix products if that is cheaper on the target.

    Cheaper means: no product larger than its factors is stored, or fewer dispatches, or fewer nodes for as many
    dispatches.
    """

    name: ClassVar[str] = "fuse-dot"
    summary: ClassVar[str] = "Make matrix products of sums over products, where they are cheaper."
    rewrite_class: ClassVar[str] = REASSOCIATES

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        rules: list[type[Rule[Any]]] = [MatmulFromSum, MatmulFromWeightedSum]
        # Einsum is cheaper where it is an operator of an execution provider: fewer dispatches.
        if context.capabilities.kernel("Einsum") is not None:
            rules.append(EinsumFromSum)
        return [*rules, *MOVE_RULES]


#: A larger constant is moved by the model, not here.
_MOST_ELEMENTS = 2**20


class SummedProduct(Struct, frozen=True):
    """reduce_sum(a * b): the product's node, both factors' shapes in its rank, the axes that are summed, and for each
    factor those along which only it varies."""

    node: Node
    shapes: tuple[Shape, Shape]
    axes: tuple[int, ...]
    only: tuple[list[int], list[int]]

    def factor(self, index: int) -> Value:
        return self.node.operand(index)

    @property
    def inner(self) -> int | None:
        """The one axis that is summed, where both factors vary along it."""
        if len(self.axes) != 1 or self.shapes[0][self.axes[0]] != self.shapes[1][self.axes[0]]:
            return None
        return None if self.shapes[0][self.axes[0]] == 1 else self.axes[0]

    @property
    def text(self) -> tuple[str, str]:
        first, second = (f"[{', '.join(map(str, shape))}]" for shape in self.shapes)
        return first, second


def summed_product(graph: Graph, root: Node) -> SummedProduct | None:
    """Return the product that a sum reduces, if it has two different float factors."""
    node = made_by(root.operand("x"), MUL)
    axes = root.attributes_as(ReduceAttributes).axes
    if node is None or node.operand("a") is node.operand("b") or not node.result.type.dtype.is_float or not axes:
        return None
    rank = node.result.type.rank
    a, b = (_padded(graph, node.operand(i).shape, rank) for i in (0, 1))
    only = [[i for i in range(rank) if one[i] != 1 and other[i] == 1] for one, other in ((a, b), (b, a))]
    return SummedProduct(node, (a, b), axes, (only[0], only[1]))


def _padded(graph: Graph, shape: Shape, rank: int) -> Shape:
    return (1,) * (rank - len(shape)) + tuple([1 if is_unit(graph, d) else d for d in shape])


def arranged(rewriter: Rewriter, value: Value, shape: Shape, order: Sequence[int]) -> Value:
    """The factor with those axes of the product, in that order; others have size 1 and go. ``shape`` is the factor's
    in the product's rank."""
    kept = sorted(order)
    value = reshaped(rewriter, value, tuple([shape[a] for a in kept]))
    perm = tuple([kept.index(a) for a in order])
    moving = [p for p in perm if shape[kept[p]] != 1]
    if moving == sorted(moving):  # only axes of size 1 change places
        return reshaped(rewriter, value, tuple([shape[a] for a in order]))
    data = _own(value)
    if data is not None:
        return rewriter.constant(np.ascontiguousarray(data.array.transpose(perm)), value.type.dtype)
    return rewriter.add(TRANSPOSE, [value], TransposeAttributes(perm=perm))


def reshaped(rewriter: Rewriter, value: Value, shape: Shape) -> Value:
    """The value with other axes of size 1."""
    data = _own(value)
    if data is None or value.shape == shape:
        return rewriter.with_ones(value, shape)
    return rewriter.constant(data.array.reshape([d for d in shape if isinstance(d, int)]), value.type.dtype)


def _own(value: Value) -> Tensor | None:
    """The data of a constant that nothing else uses, so that it may be laid out anew."""
    data = constant_of(value)
    if data is None or len(value.uses) > 1 or data.size > _MOST_ELEMENTS:
        return None
    return None if isinstance(data, StoredTensor) and data.is_apart else data


class _EinsumMatch(Match, eq=False, kw_only=True):
    shapes: tuple[str, str]


class EinsumFromSum(Rule[_EinsumMatch]):
    """reduce_sum(a * b) of two equal shapes becomes Einsum on DirectML, whose provider runs it as just these two.

    ``reassociates``, for another provider may add in another order. Nothing is gained but a node: DirectML's operators
    and dispatches are the same. Other targets keep the two: ONNX Runtime's CPU provider is 2 to 4 times slower with
    Einsum. So is f16, which that provider's Einsum does not take, and a result that keeps the summed axes.
    """

    name = "einsum-from-sum"
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_SUM,)
    fed_by: ClassVar[Collection[Operation]] = (MUL,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _EinsumMatch | None:
        product = summed_product(graph, node)
        if product is None or node.result.type.dtype is not f32:
            return None
        return _EinsumMatch(node, (product.node,), shapes=product.text)

    def check(self, match: _EinsumMatch, graph: Graph) -> Miss | None:
        product = match.consumed[0]
        if product.operand("a").shape != product.operand("b").shape:
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


class _SummedProductMatch(Match, eq=False, kw_only=True):
    """``left`` is the factor that has the rows, of the axes of the product ``rows`` and ``columns`` are those that
    only it and only the other has."""

    product: SummedProduct
    left: int
    rows: int
    columns: int
    inner: int


class MatmulFromSum(Rule[_SummedProductMatch]):
    """reduce_sum(a * b) becomes matmul(a, b) where the product broadcasts both: it holds rows times columns elements.

    ``reassociates``. Up to 70 times faster on ONNX Runtime's CPU provider, one dispatch less on DirectML if no factor
    needs a transpose. The product is never written. A product may be less than 4 times as large as its factors. Then
    transposes of factors whose last axis is a batch cost up to 10 times what they save, measured on that provider.
    """

    name = "matmul-from-sum"
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_SUM,)
    fed_by: ClassVar[Collection[Operation]] = (MUL,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _SummedProductMatch | Miss | None:
        product = summed_product(graph, node)
        if product is None:
            return None
        if product.inner is None:
            return Miss("it sums over axes {0}, not over one that both factors have", (list(product.axes),))
        if not product.only[0] or not product.only[1]:
            return Miss("the product is not larger than its factors, {0} and {1}", product.text)
        # Further axes of one factor are a batch, along which the other is broadcast. The factor whose axis comes first
        # has the rows, so that the result needs no transpose.
        last = (product.only[0][-1], product.only[1][-1])
        left = int(last[1] < last[0])
        return _SummedProductMatch(
            node,
            (product.node,),
            product=product,
            left=left,
            rows=last[left],
            columns=last[1 - left],
            inner=product.inner,
        )

    def check(self, match: _SummedProductMatch, graph: Graph) -> Miss | None:
        product = match.product
        batch = _batch_axes(match)
        if _is_small(product) and any(axis > max(match.rows, match.columns, match.inner) for axis in batch):
            return Miss("factors {0} and {1} need transposes, which cost more than the small product", product.text)
        size = _size_that_costs(match, batch, graph)
        if size is not None:
            return Miss("size {0} may be 0: a matrix product needs more nodes then", (size,))
        return used_elsewhere(product.node.result)

    def build(self, match: _SummedProductMatch, rewriter: Rewriter) -> Sequence[Value]:
        product, inner = match.product, match.inner
        matrix = (match.rows, match.columns, inner)
        batch = _batch_axes(match)
        right = 1 - match.left
        factors = [
            arranged(rewriter, product.factor(match.left), product.shapes[match.left], [*batch, *matrix[::2]]),
            arranged(rewriter, product.factor(right), product.shapes[right], [*batch, inner, match.columns]),
        ]
        made = rewriter.add(MATMUL, factors)
        order = [*batch, match.rows, match.columns]
        perm = tuple([order.index(a) for a in sorted(order)])
        if perm != tuple(range(len(perm))):
            made = rewriter.add(TRANSPOSE, [made], TransposeAttributes(perm=perm))
        return [rewriter.with_ones(made, match.root.result.shape)]


#: A product so many times as large as its factors is worth a copy of them.
_WORTH_COPIES = 4


def _batch_axes(match: _SummedProductMatch) -> list[int]:
    """The axes of the product with several places that are not of the matrices."""
    matrix = (match.rows, match.columns, match.inner)
    return [a for a, sizes in enumerate(zip(*match.product.shapes, strict=True)) if sizes != (1, 1) and a not in matrix]


def _is_small(summed: SummedProduct) -> bool:
    """Return whether the product is known to be less than 4 times as large as both factors together."""
    counts = [product(shape[a] for a in only) for shape, only in zip(summed.shapes, summed.only, strict=True)]
    if not (isinstance(counts[0], int) and isinstance(counts[1], int)):
        return False
    return counts[0] * counts[1] < _WORTH_COPIES * (counts[0] + counts[1])


def _size_that_costs(match: _SummedProductMatch, batch: Sequence[int], graph: Graph) -> Dim | None:
    """A size that may be 0, where copies of the factors for that (the product sums over nothing, or broadcasts them)
    cost more than matrices of few rows or columns save."""
    first, second = match.product.shapes
    sides = [(first if match.left == 0 else second)[match.rows], (second if match.left == 0 else first)[match.columns]]
    if not any(isinstance(side, int) and side < _WORTH_COPIES for side in sides):
        return None
    sizes = [first[match.inner]]
    if any((first[a] == 1) is not (second[a] == 1) for a in batch):
        sizes += [d for shape in (first, second) for d in shape]
    return next((size for size in sizes if graph.dims.interval(size)[0] < 1), None)


class _WeightedSumMatch(Match, eq=False, kw_only=True):
    """``weights`` is the factor that does not vary along ``columns``, the last axis of the product."""

    product: SummedProduct
    weights: int
    columns: int
    inner: int


class MatmulFromWeightedSum(Rule[_WeightedSumMatch]):
    """reduce_sum(w[..., k, 1] * x[..., k, n]) over k becomes matmul(w[..., 1, k], x): a sum of rows with weights.

    ``reassociates``. One dispatch instead of two on DirectML, and measured 1.2 to 30 times faster on ONNX Runtime's
    CPU provider, where the product is not written. Along the last axis that form stays. There that provider's matrix
    product with one column is 4 to 8 times slower than the product and its sum.
    """

    name = "matmul-from-weighted-sum"
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_SUM,)
    fed_by: ClassVar[Collection[Operation]] = (MUL,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _WeightedSumMatch | None:
        product = summed_product(graph, node)
        if product is None or product.inner is None or bool(product.only[0]) is bool(product.only[1]):
            return None
        weights = int(bool(product.only[0]))
        shape = product.shapes[1 - weights]
        varying = [a for a, size in enumerate(shape) if size != 1]
        if varying[-2:-1] != [product.inner] or varying[-1] not in product.only[1 - weights]:
            return None
        return _WeightedSumMatch(
            node, (product.node,), product=product, weights=weights, columns=varying[-1], inner=product.inner
        )

    def check(self, match: _WeightedSumMatch, graph: Graph) -> Miss | None:
        product = match.product
        for size in product.shapes[1 - match.weights]:
            if graph.dims.least == 0 and graph.dims.interval(size)[0] < 1:
                return Miss("size {0} may be 0: a matrix product needs pads then, which cost more nodes", (size,))
        spread = made_by(product.factor(1 - match.weights), EXPAND)
        if spread is not None:
            return Miss("{0} is an expansion, of which a matrix product would need all", (spread.result.type,))
        return used_elsewhere(match.consumed[0].result)

    def build(self, match: _WeightedSumMatch, rewriter: Rewriter) -> Sequence[Value]:
        product = match.product
        small, large = product.shapes[match.weights], product.shapes[1 - match.weights]
        batch = [a for a, size in enumerate(large) if size != 1 and a not in (match.inner, match.columns)]
        x = arranged(rewriter, product.factor(1 - match.weights), large, [*batch, match.inner, match.columns])
        target = match.root.result.shape
        with_row = (*[large[a] for a in batch], 1, large[match.columns])
        leading = tuple([small[a] for a in batch])
        if any(size != 1 for size in leading):
            row = (*leading, 1, small[match.inner])
        else:
            row = (1, small[match.inner]) if target == with_row else (small[match.inner],)
        made = rewriter.add(MATMUL, [reshaped(rewriter, product.factor(match.weights), row), x])
        return [rewriter.with_ones(made, target)]
