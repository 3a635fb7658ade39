"""Layout operations around other operations: those that cancel, meet, or are put together again."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from dmlc.ir import Graph, Node, Shape, StoredTensor, Value, product
from dmlc.onnx_schema.domains import MICROSOFT
from dmlc.ops.binary import BINARY
from dmlc.ops.choose import CAST, CLIP, WHERE
from dmlc.ops.constant import constant_of
from dmlc.ops.elementwise import UNARY
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
from dmlc.passes.fold_constants.layouts import order_of_blocks
from dmlc.passes.layouts import is_unit
from dmlc.passes.lowering import KEEP, Lowered, simplifies, taken_elsewhere
from dmlc.passes.patterns import depends_on_batch, made_by, opaque_factors
from dmlc.passes.rewrite import Match

# --- Elementwise operations between layout operations that cancel are computed in the other layout

ELEMENTWISE = frozenset((*UNARY, *BINARY, CAST, CLIP, WHERE))
#: Operators of ONNX that work on each element of their only tensor (onnx, docs/Operators.md).
_OPAQUE_ELEMENTWISE = frozenset(
    ("Gelu", "Elu", "Selu", "Celu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Softplus", "Softsign", "Swish")
)
#: Operators of ``com.microsoft`` that are elementwise as long as they add no bias.
_MICROSOFT_ELEMENTWISE = frozenset(("FastGelu", "Gelu", "QuickGelu"))
#: Elementwise nodes between the two layout operations.
MOST_NODES = 24
#: A constant of more elements is not transposed: the model would hold it twice where others need it as it was.
_MOST_ELEMENTS = 1 << 20


class _GatheredRegion(Struct, frozen=True):
    """``inner`` are the elementwise nodes, ``leaves`` the layout operations that feed them; ``others`` are operands
    that must be transposed instead."""

    inner: dict[Node, None] = field(default_factory=dict)
    leaves: dict[Node, None] = field(default_factory=dict)
    others: dict[Value, None] = field(default_factory=dict)


def _described(rule: Any, match: Match) -> str:
    count = sum(is_elementwise(node) for node in match.consumed)
    return f"{match.root.op.name} after {count} elementwise operations, and its inverse"


@simplifies(*RESHAPES, TRANSPOSE, fed_by=(*ELEMENTWISE, OPAQUE), describe=_described)
def layout_around_elementwise(e: Sketch, node: Node, y: Term) -> Lowered:
    """Elementwise operations between a reshape or transpose and its inverse are computed in the first shape.

    ``exact``. All their operands come from such an inverse, or broadcast alike in both. Constants are transposed,
    and so are other operands where there are fewer transposes then: a residual behind two of them.
    """
    first = y.value.producer
    if first is None or not is_elementwise(first) or not first.result.is_used_once:
        return KEEP
    region = _gathered(node, first, adds=False) or (_gathered(node, first, adds=True) if _turns(node) else None)
    if region is None or not region.leaves:
        return KEEP
    pending = [*reversed(region.inner)]
    if any(user not in region.inner for n in pending if n is not first for user in n.result.users):
        return KEEP
    added = [value for value in region.others if constant_of(value) is None]
    if added and len(added) > sum(leaf.result.is_used_once for leaf in region.leaves):
        return KEEP
    e.taken += [*pending, *region.leaves]
    made: dict[Value, Value] = {leaf.result: leaf.operand("x") for leaf in region.leaves}
    made |= {value: _turned(node, value, e) for value in region.others}
    while pending:
        waiting = []
        for each in pending:
            if any(v is not None and v.producer in pending and v not in made for v in each.operands):
                waiting.append(each)
                continue
            record = each.attributes
            if isinstance(record, OpaqueAttributes):
                record = replace(record, types=tuple([t.with_shape(node.result.shape) for t in record.types]))
            operands = [None if v is None else made.get(v, v) for v in each.operands]
            made[each.result] = e.add(each.op, operands, record)
        pending = waiting
    return made[y.value]


def is_elementwise(node: Node) -> bool:
    if node.op is OPAQUE:
        a = node.attributes_as(OpaqueAttributes)
        if a.domain == MICROSOFT:
            return a.op_type in _MICROSOFT_ELEMENTWISE and not any(node.operands[1:])
        return not a.domain and a.op_type in _OPAQUE_ELEMENTWISE
    return node.op in ELEMENTWISE


def _gathered(root: Node, first: Node, *, adds: bool) -> _GatheredRegion | None:
    """The elementwise nodes above the root; None where an operand is something else.

    With ``adds`` other operands are gathered too, and what others need as well as the region is one of these.
    """
    have, region = root.operand("x").shape, _GatheredRegion()
    stack = [first]
    while stack:
        node = stack.pop()
        if node in region.inner:
            continue
        region.inner[node] = None
        if len(region.inner) > MOST_NODES:
            return None
        for value in node.operands:
            maker = None if value is None else value.producer
            if value is None or (value.shape != have and _broadcasts_alike(root, value.shape)):
                continue
            if maker is not None and value.shape == have and _undoes(root, maker):
                region.leaves[maker] = None
            elif _is_inner(value, have, adds=adds) and maker is not None:
                stack.append(maker)
            elif _turns(root) and (_is_turned_constant(value, have) or (adds and value.shape == have)):
                region.others[value] = None
            else:
                return None
    return region if all(node.result.shape == have for node in region.inner) else None


def _is_inner(value: Value, have: Shape, *, adds: bool) -> bool:
    """Return whether an elementwise node of that shape makes the value, for the region alone if others may be added."""
    maker = value.producer
    if maker is None or value.shape != have or not is_elementwise(maker) or len(maker.results) > 1:
        return False
    return value.is_used_once or not adds


def _turns(root: Node) -> bool:
    return root.op is TRANSPOSE


def _is_turned_constant(value: Value, have: Shape) -> bool:
    tensor = constant_of(value)
    if tensor is None or tensor.size > _MOST_ELEMENTS or tensor.type.rank > len(have):
        return False
    return not (isinstance(tensor, StoredTensor) and tensor.is_apart)


def _turned(root: Node, value: Value, e: Sketch) -> Value:
    """An operand in the order of the root's result."""
    record, tensor = root.attributes_as(TransposeAttributes), constant_of(value)
    if tensor is None:
        return e.add(TRANSPOSE, [value], record)
    ones = [1] * (len(record.perm) - tensor.type.rank)
    return e.constant(np.transpose(tensor.array.reshape([*ones, *tensor.array.shape]), record.perm))


