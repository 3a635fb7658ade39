"""Transposes that go behind an operation: one is left of two."""

from __future__ import annotations

from msgspec.structs import replace

from dmlc.ir import Node, Value
from dmlc.ops.binary import BINARY
from dmlc.ops.move import (
    CONCAT,
    RESHAPES,
    SLICE,
    TRANSPOSE,
    ConcatAttributes,
    SliceAttributes,
    TransposeAttributes,
)
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.fold_constants.layouts import order_of_blocks
from dmlc.passes.layouts import is_unit
from dmlc.passes.lowering import KEEP, Lowered, NodeRule, simplifies, taken_elsewhere
from dmlc.passes.patterns import made_by


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


RULES: tuple[type[NodeRule], ...] = (transposes_around_reshape, transposes_around_slice, transposes_together)
