"""Layout operations that cancel, join, or pass by elementwise operations."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from operator import mul

import numpy as np

from dmlc.ir import Array, Dim, DimExpr, Graph, Node, OpError, Shape, Tensor, dim_names
from dmlc.ops.binary import BINARY
from dmlc.ops.choose import WHERE
from dmlc.ops.index import FULL, FullAttributes, full_value
from dmlc.ops.move import (
    CONCAT,
    EXPAND,
    PAD,
    RESHAPE,
    RESHAPES,
    SLICE,
    SPLIT,
    SQUEEZE,
    TILE,
    TRANSPOSE,
    UNSQUEEZE,
    AxesAttributes,
    PadAttributes,
    ReshapeAttributes,
    SliceAttributes,
    SplitAttributes,
    TransposeAttributes,
)
from dmlc.ops.opaque import OPAQUE, attribute_of, is_opaque
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.layouts import is_unit, ones_between, plainest
from dmlc.passes.lowering import KEEP, Lowered, NodeRule, simplifies
from dmlc.passes.patterns import made_by
from dmlc.passes.rewrite import Miss, used_elsewhere


def _stands_still(rule: NodeRule, node: Node, graph: Graph) -> bool:
    if node.op is TRANSPOSE:
        perm = node.attributes_as(TransposeAttributes).perm
        return perm == tuple(range(len(perm)))
    if len(node.results) != 1 or node.result.type != node.operand(0).type:
        return False
    if node.op is SLICE:
        return all(step == 1 for _, _, _, step in node.attributes_as(SliceAttributes).rows())
    if node.op is PAD:
        return not any(node.attributes_as(PadAttributes).pads)
    return True


@simplifies(
    *(TRANSPOSE, RESHAPE, SQUEEZE, UNSQUEEZE, EXPAND, CONCAT, SPLIT, SLICE, PAD, TILE),
    offered=_stands_still,
    describe=lambda rule, match: f"{match.root.op.name} that moves nothing",
)
def move_nothing(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """A transpose, reshape, slice, pad, expand, concat, split or tile that has no effect becomes its operand."""
    return operands[0]


@simplifies(SPLIT)
def split_off_nothing(e: Sketch, node: Node, x: Term) -> Lowered:
    """A split with one part that is the whole operand, and empty other parts, is removed."""
    axis = node.attributes_as(SplitAttributes).axis
    parts = [value for value in node.results if value.shape[axis] != 0]
    empty = [value for value in node.results if value.shape[axis] == 0 and value.uses]
    if len(parts) != 1 or parts[0].type != x.type or not all(isinstance(d, int) for v in empty for d in v.shape):
        return KEEP
    none = {v: e.number(np.zeros([int(str(size)) for size in v.shape]), x.dtype) for v in empty}
    return [none.get(v, x) for v in node.results]


@simplifies(*RESHAPES, fed_by=RESHAPES)
def reshape_chain(e: Sketch, node: Node, y: Term) -> Lowered:
    """Two reshapes, squeezes or unsqueezes in a row become one, or none."""
    inner, shape = e.made_by(y, *RESHAPES), node.result.shape
    if inner is None:
        return KEEP
    x = e.of(inner.operand("x"))
    if x.type == node.result.type:
        return x
    if node.op is inner.op is SQUEEZE:
        first = inner.attributes_as(AxesAttributes).axes
        left = [a for a in range(x.rank) if a not in first]
        return e.squeeze(x, axes=tuple(sorted({*first, *(left[a] for a in node.attributes_as(AxesAttributes).axes)})))
    if RESHAPE in (node.op, inner.op):
        return x.reshape(plainest(e.graph, x.shape, shape))
    # Squeezes and unsqueezes of symbolic shapes are plainer than a reshape, so they become one squeeze or unsqueeze.
    ones = ones_between(e.graph, x.shape, shape)
    return KEEP if ones is None or all(ones) else x.with_ones(shape)


@simplifies(TRANSPOSE, fed_by=(TRANSPOSE,))
def transpose_chain(e: Sketch, node: Node, y: Term) -> Lowered:
    """Two transposes in a row become one, or none."""
    inner = e.made_by(y, TRANSPOSE)
    if inner is None:
        return KEEP
    first = inner.attributes_as(TransposeAttributes).perm
    return e.of(inner.operand("x")).transposed([first[a] for a in node.attributes_as(TransposeAttributes).perm])


@simplifies(TRANSPOSE)
def transpose_of_ones(e: Sketch, node: Node, x: Term) -> Lowered:
    """A transpose next to a reshape becomes a reshape where it only moves axes of size 1."""
    kept = [axis for axis in node.attributes_as(TransposeAttributes).perm if x.shape[axis] != 1]
    if kept != sorted(kept):
        return KEEP
    maker, users = made_by(x.value, *RESHAPES), node.result.users
    after = bool(users) and all(user.op in RESHAPES for user in users)
    if maker is None and not after:
        return KEEP
    have = x.shape if maker is None else maker.operand("x").shape
    want = users[0].result.shape if after and len(users) == 1 else node.result.shape
    computed = [d for i, d in enumerate(want) if not isinstance(d, int) and have[i : i + 1] != (d,)]
    if len(computed) > 1:
        return KEEP  # a reshape infers one size
    return e(RESHAPE, x, attributes=ReshapeAttributes(shape=node.result.shape))


@simplifies(*RESHAPES, fed_by=(TRANSPOSE,))
def transpose_between_reshapes(e: Sketch, node: Node, y: Term) -> Lowered:
    """reshape(transpose(reshape(x))) becomes transpose(x) where the second reshape undoes the first.

    ``exact``. It moves the axes of each merge or split together. PyTorch's attention transposes its keys so.
    """
    moved = made_by(y.value, TRANSPOSE)
    before = None if moved is None else e.made_by(moved.operand("x"), *RESHAPES)
    if moved is None or before is None or before.operand("x").type.rank != node.result.type.rank:
        return KEEP
    e.taken.append(moved)
    perm, limit = _order_before(e.graph, before, moved, node.result.shape), e.target.target.max_rank
    if perm is None:
        return KEEP
    if limit is not None and len(perm) > limit:
        return Miss("it would move {0} axes, more than {1}", (len(perm), limit))
    return used_elsewhere(moved.result) or e.transpose(before.operand("x"), perm=perm)


def _order_before(graph: Graph, before: Node, moved: Node, target: Shape) -> tuple[int, ...] | None:
    """The order of the axes of the reshape's operand that gives ``target`` and the same elements, if there is one."""
    have, middle = before.operand("x").shape, moved.operand("x").shape
    axes = [a for a, size in enumerate(have) if not is_unit(graph, size)]
    between = [a for a, size in enumerate(middle) if not is_unit(graph, size)]
    perm = [between.index(a) for a in moved.attributes_as(TransposeAttributes).perm if a in between]
    order = order_of_blocks([have[a] for a in axes], [middle[a] for a in between], perm)
    if order is None or [have[axes[i]] for i in order] != [d for d in target if not is_unit(graph, d)]:
        return None
    moving = iter([axes[i] for i in order])
    ones = iter([a for a in range(len(have)) if a not in axes])
    return tuple([next(ones if is_unit(graph, size) else moving) for size in target])


