"""Pads of negative counts, which ONNX cuts off and DirectML's PADDING1 does not take."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import FOREIGN, Graph, Node, Value
from dmlc.ir.dtype import bool_, i64
from dmlc.ops.constant import constant_of
from dmlc.ops.move import PAD, SLICE, PadAttributes, SliceAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of, is_opaque
from dmlc.passes.legal_rules.build import Maker
from dmlc.passes.repair_rules.rule import RepairRule
from dmlc.passes.rewrite import Match, Miss, Rewriter
from dmlc.records import dataclass


@dataclass(slots=True, eq=False)
class _Found(Match):
    """``pads`` are the counts before each axis, then those after each."""

    pads: tuple[int, ...] = ()


class SliceNegativePads(RepairRule[_Found]):
    """A pad of negative counts becomes a slice, and a pad of what is left of the counts.

    ONNX Runtime cuts first and then pads what is left, in every mode; so does this.
    """

    repairs = ("pad-negative", "pad-negative-attribute")

    def match(self, node: Node, graph: Graph) -> _Found | None:
        if not is_opaque(node, "Pad") or all(self.support.of_kernel(f, "Pad") is None for f in self.repairs):
            return None
        x = node.operands[0]
        if x is None or x.type.dtype is FOREIGN:
            return None
        pads = _pads_of(node, x.type.rank)
        return None if pads is None or min(pads, default=0) >= 0 else _Found(node, pads=pads)

    def check(self, match: _Found, graph: Graph) -> Miss | None:
        x = match.root.operand(0)
        for axis, (before, after) in enumerate(_cuts(match.pads)):
            size = x.shape[axis]
            if not before and not after:
                continue
            if not isinstance(size, int):
                return Miss("axis {0}, of which {1} are cut off, has an open size", (axis, before + after), x)
            if before + after > size:
                return Miss("axis {0} has {1} elements, {2} are cut off", (axis, size, before + after), x)
        return None

    def describe(self, match: _Found) -> str:
        return f"Pad by {list(match.pads)}"

    def build(self, match: _Found, rewriter: Rewriter) -> Sequence[Value]:
        make, root = Maker(rewriter), match.root
        x = root.operand(0)
        rows = [(axis, *cut) for axis, cut in enumerate(_cuts(match.pads)) if any(cut)]
        record = SliceAttributes(
            starts=tuple([before for _, before, _ in rows]),
            ends=tuple([x.shape[axis] - after for axis, _, after in rows]),
            axes=tuple([axis for axis, _, _ in rows]),
            steps=(1,) * len(rows),
        )
        left = make(SLICE, x, attributes=record)
        pads = tuple([max(count, 0) for count in match.pads])
        return [_padded(make, root, left, pads) if any(pads) else left]


def _pads_of(node: Node, rank: int) -> tuple[int, ...] | None:
    """The counts of all axes, where they are known: an attribute below opset 11, an operand since."""
    pads, axes = attribute_of(node, "pads"), tuple(range(rank))
    if pads is None:
        data = [constant_of(v) for v in node.operands[1:]]
        if not data or data[0] is None:
            return None
        pads = data[0].array.tolist()
        if len(node.operands) > 3 and node.operands[3] is not None:
            if data[2] is None:
                return None
            axes = tuple([int(axis) % rank for axis in data[2].array])
    if len(pads) != 2 * len(axes):
        return None
    out = [0] * (2 * rank)
    for i, axis in enumerate(axes):
        out[axis], out[axis + rank] = int(pads[i]), int(pads[i + len(axes)])
    return tuple(out)


def _cuts(pads: tuple[int, ...]) -> list[tuple[int, int]]:
    """How many elements are cut off before and after each axis."""
    rank = len(pads) // 2
    return [(max(-pads[i], 0), max(-pads[i + rank], 0)) for i in range(rank)]


def _padded(make: Maker, root: Node, left: Value, pads: tuple[int, ...]) -> Value:
    """What is left of the operand, in the mode and with the value of the root."""
    mode, value = str(attribute_of(root, "mode", "constant")), root.operands[2] if len(root.operands) > 2 else None
    number = constant_of(value)
    if mode == "constant" and (value is None or (number is not None and number.size == 1)):
        filled = attribute_of(root, "value", 0.0) if number is None else number.array.reshape(())[()].item()
        if not left.type.dtype.is_float:
            filled = bool(filled) if left.type.dtype is bool_ else int(filled)
        return make(PAD, left, attributes=PadAttributes(pads=pads, value=filled))
    record = OpaqueAttributes(op_type="Pad", types=(root.result.type,), attributes=(("mode", mode),))
    return make.rewriter.add(OPAQUE, [left, make.constant(pads, i64), value], record)