def _undoes(root: Node, maker: Node) -> bool:
    """True if the root gives what the maker was given."""
    if root.op is TRANSPOSE:
        if maker.op is not TRANSPOSE:
            return False
        first = maker.attributes_as(TransposeAttributes).perm
        second = root.attributes_as(TransposeAttributes).perm
        return all(first[axis] == i for i, axis in enumerate(second))
    return maker.op in RESHAPES and maker.operand("x").shape == root.result.shape


def _broadcasts_alike(root: Node, shape: Shape) -> bool:
    """True if an operand of that shape broadcasts to the root's operand as it does to its result."""
    have, want = root.operand("x").shape, root.result.shape
    if len(shape) > min(len(have), len(want)):
        return False
    if all(size == 1 for size in shape):
        return True
    return root.op is not TRANSPOSE and have[len(have) - len(shape) :] == want[len(want) - len(shape) :]


# --- Axes that are merged, split or cut out, and put together again


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


# --- Transposes that go behind an operation: one is left of two


@simplifies(TRANSPOSE, fed_by=RESHAPES)
def transposes_around_reshape(e: Sketch, node: Node, y: Term) -> Lowered:
    """A reshape between two transposes that splits or merges axes, each by itself, comes before both.

    ``exact``. One transpose is left, or none. A map of rows that are pixels is the same map where both move channels.
    """
    between = e.made_by(y, *RESHAPES)
    first = None if between is None else e.made_by(between.operand("x"), TRANSPOSE)
    if between is None or first is None:
        return KEEP
    middle, last, out = first.result.shape, y.shape, node.result.shape
    if 0 in last or sum(not isinstance(size, int) for size in last) > 1:  # a reshape infers one size
        return KEEP
    x, old = e.of(first.operand("x")), first.attributes_as(TransposeAttributes).perm
    before = [axis for axis in old if not is_unit(e.graph, x.shape[axis])]
    back = sorted(range(len(before)), key=before.__getitem__)
    moved = [axis for axis, size in enumerate(last) if not is_unit(e.graph, size)]
    order = order_of_blocks([last[a] for a in moved], [d for d in middle if not is_unit(e.graph, d)], back)
    if order is None:
        return KEEP
    here = [moved[i] for i in order]  # the axes of the reshape's result, in the order of the operand
    final = [axis for axis in node.attributes_as(TransposeAttributes).perm if axis in moved]
    reason = taken_elsewhere(e)
    if final == here:
        return reason or x.reshape(out)
    ones = [axis for axis, size in enumerate(out) if is_unit(e.graph, size)]
    places = iter(final)
    perm = tuple([ones.index(a) if a in ones else len(ones) + here.index(next(places)) for a in range(len(out))])
    return reason or e.transpose(x.reshape((*[1] * len(ones), *[last[axis] for axis in here])), perm=perm)


@simplifies(TRANSPOSE, fed_by=(SLICE,))
def transposes_around_slice(e: Sketch, node: Node, y: Term) -> Lowered:
    """A slice between two transposes is cut before both, which become one.

    ``exact``.
    """
    cut = e.made_by(y, SLICE)
    first = None if cut is None else e.made_by(cut.operand("x"), TRANSPOSE)
    if cut is None or first is None:
        return KEEP
    if reason := taken_elsewhere(e):
        return reason
    perm, record = first.attributes_as(TransposeAttributes).perm, cut.attributes_as(SliceAttributes)
    made = e(SLICE, first.operand("x"), attributes=replace(record, axes=tuple([perm[row[0]] for row in record.rows()])))
    return e.transpose(made, perm=tuple([perm[axis] for axis in node.attributes_as(TransposeAttributes).perm]))


@simplifies(*BINARY, CONCAT, fed_by=(TRANSPOSE,))
def transposes_together(e: Sketch, node: Node, *operands: Term | None) -> Lowered:
    """add(transpose(a), transpose(b)) in one order becomes transpose(add(a, b)); so do the parts of a concat.

    ``exact``. Other operands are single numbers.
    """
    moved = [made_by(value, TRANSPOSE) for value in node.operands if not _is_number(node, value)]
    found = dict.fromkeys([each for each in moved if each is not None])
    orders = {each.attributes_as(TransposeAttributes).perm for each in found}
    if len(found) < 2 or None in moved or len(orders) != 1:
        return KEEP
    e.taken += found
    perm, record = orders.pop(), node.attributes
    if isinstance(record, ConcatAttributes):
        record = replace(record, axis=perm[record.axis])
    if reason := taken_elsewhere(e):
        return reason
    before = {each.result: each.operand("x") for each in found}
    made = e(node.op, *[None if v is None else before.get(v, v) for v in node.operands], attributes=record)
    return e.transpose(made, perm=perm)


def _is_number(node: Node, value: Value | None) -> bool:
    return value is None or (node.op is not CONCAT and not value.shape)


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