def order_of_blocks(have: Sequence[Dim], middle: Sequence[Dim], perm: Sequence[int]) -> list[int] | None:
    """The axes of ``have`` as ``perm`` moves those of ``middle``, which merge and split them; None if it parts them."""
    places = {total: place for place, total in enumerate(accumulate(have, mul, initial=1))}
    blocks: dict[int, tuple[range, range]] = {}
    start = first = 0
    for axis, total in enumerate(accumulate(middle, mul)):
        end = places.get(total)
        if end is not None:
            blocks[first] = (range(start, end), range(first, axis + 1))
            start, first = end, axis + 1
    order: list[int] = []
    place = 0
    while place < len(perm):
        found = blocks.get(perm[place])
        if found is None or list(perm[place : place + len(found[1])]) != list(found[1]):
            return None
        order += found[0]
        place += len(found[1])
    return order


@simplifies(SLICE, fed_by=(SLICE,))
def slice_chain(e: Sketch, node: Node, y: Term) -> Lowered:
    """A slice of a slice becomes one slice, where no other operation needs the first."""
    inner = e.made_by(y, SLICE)
    if inner is None or any(user.op is not SLICE for user in inner.result.users):
        return KEEP
    rows = _joined_rows(node, inner)
    if rows is None:
        return KEEP
    axes, starts, ends, steps = zip(*rows, strict=True)
    return e.slice(inner.operand("x"), starts=starts, ends=ends, axes=axes, steps=steps)


