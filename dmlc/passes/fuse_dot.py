"""``fuse-dot``: sums of products become matrix products."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_lowercase
from typing import Any, ClassVar

import numpy as np
from msgspec import Struct

from dmlc.ir import Dim, Graph, Node, Shape, StoredTensor, Tensor, Value, product
from dmlc.ir.dtype import f32
from dmlc.ops.binary import MUL
from dmlc.ops.constant import constant_of
from dmlc.ops.move import EXPAND, TRANSPOSE, TransposeAttributes
from dmlc.ops.reduce import REDUCE_SUM, ReduceAttributes, axes_of
from dmlc.passes.expressions import Formulas, Sketch, Term
from dmlc.passes.fold_constants.layouts import MOVE_RULES
from dmlc.passes.layouts import is_unit
from dmlc.passes.lowering import KEEP, Lowered, simplifies
from dmlc.passes.manager import REASSOCIATES, PassContext
from dmlc.passes.patterns import made_by
from dmlc.passes.rewrite import Miss, RewritePass, Rule, used_elsewhere

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
    axes = axes_of(root)
    if node is None or node.operand("a") is node.operand("b") or not node.result.type.dtype.is_float or not axes:
        return None
    rank = node.result.type.rank
    a, b = (_padded(graph, node.operand(i).shape, rank) for i in (0, 1))
    only = [[i for i in range(rank) if one[i] != 1 and other[i] == 1] for one, other in ((a, b), (b, a))]
    return SummedProduct(node, (a, b), axes, (only[0], only[1]))


def _padded(graph: Graph, shape: Shape, rank: int) -> Shape:
    return (1,) * (rank - len(shape)) + tuple([1 if is_unit(graph, d) else d for d in shape])


def arranged(e: Formulas, value: Value, shape: Shape, order: Sequence[int]) -> Value:
    """The factor with those axes of the product, in that order; others have size 1 and go. ``shape`` is the factor's
    in the product's rank."""
    kept = sorted(order)
    value = reshaped(e, value, tuple([shape[a] for a in kept]))
    perm = tuple([kept.index(a) for a in order])
    moving = [p for p in perm if shape[kept[p]] != 1]
    if moving == sorted(moving):  # only axes of size 1 change places
        return reshaped(e, value, tuple([shape[a] for a in order]))
    data = _own(value)
    if data is not None:
        return e.constant(np.ascontiguousarray(data.array.transpose(perm)), value.type.dtype)
    return e.add(TRANSPOSE, [value], TransposeAttributes(perm=perm))


def reshaped(e: Formulas, value: Value, shape: Shape) -> Value:
    """The value with other axes of size 1."""
    data = _own(value)
    if data is None or value.shape == shape:
        return e.with_ones(value, shape)
    return e.constant(data.array.reshape([d for d in shape if isinstance(d, int)]), value.type.dtype)


def _own(value: Value) -> Tensor | None:
    """The data of a constant that nothing else uses, so that it may be laid out anew."""
    data = constant_of(value)
    if data is None or len(value.uses) > 1 or data.size > _MOST_ELEMENTS:
        return None
    return None if isinstance(data, StoredTensor) and data.is_apart else data


@simplifies(REDUCE_SUM, fed_by=(MUL,), gives=REASSOCIATES)
def einsum_from_sum(e: Sketch, node: Node, x: Term) -> Lowered:
    """reduce_sum(a * b) of two equal shapes becomes Einsum on DirectML, whose provider runs it as just these two.

    ``reassociates``, for another provider may add in another order. Nothing is gained but a node: DirectML's operators
    and dispatches are the same. Other targets keep the two: ONNX Runtime's CPU provider is 2 to 4 times slower with
    Einsum. So is f16, which that provider's Einsum does not take, and a result that keeps the summed axes.
    """
    found = summed_product(e.graph, node) if x.dtype is f32 else None
    if found is None:
        return KEEP
    e.taken.append(found.node)
    a, b = found.node.operand("a"), found.node.operand("b")
    if a.shape != b.shape:
        return Miss("the product broadcasts a factor, {0} or {1}", found.text)
    if node.attributes_as(ReduceAttributes).keepdims:
        return Miss("the sum keeps its axes, and Einsum makes no axes of size 1")
    names = ascii_lowercase[: x.rank]
    left = "".join([name for axis, name in enumerate(names) if axis not in found.axes])
    return used_elsewhere(x.value) or e.onnx("Einsum", node.result.type, a, b, equation=f"{names},{names}->{left}")


class _Matrices(Struct, frozen=True):
    """``left`` is the factor that has the rows, of the axes of the product ``rows`` and ``columns`` are those that
    only it and only the other has."""

    product: SummedProduct
    left: int
    rows: int
    columns: int
    inner: int


