"""Nodes over matrices whose DirectML operator takes up to 4 axes: the axes before the matrix become one."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import replace

from dmlc.ir import Dim, Node, product
from dmlc.ops.matmul import MATMUL
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import KEEP, Lowered, lowers
from dmlc.passes.patterns import depends_on_batch, opaque_factors
from dmlc.passes.rewrite import Miss
from dmlc.targets.directml import LARGEST_BATCH


@lowers(MATMUL, repairs=("matmul-rank", "gemm-batch"))
def merge_matmul_batch(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """A matmul of more than 4 axes, or of too many matrices along an axis, becomes another between reshapes.

    Rows that meet a single matrix become the rows of one product. Otherwise the axes before the matrices become one, or
    two where one would be too large; a batch that broadcasts is expanded.
    """
    rank, large = (e.target.fault(fault, "MatMul") for fault in ("matmul-rank", "gemm-batch"))
    if rank is None or rank.ranks_over is None or e.target.leaves("MatMul", node.result.type.dtype):
        return KEEP
    is_large = large is not None and any(_is_large(size) for x in (a, b) for size in x.shape[:-2])
    if not is_large and max(a.rank, b.rank) <= rank.ranks_over:
        return KEEP
    vectors, shape = sum(x.rank == 1 for x in (a, b)), node.result.shape
    batch = shape[: len(shape) - 2 + vectors]
    axes = _divided(product(batch))
    if axes is None and not _is_single(b):
        return Miss("the number of matrices, {0}, has no two factors of up to 65535", (product(batch),))
    left = a.reshape((1, *a.shape)) if a.rank == 1 else a
    right = b.reshape((*b.shape, 1)) if b.rank == 1 else b
    if axes is None or _is_single(right):
        rows = left.reshape((product(left.shape[:-1]), left.shape[-1]))
        return e.matmul(rows, right.reshape(right.shape[-2:])).reshape(shape)
    return e.matmul(*[_matrices(e, x, batch, axes) for x in (left, right)]).reshape(shape)


def _is_large(size: Dim) -> bool:
    return isinstance(size, int) and size > LARGEST_BATCH


def _is_single(x: Term) -> bool:
    """True for one matrix or vector, whatever the number of its axes."""
    return all(size == 1 for size in x.shape[:-2])


def _divided(count: Dim) -> tuple[Dim, ...] | None:
    """The number of matrices as one axis, or as two that DirectML takes; None if there are no such two."""
    if not isinstance(count, int) or count <= LARGEST_BATCH:
        return (count,)
    least = -(-count // LARGEST_BATCH)
    first = next((n for n in range(least, min(math.isqrt(count), LARGEST_BATCH) + 1) if count % n == 0), None)
    return None if first is None else (first, count // first)


def _matrices(e: Sketch, x: Term, batch: Sequence[Dim], axes: Sequence[Dim]) -> Term:
    """The matrices along the axes; a single matrix as it is, for it broadcasts."""
    own, matrix = x.shape[:-2], x.shape[-2:]
    if all(size == 1 for size in own):
        return x.reshape(matrix)
    return (x if own == tuple(batch) else e.expand(x, shape=(*batch, 1, 1))).reshape((*axes, *matrix))


#: Axes that GEMM takes.
_AXES = 4


def _retyped(e: Sketch, node: Node, shape: Sequence[Dim], *operands: Term | None) -> Term:
    """The opaque node with other operands, and a result of that shape."""
    record = node.attributes_as(OpaqueAttributes)
    return e(OPAQUE, *operands, attributes=replace(record, types=(node.result.type.with_shape(tuple(shape)),)))


@lowers(OPAQUE, repairs=("matmul-rank", "gemm-batch", "fused-matmul-rank", "fused-gemm-batch"))
def merge_product_batch(e: Sketch, node: Node, *operands: Term | None) -> Lowered:
    """An opaque product of matrices, quantized or with a transpose, has its axes before the matrices merged likewise.

    Scales and zero points are of one element, so that they belong to no axis.
    """
    factors = {place: x for place in opaque_factors(node) if (x := operands[place]) is not None and x.rank > 1}
    if not factors or len(factors) < len(opaque_factors(node)):
        return KEEP
    is_large = any(_is_large(size) for x in factors.values() for size in x.shape[:-2])
    if not is_large and max(x.rank for x in factors.values()) <= _AXES:
        return KEEP
    shape = node.result.shape
    axes = _divided(product(shape[:-2]))
    miss = depends_on_batch(node)
    if miss is not None or axes is None:
        return miss or Miss("{0} matrices have no two factors", (product(shape[:-2]),))
    merged = list(operands)
    for place, x in factors.items():
        merged[place] = _matrices(e, x, shape[:-2], axes)
    made = shape[-2:] if all(map(_is_single, factors.values())) else (*axes, *shape[-2:])
    return _retyped(e, node, made, *merged).reshape(shape)


@lowers(onnx=("Trilu",), repairs=("trilu-rank",))
def merge_trilu_batch(e: Sketch, node: Node, x: Term, *more: Term | None) -> Lowered:
    """A Trilu of more than 4 axes becomes one of 3 axes between reshapes."""
    found = e.target.fault("trilu-rank", "Trilu")
    if found is None or found.ranks_over is None or x.rank <= found.ranks_over:
        return KEEP
    shape = (product(x.shape[:-2]), *x.shape[-2:])
    return _retyped(e, node, shape, x.reshape(shape), *more).reshape(x.shape)


@lowers(onnx=("LRN",), repairs=("lrn-rank", "lrn-rank-low"))
def merge_lrn_axes(e: Sketch, node: Node, x: Term) -> Lowered:
    """An LRN of other than 4 axes becomes one of 4, its spatial axes merged, between reshapes."""
    if e.target.fault("lrn-rank", "LRN") is None or x.rank in (0, 1, 4):
        return KEEP
    shape = (*x.shape[:2], product(x.shape[2:]), 1)
    return _retyped(e, node, shape, x.reshape(shape)).reshape(x.shape)
