"""Axes that are merged, split or cut out, and put together again."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from dmlc.ir import Graph, Node, Shape, Value, product
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import (
    CONCAT,
    RESHAPE,
    RESHAPES,
    SLICE,
    TRANSPOSE,
    ConcatAttributes,
    ReshapeAttributes,
    SliceAttributes,
    TransposeAttributes,
)
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes
from dmlc.passes.expressions import Sketch, Term, plain
from dmlc.passes.layouts import is_unit
from dmlc.passes.lowering import KEEP, Lowered, simplifies, taken_elsewhere
from dmlc.passes.patterns import depends_on_batch, made_by, opaque_factors

#: Axes of a product with a merged batch. With one more, which is what it splits into, targets take it as it is.
_AXES = 3


class _Factor(Struct, frozen=True):
    """``x`` reshaped to ``shape``, which has the batch split, and perhaps transposed by ``perm``."""

    x: Value
    shape: Shape
    perm: tuple[int, ...]
    nodes: tuple[Node, ...]


@simplifies(*RESHAPES, fed_by=(MATMUL, OPAQUE))
def matmul_between_reshapes(e: Sketch, node: Node, y: Term) -> Lowered:
    """A product of matrices whose batch is merged before it and split after it is computed with the split batch.

    ``exact``. TensorFlow's einsum merges the batch and the heads of an attention so, and PyTorch's bmm does. Opaque
    products are quantized, or they transpose a factor.
    """
    inner, want = e.made_by(y, MATMUL, OPAQUE), node.result.shape
    places = () if inner is None else _places(inner)
    if inner is None or not places or y.shape[1:] != want[2:]:
        return KEEP
    batch, made = want[:2], list(inner.operands)
    factors = {place: factor for place in places if (factor := _factor(inner.operand(place), batch)) is not None}
    if len(factors) < len(places) or any(inner.operand(place).shape[0] != product(batch) for place in places):
        return KEEP
    if not all(_is_inferred(e.graph, factor.x.shape, factor.shape) for factor in factors.values()):
        return KEEP
    for place, factor in factors.items():
        e.taken += factor.nodes
        value = e.of(factor.x).reshape(factor.shape)
        made[place] = plain(e.transpose(value, perm=factor.perm) if factor.perm else value)
    record = inner.attributes
    if isinstance(record, OpaqueAttributes):
        record = replace(record, types=(inner.result.type.with_shape(want),))
    return taken_elsewhere(e) or e(inner.op, *made, attributes=record)


def _places(node: Node) -> tuple[int, ...]:
    """The numbers of the operands that are matrices; none if the node is not a product, or its batch is not free."""
    if node.op is MATMUL:
        return 0, 1
    places = opaque_factors(node)
    return () if not places or depends_on_batch(node) is not None else places


def _factor(value: Value | None, batch: Shape) -> _Factor | None:
    """The factor, if it is a reshape to three axes, or the transpose of one.

    A transpose that moves the batch stays, with an axis of size 1 more, where that is what the batch splits into.
    """
    moved = made_by(value, TRANSPOSE)
    node = made_by(value if moved is None else moved.operand("x"), *RESHAPES)
    if node is None or len(node.result.shape) != _AXES:
        return None
    x, shape = node.operand("x"), node.result.shape
    if moved is None:
        return _Factor(x, (*batch, *shape[1:]), (), (node,))
    perm = moved.attributes_as(TransposeAttributes).perm
    if perm == (0, 2, 1):
        return _Factor(x, (*batch, *shape[1:]), (0, 1, 3, 2), (moved, node))
    if 1 not in batch:
        return None
    order = [axis + 1 for axis in perm]
    order.insert(batch.index(1), 0)
    return _Factor(x, (1, *shape), tuple(order), (moved, node))


def _is_inferred(graph: Graph, have: Shape, want: Shape) -> bool:
    """True if at most one size of a reshape must be inferred, and none beside a size that may be 0: others would be
    computed by nodes of their own."""
    open_places = [i for i, d in enumerate(want) if not isinstance(d, int) and have[i : i + 1] != (d,)]
    kept = [d for i, d in enumerate(want) if i not in open_places]
    return not open_places or (len(open_places) == 1 and all(graph.dims.interval(d)[0] > 0 for d in kept))


@simplifies(*RESHAPES, fed_by=(TRANSPOSE,))
def ones_around_transpose(e: Sketch, node: Node, y: Term) -> Lowered:
    """reshape(transpose(x)) becomes a transpose where the reshape only moves or drops axes of size 1.

    ``exact``. TensorFlow's einsum makes axes for the letters of the other operand, and tf2onnx for convolutions.
    """
    moved, want = made_by(y.value, TRANSPOSE), node.result.shape
    if moved is None or y.rank < len(want):
        return KEEP
    x, graph = moved.operand("x"), e.graph
    if [size for size in y.shape if not is_unit(graph, size)] != [size for size in want if not is_unit(graph, size)]:
        return KEEP
    moving = [axis for axis in moved.attributes_as(TransposeAttributes).perm if not is_unit(graph, x.shape[axis])]
    ones = [axis for axis, size in enumerate(x.shape) if is_unit(graph, size)][: len(want) - len(moving)]
    kept = sorted((*moving, *ones))
    places, others = iter(moving), iter(ones)
    perm = tuple([kept.index(next(others if is_unit(graph, size) else places)) for size in want])
    if len(kept) < y.rank:
        first, before = e.made_by(x, *RESHAPES), tuple([x.shape[axis] for axis in kept])
        if first is None or not _is_inferred(graph, first.operand("x").shape, before):
            return KEEP
        x = e.reshape(first.operand("x"), before)
    e.taken.append(moved)
    return taken_elsewhere(e) or e.transpose(x, perm=perm)


@simplifies(CONCAT, fed_by=RESHAPES)
def concat_of_places(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """A concat of all places along an axis, each without that axis, becomes a transpose and a reshape.

    ``exact``. tf2onnx joins the directions of a recurrent layer so.
    """
    moved = [made_by(x.value, *RESHAPES) for x in operands]
    cuts = [None if each is None else made_by(each.operand("x"), SLICE) for each in moved]
    found = [each for each in (*cuts, *moved) if each is not None]
    count = len(operands)
    if len(found) < 2 * count:
        return KEEP
    x = found[0].operand("x")
    axis = next((row[0] for row in found[0].attributes_as(SliceAttributes).rows()), 0)
    if x.shape[axis] != count or 0 in x.shape or any(cut.operand("x") is not x for cut in found[:count]):
        return KEEP
    wanted = [((axis, place, place + 1, 1),) for place in range(count)]
    if [tuple(_plain(cut, count)) for cut in found[:count]] != wanted:
        return KEEP
    rest = tuple([a for a in range(x.type.rank) if a != axis])
    joined = node.attributes_as(ConcatAttributes).axis
    if any(each.result.shape != tuple([x.shape[a] for a in rest]) for each in found[count:]):
        return KEEP
    perm = (*rest[:joined], axis, *rest[joined:])
    if not _is_inferred(e.graph, tuple([x.shape[a] for a in perm]), node.result.shape):
        return KEEP
    e.taken += found
    turned = e.transpose(x, perm=perm)
    return taken_elsewhere(e) or e(RESHAPE, turned, attributes=ReshapeAttributes(shape=node.result.shape))


def _plain(cut: Node, count: int) -> list[tuple[object, ...]]:
    """The rows of a slice, with the place of one that counts from the end, and the end where it is left open."""
    out: list[tuple[object, ...]] = []
    for axis, start, end, step in cut.attributes_as(SliceAttributes).rows():
        if not isinstance(start, int) or not isinstance(end, int):
            return []
        chosen = range(count)[start:end:step]
        out.append((axis, chosen.start, chosen.stop, chosen.step))
    return out
