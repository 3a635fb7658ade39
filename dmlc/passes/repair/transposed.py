"""Repairs of ConvTranspose: paddings that the provider computes otherwise, in numbers."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dmlc.ir import FOREIGN, Node, TensorType
from dmlc.onnx_schema.transposed_conv import transposed_axes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import KEEP, Lowered, lowers
from dmlc.passes.rewrite import Miss

#: The axes of a tensor of one spatial axis.
_LINE = 3
_PADDING = ("auto_pad", "output_padding", "output_shape", "pads")
#: Attributes of one number for each spatial axis, and what an axis of one element has.
_PER_AXIS = {"dilations": 1, "kernel_shape": 1, "output_padding": 0, "strides": 1}


#: The faults of paddings.
_FAULTS = ("conv-transpose-line", "conv-transpose-size", "conv-transpose-start")


@lowers(onnx=("ConvTranspose",), repairs=_FAULTS)
def explicit_transposed_pads(e: Sketch, node: Node, x: Term, weights: Term, *rest: Term | None) -> Lowered:
    """A ConvTranspose gets its pads in numbers, from auto_pad and output_shape, less the output padding.

    What is left of the output padding of one spatial axis belongs to a second axis of one element.
    """
    if all(e.target.fault(name, "ConvTranspose") is None for name in _FAULTS) or FOREIGN in (x.dtype, weights.dtype):
        return KEEP
    axes = transposed_axes(lambda name: attribute_of(node, name), x.shape, weights.shape)
    is_line = x.rank == _LINE and attribute_of(node, "output_padding") is not None
    if axes is None or not (is_line or any(axis.has_wrong_size or axis.has_wrong_start for axis in axes)):
        return KEEP
    found = [axis.explicit() for axis in axes]
    if None in found:
        return Miss("its pads depend on a dynamic size, or are negative")
    pads = [(before, after - min(after, more), more - min(after, more)) for before, after, more in filter(None, found)]
    a = node.attributes_as(OpaqueAttributes)
    kept: dict[str, Any] = {name: value for name, value in a.attributes if name not in _PADDING}
    kept["pads"] = tuple([before for before, _, _ in pads] + [after for _, after, _ in pads])
    left = tuple([more for _, _, more in pads])
    if any(left):
        kept["output_padding"] = left
    if len(pads) == 1 and any(left):
        return _of_two_axes(e, node, kept, x, weights, *rest)
    return e(OPAQUE, x, weights, *rest, attributes=replace(a, attributes=tuple(sorted(kept.items()))))


def _of_two_axes(e: Sketch, node: Node, attributes: dict[str, Any], x: Term, weights: Term, *rest: Term | None) -> Term:
    """The node with a spatial axis of one element before its own."""
    wide = {name: (one, *attributes[name]) for name, one in _PER_AXIS.items() if name in attributes}
    before, after = attributes["pads"]
    given = {**attributes, **wide, "pads": (0, before, 0, after)}
    types = (_with_axis(node.result.type),)
    record = OpaqueAttributes(op_type="ConvTranspose", types=types, attributes=tuple(sorted(given.items())))
    operands = [v.reshape(_with_axis(v.type).shape) for v in (x, weights)]
    return e(OPAQUE, *operands, *rest, attributes=record).reshape(node.result.shape)


def _with_axis(type: TensorType) -> TensorType:
    first, second, last = type.shape
    return type.with_shape((first, second, 1, last))
