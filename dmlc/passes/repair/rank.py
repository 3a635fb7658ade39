"""Nodes between reshapes that have more axes than DirectML takes: neighbouring axes become one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeAlias

from msgspec.structs import replace

from dmlc.ir import FOREIGN, Dim, Graph, Node, Value, product
from dmlc.ops.binary import BINARY
from dmlc.ops.choose import CAST, CLIP, WHERE
from dmlc.ops.constant import constant_of
from dmlc.ops.elementwise import UNARY
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import CONCAT, RESHAPES, SLICE, SPLIT, TRANSPOSE, SliceAttributes, TransposeAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes
from dmlc.ops.scan import CUMSUM
from dmlc.passes.expressions import Formulas, Sketch, Term
from dmlc.passes.layouts import is_unit
from dmlc.passes.lowering import KEEP, Lowered, lowers
from dmlc.passes.patterns import depends_on_batch, made_by, opaque_factors
from dmlc.passes.rewrite import Miss
from dmlc.targets.capabilities import Capabilities
from dmlc.targets.directml import LARGEST_BATCH

_Runs: TypeAlias = "Sequence[Sequence[int]]"


def _limit(target: Capabilities) -> int | None:
    """The most axes that the provider takes."""
    fault = target.fault("rank", "Reshape")
    return None if fault is None else fault.ranks_over


def _is_over(rule: Any, node: Node, graph: Graph) -> bool:
    limit = _limit(rule.capabilities)
    return limit is not None and max([v.type.rank for v in node.results], default=0) > limit


def _why_not_merged(e: Sketch, node: Node, runs: _Runs) -> Miss | None:
    """The reason against neighbouring axes as one: operands come from reshapes, which then make the merged axes."""
    limit = _limit(e.target)
    assert limit is not None
    if len(runs) > limit:
        return Miss("merging neighbouring axes leaves {0} axes, the limit is {1}", (len(runs), limit))
    for value in node.operands:
        if value is None or value.type.rank <= limit or constant_of(value) is not None:
            continue
        reshaped = made_by(value, *RESHAPES)
        if reshaped is None or reshaped.operand("x").type.rank > limit:
            rank = value.type.rank if reshaped is None else reshaped.operand("x").type.rank
            return Miss("{0} has {1} axes where it comes from", (value.type, rank), value)
    return None


#: ONNX operators that the language does not have, whose operands broadcast and whose result has their shape. In other
#: domains operators of these names do the same: com.microsoft has a Gelu, which an earlier rule makes of ONNX's.
_ELEMENTWISE = frozenset(
    (
        *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Celu", "Cosh", "Elu", "Gelu", "HardSigmoid", "HardSwish"),
        *("LeakyRelu", "Max", "Mean", "Min", "Mish", "PRelu", "Selu", "Shrink", "Sinh", "Softplus", "Softsign", "Sum"),
        *("Tan", "ThresholdedRelu", "BitShift"),
    )
)


@lowers(*BINARY, *UNARY, CAST, CLIP, WHERE, OPAQUE, repairs=("rank",), offered=_is_over)
def merge_elementwise_axes(e: Sketch, node: Node, *operands: Term | None) -> Lowered:
    """An elementwise node of more than 8 axes, between reshapes, is computed over merged neighbours."""
    if not _is_elementwise(node):
        return KEEP
    runs, shape, attributes = _alike(node, e.graph), node.result.shape, node.attributes
    if reason := _why_not_merged(e, node, runs):
        return reason
    merged = [None if v is None else _merged(e, v, len(shape), runs) for v in node.operands]
    if isinstance(attributes, OpaqueAttributes):
        sizes = tuple([product([shape[axis] for axis in run]) for run in runs])
        attributes = replace(attributes, types=(node.result.type.with_shape(sizes),))
    return e(node.op, *merged, attributes=attributes).reshape(shape)


def _is_elementwise(node: Node) -> bool:
    if node.op is not OPAQUE:
        return True
    typed = all(v is not None and v.type.dtype is not FOREIGN for v in (*node.operands, *node.results))
    return node.attributes_as(OpaqueAttributes).op_type in _ELEMENTWISE and typed


def _alike(node: Node, graph: Graph) -> _Runs:
    """Neighbours along which each operand has all elements, or broadcasts over both."""
    shape = node.result.shape
    operands = [_aligned(v.shape, len(shape)) for v in node.operands if v is not None]
    runs: list[list[int]] = []
    fates: list[tuple[int, ...] | None] = []
    for axis, size in enumerate(shape):
        fate = None if is_unit(graph, size) else tuple([_fate(own[axis], size, axis) for own in operands])
        if runs and (fate is None or fates[-1] is None or fates[-1] == fate):
            runs[-1].append(axis)
            fates[-1] = fate if fates[-1] is None else fates[-1]
        else:
            runs.append([axis])
            fates.append(fate)
    return runs


@lowers(CONCAT, SPLIT, SLICE, CUMSUM, repairs=("rank",), offered=_is_over)
def merge_axes_beside(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """A concat, split, slice or cumulative sum of more than 8 axes, between reshapes: axes next to its own merge."""
    runs, a = _beside(node, e.graph), node.attributes
    if reason := _why_not_merged(e, node, runs):
        return reason
    place = {axis: index for index, run in enumerate(runs) for axis in run}
    merged = [_merged(e, x.value, operands[0].rank, runs) for x in operands]
    own: dict[str, Any] = (
        {"axes": tuple([place[axis] for axis in a.axes or ()])}
        if isinstance(a, SliceAttributes)
        else {"axis": place[next(iter(_own_axes(node)))]}
    )
    made = e.results(node.op, *merged, attributes=replace(a, **own))
    return [new.reshape(old.shape) for new, old in zip(made, node.results, strict=True)]


def _beside(node: Node, graph: Graph) -> _Runs:
    """The node's own axes stay apart; all others merge with their neighbours, axes of size 1 with any."""
    shape, own = node.operand(0).shape, _own_axes(node)
    runs: list[list[int]] = []
    marked: list[bool] = []
    for axis, size in enumerate(shape):
        is_own, is_one = axis in own, axis not in own and is_unit(graph, size)
        if runs and (is_one or not (is_own or marked[-1])):
            runs[-1].append(axis)
        elif runs and all(a not in own and is_unit(graph, shape[a]) for a in runs[-1]):
            runs[-1].append(axis)
            marked[-1] = is_own
        else:
            runs.append([axis])
            marked.append(is_own)
    return runs


