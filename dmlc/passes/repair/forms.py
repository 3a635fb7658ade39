"""Repairs of forms of layout operators that the provider refuses: they are written in another form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from msgspec.structs import replace

from dmlc.ir import FOREIGN, Graph, Node, Operation, Value
from dmlc.ir.dtype import i64
from dmlc.ops.move import RESHAPE, SLICE, SliceAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, is_opaque
from dmlc.passes.rewrite import Match, Rewriter, Rule

#: Operands of Slice that are axes and steps.
_AXES, _STEPS = 3, 4


class PlainReshape(Rule[Match]):
    """A Reshape whose shape has a -1 loses allowzero, which says nothing there: ONNX has no 0 next to a -1."""

    name = "plain-reshape"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (RESHAPE, OPAQUE)
    repairs: ClassVar[tuple[str, ...]] = ("reshape-allowzero",)

    def match(self, node: Node, graph: Graph) -> Match | None:
        (failure,) = self.repairs
        if node.origin is None or self.capabilities.fault(failure, "Reshape") is None:
            return None
        proto = node.origin.proto
        if proto.op_type != "Reshape" or proto.domain not in ("", "ai.onnx"):
            return None
        is_kept = any(attribute.name == "allowzero" and attribute.i for attribute in proto.attribute)
        return Match(node) if is_kept and -1 in _shape_of(node) else None

    def describe(self, match: Match) -> str:
        return "allowzero of Reshape"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        if root.op is RESHAPE:
            return [rewriter.add(RESHAPE, root.operands, root.attributes)]
        a = root.attributes_as(OpaqueAttributes)
        kept = tuple([pair for pair in a.attributes if pair[0] != "allowzero"])
        return [rewriter.add(OPAQUE, root.operands, replace(a, attributes=kept))]


def _shape_of(node: Node) -> Sequence[int]:
    """The numbers of the shape operand of a Reshape as the model has it; none where they are computed."""
    from dmlc.onnx_schema.origin import known_of  # loads onnx, which a model has loaded already

    names = [f"{number}" for number in range(len(node.origin.inputs))]
    array = known_of(node, names).constant(names[1])
    return () if array is None else array.ravel().tolist()


class SliceWithAxes(Rule[Match]):
    """A Slice with steps and without axes gets its axes: the first ones, as many as it has starts."""

    name = "slice-with-axes"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (SLICE, OPAQUE)
    repairs: ClassVar[tuple[str, ...]] = ("slice-steps",)

    def match(self, node: Node, graph: Graph) -> Match | None:
        (failure,) = self.repairs
        if node.origin is None or self.capabilities.fault(failure, "Slice") is None:
            return None
        proto = node.origin.proto
        if proto.op_type != "Slice" or proto.domain not in ("", "ai.onnx"):
            return None
        names = [*proto.input, *[""] * (_STEPS + 1)]
        if names[_AXES] or not names[_STEPS]:
            return None
        return Match(node) if node.op is SLICE or _count(node) is not None else None

    def describe(self, match: Match) -> str:
        return "Slice without axes"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        if root.op is SLICE:
            return [rewriter.add(SLICE, root.operands, root.attributes_as(SliceAttributes))]
        axes = rewriter.number(list(range(_count(root) or 0)), i64).value
        operands = [*root.operands[:_AXES], axes, *root.operands[_STEPS:]]
        return [rewriter.add(OPAQUE, operands, root.attributes_as(OpaqueAttributes))]


def _count(node: Node) -> int | None:
    """The number of starts of an opaque Slice."""
    sizes = [v.shape[0] for v in node.operands[1:3] if v is not None and v.type.dtype is not FOREIGN and v.shape]
    return next((size for size in sizes if isinstance(size, int)), None)


class GatherOneNumber(Rule[Match]):
    """A GatherND whose result is one number takes its indices as a row, and its result has an axis until a reshape."""

    name = "gather-one-number"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    repairs: ClassVar[tuple[str, ...]] = ("gather-nd-number",)

    def match(self, node: Node, graph: Graph) -> Match | None:
        (failure,) = self.repairs
        if not is_opaque(node, "GatherND") or self.capabilities.fault(failure, "GatherND") is None:
            return None
        indices, result = node.operands[1], node.result.type
        if indices is None or FOREIGN in (indices.type.dtype, result.dtype):
            return None
        return None if result.rank else Match(node)  # the indices then have one axis

    def describe(self, match: Match) -> str:
        return "GatherND of one number"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        row = rewriter.reshape(root.operand(1), (1, *root.operand(1).shape))
        a = root.attributes_as(OpaqueAttributes)
        record = replace(a, types=(root.result.type.with_shape((1,)),))
        return [rewriter.reshape(rewriter.add(OPAQUE, (root.operand(0), row), record), ())]