@simplifies(REDUCE_SUM, fed_by=(MUL,), gives=REASSOCIATES)
def matmul_from_sum(e: Sketch, node: Node, x: Term) -> Lowered:
    """reduce_sum(a * b) becomes matmul(a, b) where the product broadcasts both: it holds rows times columns elements.

    ``reassociates``. Up to 70 times faster on ONNX Runtime's CPU provider, one dispatch less on DirectML if no factor
    needs a transpose. The product is never written. A product may be less than 4 times as large as its factors. Then
    transposes of factors whose last axis is a batch cost up to 10 times what they save, measured on that provider.
    """
    product = summed_product(e.graph, node)
    if product is None:
        return KEEP
    if product.inner is None:
        return Miss("it sums over axes {0}, not over one that both factors have", (list(product.axes),))
    if not product.only[0] or not product.only[1]:
        return Miss("the product is not larger than its factors, {0} and {1}", product.text)
    e.taken.append(product.node)
    # Further axes of one factor are a batch, along which the other is broadcast. The factor whose axis comes first
    # has the rows, so that the result needs no transpose.
    last = (product.only[0][-1], product.only[1][-1])
    left = int(last[1] < last[0])
    found = _Matrices(product, left, last[left], last[1 - left], product.inner)
    batch, inner = _batch_axes(found), found.inner
    if _is_small(product) and any(axis > max(found.rows, found.columns, inner) for axis in batch):
        return Miss("factors {0} and {1} need transposes, which cost more than the small product", product.text)
    size = _size_that_costs(found, batch, e.graph)
    if size is not None:
        return Miss("size {0} may be 0: a matrix product needs more nodes then", (size,))
    if reason := used_elsewhere(x.value):
        return reason
    made = e.matmul(
        arranged(e, product.factor(left), product.shapes[left], [*batch, found.rows, inner]),
        arranged(e, product.factor(1 - left), product.shapes[1 - left], [*batch, inner, found.columns]),
    )
    order = [*batch, found.rows, found.columns]
    return made.transposed([order.index(a) for a in sorted(order)]).with_ones(node.result.shape)


#: A product so many times as large as its factors is worth a copy of them.
_WORTH_COPIES = 4


def _batch_axes(match: _Matrices) -> list[int]:
    """The axes of the product with several places that are not of the matrices."""
    matrix = (match.rows, match.columns, match.inner)
    return [a for a, sizes in enumerate(zip(*match.product.shapes, strict=True)) if sizes != (1, 1) and a not in matrix]


def _is_small(summed: SummedProduct) -> bool:
    """Return whether the product is known to be less than 4 times as large as both factors together."""
    counts = [product(shape[a] for a in only) for shape, only in zip(summed.shapes, summed.only, strict=True)]
    if not (isinstance(counts[0], int) and isinstance(counts[1], int)):
        return False
    return counts[0] * counts[1] < _WORTH_COPIES * (counts[0] + counts[1])


def _size_that_costs(match: _Matrices, batch: Sequence[int], graph: Graph) -> Dim | None:
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


@simplifies(REDUCE_SUM, fed_by=(MUL,), gives=REASSOCIATES)
def matmul_from_weighted_sum(e: Sketch, node: Node, y: Term) -> Lowered:
    """reduce_sum(w[..., k, 1] * x[..., k, n]) over k becomes matmul(w[..., 1, k], x): a sum of rows with weights.

    ``reassociates``. One dispatch instead of two on DirectML, and measured 1.2 to 30 times faster on ONNX Runtime's
    CPU provider, where the product is not written. Along the last axis that form stays. There that provider's matrix
    product with one column is 4 to 8 times slower than the product and its sum.
    """
    product = summed_product(e.graph, node)
    if product is None or product.inner is None or bool(product.only[0]) is bool(product.only[1]):
        return KEEP
    weights, inner = int(bool(product.only[0])), product.inner  # the factor that does not vary along the last axis
    small, large = product.shapes[weights], product.shapes[1 - weights]
    varying = [a for a, size in enumerate(large) if size != 1]
    if varying[-2:-1] != [inner] or varying[-1] not in product.only[1 - weights]:
        return KEEP
    e.taken.append(product.node)
    for size in large:
        if e.graph.dims.least == 0 and e.graph.dims.interval(size)[0] < 1:
            return Miss("size {0} may be 0: a matrix product needs pads then, which cost more nodes", (size,))
    spread = made_by(product.factor(1 - weights), EXPAND)
    if spread is not None:
        return Miss("{0} is an expansion, of which a matrix product would need all", (spread.result.type,))
    if reason := used_elsewhere(y.value):
        return reason
    batch, columns, target = [a for a in varying if a not in varying[-2:]], varying[-1], node.result.shape
    x = arranged(e, product.factor(1 - weights), large, [*batch, inner, columns])
    leading = tuple([small[a] for a in batch])
    if any(size != 1 for size in leading):
        row = (*leading, 1, small[inner])
    else:
        with_row = (*[large[a] for a in batch], 1, large[columns])
        row = (1, small[inner]) if target == with_row else (small[inner],)
    return e.matmul(reshaped(e, product.factor(weights), row), x).with_ones(target)


class FuseDot(RewritePass, frozen=True):
    """Replace sums over products by matrix products if that is cheaper on the target.

    Cheaper means: no product larger than its factors is stored, or fewer dispatches, or fewer nodes for as many
    dispatches.
    """

    name: ClassVar[str] = "fuse-dot"
    summary: ClassVar[str] = "Make matrix products of sums over products, where they are cheaper."
    rewrite_class: ClassVar[str] = REASSOCIATES

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        rules: list[type[Rule[Any]]] = [matmul_from_sum, matmul_from_weighted_sum]
        # Einsum is cheaper where it is an operator of an execution provider: fewer dispatches.
        if context.capabilities.kernel("Einsum") is not None:
            rules.append(einsum_from_sum)
        return [*rules, *MOVE_RULES]
