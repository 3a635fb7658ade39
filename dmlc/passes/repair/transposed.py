"""Repairs of ConvTranspose: paddings that the provider computes otherwise, in numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from msgspec.structs import replace

from dmlc.ir import FOREIGN, Graph, Node, Operation, TensorType, Value
from dmlc.onnx_schema.transposed_conv import TransposedAxis, transposed_axes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of, is_opaque
from dmlc.passes.node_maker import Maker
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule

#: The axes of a tensor of one spatial axis.
_LINE = 3
_PADDING = ("auto_pad", "output_padding", "output_shape", "pads")
#: Attributes of one number for each spatial axis, and what an axis of one element has.
_PER_AXIS = {"dilations": 1, "kernel_shape": 1, "output_padding": 0, "strides": 1}


class _TransposedMatch(Match, eq=False, kw_only=True):
    axes: Sequence[TransposedAxis]


class ExplicitTransposedPads(Rule[_TransposedMatch]):
    """A ConvTranspose gets its pads in numbers, from auto_pad and output_shape, less the output padding.

    What is left of the output padding of one spatial axis belongs to a second axis of one element.
    """

    name = "explicit-transposed-pads"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    repairs: ClassVar[tuple[str, ...]] = ("conv-transpose-line", "conv-transpose-size", "conv-transpose-start")

    def match(self, node: Node, graph: Graph) -> _TransposedMatch | None:
        if not is_opaque(node, "ConvTranspose") or all(
            self.capabilities.fault(name, "ConvTranspose") is None for name in self.repairs
        ):
            return None
        x, weights = node.operands[:2]
        if x is None or weights is None or FOREIGN in (x.type.dtype, weights.type.dtype):
            return None
        axes = transposed_axes(lambda name: attribute_of(node, name), x.shape, weights.shape)
        is_line = x.type.rank == _LINE and attribute_of(node, "output_padding") is not None
        if axes is None or not (is_line or any(axis.has_wrong_size or axis.has_wrong_start for axis in axes)):
            return None
        return _TransposedMatch(node, axes=axes)

    def check(self, match: _TransposedMatch, graph: Graph) -> Miss | None:
        if any(axis.explicit() is None for axis in match.axes):
            return Miss("its pads depend on a dynamic size, or are negative")
        return None

    def describe(self, match: _TransposedMatch) -> str:
        return "the pads of ConvTranspose"

    def build(self, match: _TransposedMatch, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        found = [axis.explicit() for axis in match.axes]
        pads = [
            (before, after - min(after, more), more - min(after, more)) for before, after, more in filter(None, found)
        ]
        a = root.attributes_as(OpaqueAttributes)
        kept: dict[str, Any] = {name: value for name, value in a.attributes if name not in _PADDING}
        kept["pads"] = tuple([before for before, _, _ in pads] + [after for _, after, _ in pads])
        left = tuple([more for _, _, more in pads])
        if any(left):
            kept["output_padding"] = left
        if len(pads) == 1 and any(left):
            return [_of_two_axes(Maker(rewriter), root, kept)]
        record = replace(a, attributes=tuple(sorted(kept.items())))
        return [rewriter.add(OPAQUE, root.operands, record)]


def _of_two_axes(make: Maker, node: Node, attributes: dict[str, Any]) -> Value:
    """The node with a spatial axis of one element before its own."""
    x, weights, *rest = node.operands
    assert x is not None and weights is not None
    wide = {name: (one, *attributes[name]) for name, one in _PER_AXIS.items() if name in attributes}
    before, after = attributes["pads"]
    given = {**attributes, **wide, "pads": (0, before, 0, after)}
    shape, result = (_with_axis(t) for t in (x.type, node.result.type))
    record = OpaqueAttributes(op_type="ConvTranspose", types=(result,), attributes=tuple(sorted(given.items())))
    operands = [make.reshape(x, shape.shape), make.reshape(weights, _with_axis(weights.type).shape), *rest]
    return make.reshape(make.rewriter.add(OPAQUE, operands, record), node.result.shape)


def _with_axis(type: TensorType) -> TensorType:
    first, second, last = type.shape
    return type.with_shape((first, second, 1, last))