def _own_axes(node: Node) -> frozenset[int]:
    a: Any = node.attributes
    return frozenset(a.axes or ()) if isinstance(a, SliceAttributes) else frozenset((a.axis,))


def _fate(own: Dim, size: Dim, axis: int) -> int:
    """0 where an operand broadcasts, -1 where it has all elements; a size that is only proved equal stands alone."""
    return -1 if own == size else 0 if own == 1 else axis + 1


def _aligned(shape: Sequence[Dim], rank: int) -> tuple[Dim, ...]:
    return (*[1] * (rank - len(shape)), *shape)


def _merged(make: Formulas, value: Value, rank: int, runs: Sequence[Sequence[int]]) -> Value:
    shape = _aligned(value.shape, rank)
    sizes = [product([shape[axis] for axis in run]) for run in runs]
    data = constant_of(value)
    if data is not None:
        return make.constant(data.array.reshape([int(str(size)) for size in sizes]), value.type.dtype)
    return make.reshape(value, sizes)


@lowers(TRANSPOSE, repairs=("rank",), offered=_is_over)
def merge_transposed_axes(e: Sketch, node: Node, x: Term) -> Lowered:
    """A transpose of more than 8 axes, between reshapes, moves neighbours that stay together as one."""
    perm, shape, runs = node.attributes_as(TransposeAttributes).perm, node.result.shape, _moved_together(node, e.graph)
    if reason := _why_not_merged(e, node, runs):
        return reason
    heads = [_head(e.graph, node, run) for run in runs]
    sizes = [product([shape[axis] for axis in run]) for run in runs]
    order = sorted(range(len(heads)), key=lambda i: perm[heads[i]])
    merged = x.reshape([sizes[i] for i in order])
    return e.transpose(merged, perm=tuple([order.index(i) for i in range(len(heads))])).reshape(shape)


def _moved_together(node: Node, graph: Graph) -> _Runs:
    """Axes of the result that are neighbours in the operand too; one of size 1 goes with what is before it."""
    perm, shape = node.attributes_as(TransposeAttributes).perm, node.result.shape
    large = [a for a in sorted(perm) if not is_unit(graph, node.operand("x").shape[a])]
    follows = dict(pairwise(large))
    runs: list[list[int]] = []
    last: int | None = None
    for axis, source in enumerate(perm):
        if runs and (is_unit(graph, shape[axis]) or last is None or follows.get(last) == source):
            runs[-1].append(axis)
        else:
            runs.append([axis])
        last = last if is_unit(graph, shape[axis]) else source
    return runs


def _head(graph: Graph, node: Node, run: Sequence[int]) -> int:
    """The axis that says where a run stands in the operand: the first one that moves anything."""
    return next((axis for axis in run if not is_unit(graph, node.result.shape[axis])), run[0])


# --- Nodes over matrices whose DirectML operator takes up to 4 axes: the axes before the matrix become one


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
