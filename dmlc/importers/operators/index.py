"""Gathering and scattering."""

from __future__ import annotations

from dmlc.importers.registry import Found, Made, Reading, reads
from dmlc.inference.query import within
from dmlc.ir import FOREIGN
from dmlc.ops.constant import constant_of
from dmlc.ops.index import GATHER, GATHER_ELEMENTS, SCATTER_ELEMENTS, GatherAttributes, IndexAttributes
from dmlc.ops.move import UNSQUEEZE, NewAxesAttributes


@reads("Gather", "GatherElements", "ScatterElements", "Scatter")
def indexed(r: Reading) -> Found:
    """A scatter that adds or multiplies is carried, and so is a gather of an element that does not exist."""
    operands = [v for v in r.inputs if v is not None]
    axis = within(r.integer("axis", 0), r.x.type.rank)
    if axis is None or len(operands) != len(r.inputs) or r.word("reduction", "none") != "none":
        return None
    size = r.x.type.shape[axis]
    if r.op_type == "Gather" and isinstance(size, int) and not all(-size <= i < size for i in r.ints(1) or ()):
        return None
    if r.op_type == "Gather":
        return Made(GATHER, operands, GatherAttributes(axis=axis, batch_axes=0))
    op = GATHER_ELEMENTS if r.op_type == "GatherElements" else SCATTER_ELEMENTS
    return Made(op, operands, IndexAttributes(axis=axis))


@reads("GatherND")
def gather_nd(r: Reading) -> Found:
    """Indices of one coordinate, made by an Unsqueeze of their last axis, are those of a gather. Others are carried."""
    places, batch = r.input(1), r.integer("batch_dims", 0)
    node = None if places is None else places.producer
    if places is None or node is None or node.op is not UNSQUEEZE or r.x.type.dtype is FOREIGN:
        return None
    indices = node.operand("x")
    if node.attributes_as(NewAxesAttributes).axes != (indices.type.rank,) or not 0 <= batch < r.x.type.rank:
        return None
    if r.x.shape[:batch] != indices.shape[:batch]:
        return None
    size = r.x.shape[batch]
    known = constant_of(indices)
    if known is not None and not (
        isinstance(size, int) and bool(((known.array >= -size) & (known.array < size)).all())
    ):
        return None
    return Made(GATHER, [r.x, indices], GatherAttributes(axis=batch, batch_axes=batch))
