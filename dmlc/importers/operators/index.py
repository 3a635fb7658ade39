"""Gathering and scattering."""

from __future__ import annotations

from dmlc.importers.registry import Found, Made, Reading, reads
from dmlc.ops.index import GATHER, GATHER_ELEMENTS, SCATTER_ELEMENTS, GatherAttributes, IndexAttributes


@reads("Gather", "GatherElements", "ScatterElements", "Scatter")
def indexed(r: Reading) -> Found:
    """A scatter that adds or multiplies is carried, and so is a gather of an element that does not exist."""
    operands = [v for v in r.inputs if v is not None]
    axis = r.axis(r.integer("axis", 0), r.x.type.rank)
    if axis is None or len(operands) != len(r.inputs) or r.word("reduction", "none") != "none":
        return None
    size = r.x.type.shape[axis]
    if r.op_type == "Gather" and isinstance(size, int) and not all(-size <= i < size for i in r.ints(1) or ()):
        return None
    if r.op_type == "Gather":
        return Made(GATHER, operands, GatherAttributes(axis=axis, batch_axes=0))
    op = GATHER_ELEMENTS if r.op_type == "GatherElements" else SCATTER_ELEMENTS
    return Made(op, operands, IndexAttributes(axis=axis))