_Row = tuple[int, Dim, Dim, int]


def _joined_rows(node: Node, inner: Node) -> list[_Row] | None:
    """The rows of both slices at once; None where the rows of one axis cannot be joined."""
    rows = {row[0]: row for row in inner.attributes_as(SliceAttributes).rows()}
    for row in node.attributes_as(SliceAttributes).rows():
        axis = row[0]
        if axis not in rows:
            rows[axis] = row
            continue
        size = inner.operand("x").shape[axis]
        found = range(size) if isinstance(size, int) else None
        for _, start, end, step in (rows[axis], row):
            if found is None or not isinstance(start, int) or not isinstance(end, int) or step < 0:
                return None
            found = found[start:end:step]
        if not found:
            return None
        rows[axis] = (axis, found.start, found.stop, found.step)
    return list(rows.values())


#: Operands of a concat times the places that take them over, at most.
_MOST_PARTS = 256


@simplifies(CONCAT, fed_by=(CONCAT,))
def concat_chain(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """A concat of a concat along the same axis becomes one concat, where only such concats need the first."""
    makers = [made_by(x.value, CONCAT) for x in operands]
    found = [maker for maker in makers if maker is not None and maker.attributes == node.attributes]
    e.taken += [maker for maker in dict.fromkeys(found) if _is_taken_over(maker)]
    if not e.taken:
        return used_elsewhere(found[0].result) if found else KEEP
    inner = {taken.result: taken.operands for taken in e.taken}
    parts = [part for x in operands for part in inner.get(x.value, (x.value,))]
    return e(CONCAT, *parts, attributes=node.attributes)


def _is_taken_over(node: Node) -> bool:
    """True if each user of the concat is one along the same axis."""
    if len(node.operands) * len(node.result.uses) > _MOST_PARTS:
        return False
    return all(user.op is CONCAT and user.attributes == node.attributes for user in node.result.users)


@simplifies(*BINARY, WHERE, fed_by=(EXPAND,))
def drop_expand(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """The expand of an operand is removed where the operation broadcasts the operand anyway.

    ``exact``. Only where the result keeps its shape without it; the expand stays for others that use it.
    """
    for index, x in enumerate(operands):
        expand = made_by(x.value, EXPAND)
        if expand is None:
            continue
        values = [expand.operand("x") if i == index else v.value for i, v in enumerate(operands)]
        try:
            types, _ = e.graph.infer(node.op, values, node.attributes)
        except OpError:
            continue
        if types[0] == node.result.type:
            e.taken.append(expand)
            return e(node.op, *values, attributes=node.attributes)
    return KEEP


@simplifies(*BINARY, WHERE, fed_by=(FULL, OPAQUE))
def drop_fill(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """A tensor filled with one number becomes that number where the other operand has the result's shape.

    ``exact``. The operation broadcasts it; zeros or ones of a computed shape are such tensors. Sizes that depend on
    data stay: two of them may become one only later, and the output would not be a fixed point.
    """
    shape = node.result.shape
    if any(dim_names(size) & e.graph.dims.provided for size in shape):
        return KEEP
    for x in operands:
        producer = x.value.producer
        number = None if producer is None else _filled(producer)
        if producer is None or number is None or not any(v.value is not x.value and v.shape == shape for v in operands):
            continue
        e.taken.append(producer)
        values = [e.number(number, x.dtype) if v is x else v for v in operands]
        return e(node.op, *values, attributes=node.attributes)
    return KEEP


def _filled(node: Node) -> Array | None:
    """The number that a node fills a tensor with; None for other nodes."""
    if node.op is FULL:
        a = node.attributes_as(FullAttributes)
        return None if isinstance(a.value, DimExpr) else full_value(a)
    if not is_opaque(node, "ConstantOfShape"):
        return None
    value = attribute_of(node, "value")
    if value is None:
        return np.zeros((), np.float32)
    filled: Array | None = value.array.reshape(-1)[:1].reshape(()) if isinstance(value, Tensor) else None
    return filled


#: The moves alone, for passes whose new reshapes and transposes may meet others of the program.
MOVE_RULES: tuple[type[NodeRule], ...] = (
    move_nothing,
    split_off_nothing,
    reshape_chain,
    transpose_chain,
    transpose_of_ones,
    transpose_between_reshapes,
)
