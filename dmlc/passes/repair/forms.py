"""Repairs of forms of layout operators that the provider refuses: they are written in another form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from dmlc.ir import FOREIGN, Graph, Node
from dmlc.ir.dtype import i64
from dmlc.ops.move import RESHAPE, SLICE
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import KEEP, Lowered, lowers

#: Operands of Slice that are axes and steps.
_AXES, _STEPS = 3, 4


def _is_from(rule: Any, node: Node, graph: Graph) -> bool:
    """Return whether a model has the node as ONNX's operator of that name."""
    if node.origin is None:
        return False
    proto = node.origin.proto
    return proto.domain in ("", "ai.onnx") and proto.op_type in rule.onnx


@lowers(RESHAPE, onnx=("Reshape",), offered=_is_from, repairs=("reshape-allowzero",))
def plain_reshape(e: Sketch, node: Node, *operands: Term | None) -> Lowered:
    """A Reshape whose shape has a -1 loses allowzero, which says nothing there: ONNX has no 0 next to a -1."""
    if e.target.fault("reshape-allowzero", "Reshape") is None:
        return KEEP
    is_kept = any(attribute.name == "allowzero" and attribute.i for attribute in node.origin.proto.attribute)
    if not is_kept or -1 not in _shape_of(node):
        return KEEP
    if node.op is RESHAPE:
        return e.again(node)
    a = node.attributes_as(OpaqueAttributes)
    kept = tuple([pair for pair in a.attributes if pair[0] != "allowzero"])
    return e(OPAQUE, *operands, attributes=replace(a, attributes=kept))


def _shape_of(node: Node) -> Sequence[int]:
    """The numbers of the shape operand of a Reshape as the model has it; none where they are computed."""
    from dmlc.onnx_schema.origin import known_of  # loads onnx, which a model has loaded already

    names = [f"{number}" for number in range(len(node.origin.inputs))]
    array = known_of(node, names).constant(names[1])
    return () if array is None else array.ravel().tolist()


@lowers(SLICE, onnx=("Slice",), offered=_is_from, repairs=("slice-steps",))
def slice_with_axes(e: Sketch, node: Node, *operands: Term | None) -> Lowered:
    """A Slice with steps and without axes gets its axes: the first ones, as many as it has starts."""
    names = [*node.origin.proto.input, *[""] * (_STEPS + 1)]
    if e.target.fault("slice-steps", "Slice") is None or names[_AXES] or not names[_STEPS]:
        return KEEP
    if node.op is SLICE:
        return e.again(node)
    count = _count(node)
    if count is None:
        return KEEP
    axes = e.number(list(range(count)), i64)
    return e(OPAQUE, *operands[:_AXES], axes, *operands[_STEPS:], attributes=node.attributes)


def _count(node: Node) -> int | None:
    """The number of starts of an opaque Slice."""
    sizes = [v.shape[0] for v in node.operands[1:3] if v is not None and v.type.dtype is not FOREIGN and v.shape]
    return next((size for size in sizes if isinstance(size, int)), None)


@lowers(onnx=("GatherND",), repairs=("gather-nd-number",))
def gather_one_number(e: Sketch, node: Node, x: Term, indices: Term) -> Lowered:
    """A GatherND whose result is one number takes its indices as a row, and its result has an axis until a reshape."""
    result = node.result.type
    if e.target.fault("gather-nd-number", "GatherND") is None or FOREIGN in (indices.dtype, result.dtype):
        return KEEP
    if result.rank:
        return KEEP  # otherwise the indices have one axis
    record = replace(node.attributes_as(OpaqueAttributes), types=(result.with_shape((1,)),))
    return e(OPAQUE, x, indices.reshape((1, *indices.shape)), attributes=record).reshape(())
