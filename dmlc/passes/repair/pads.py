"""Pads of negative counts, which ONNX cuts off and DirectML's PADDING1 does not take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from dmlc.ir import FOREIGN, Graph, Node, Operation, TensorType, Value
from dmlc.ir.dtype import bool_, i64
from dmlc.ops.constant import constant_of
from dmlc.ops.move import PAD, SLICE, PadAttributes, SliceAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of, is_opaque
from dmlc.passes.expressions import Formulas
from dmlc.passes.repair.foreign import OnnxMaker, element_dtype, unsized_type
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule


class _NegativePadsMatch(Match, eq=False, kw_only=True):
    """``pads`` are the counts before each of ``axes``, then those after each: all axes where the rank is known."""

    pads: tuple[int, ...]
    axes: tuple[int, ...]


class SliceNegativePads(Rule[_NegativePadsMatch]):
    """A pad of negative counts becomes a slice, and a pad of what is left of the counts.

    ONNX Runtime cuts first and then pads what is left, in every mode; so does this.
    """

    name = "slice-negative-pads"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    repairs: ClassVar[tuple[str, ...]] = ("pad-negative", "pad-negative-attribute")

    def match(self, node: Node, graph: Graph) -> _NegativePadsMatch | None:
        if not is_opaque(node, "Pad") or all(self.capabilities.fault(f, "Pad") is None for f in self.repairs):
            return None
        x = node.operands[0]
        if x is None or element_dtype(x) is None:
            return None
        found = _counts_of(node, None if x.type.dtype is FOREIGN else x.type.rank)
        return (
            None
            if found is None or min(found[0], default=0) >= 0
            else _NegativePadsMatch(node, pads=found[0], axes=found[1])
        )

    def check(self, match: _NegativePadsMatch, graph: Graph) -> Miss | None:
        x = match.root.operand(0)
        if x.type.dtype is FOREIGN:
            return None
        for axis, (before, after) in enumerate(_cuts(match.pads)):
            size = x.shape[axis]
            if isinstance(size, int) and 0 < before + after > size:
                return Miss("axis {0} has {1} elements, {2} are cut off", (axis, size, before + after), x)
        return None

    def describe(self, match: _NegativePadsMatch) -> str:
        return f"Pad by {list(match.pads)}"

    def build(self, match: _NegativePadsMatch, rewriter: Rewriter) -> Sequence[Value]:
        root, x, cuts = match.root, match.root.operand(0), _cuts(match.pads)
        if x.type.dtype is FOREIGN or any(any(cut) and not isinstance(x.shape[a], int) for a, cut in enumerate(cuts)):
            return [_OpenPad(match, OnnxMaker(rewriter, self.capabilities.opset)).build()]
        make = rewriter
        rows = [(axis, *cut) for axis, cut in enumerate(cuts) if any(cut)]
        record = SliceAttributes(
            starts=tuple([before for _, before, _ in rows]),
            ends=tuple([x.shape[axis] - after for axis, _, after in rows]),
            axes=tuple([axis for axis, _, _ in rows]),
            steps=(1,) * len(rows),
        )
        left = make.add(SLICE, [x], record)
        pads = tuple([max(count, 0) for count in match.pads])
        return [_padded(make, root, left, pads) if any(pads) else left]


class _OpenPad:
    """The repair where a size that is cut is not known, or the rank is not: in ONNX operators, by the counts alone.

    A constant pad comes first where one axis is cut on one side and padded on the other: more may be cut off than
    there was, and then ONNX Runtime cuts what was padded. Otherwise the slice comes first.
    """

    def __init__(self, match: _NegativePadsMatch, make: OnnxMaker) -> None:
        self.root, self.axes, self.make = match.root, match.axes, make
        self.cuts = _cuts(match.pads)
        self.pads = tuple([max(count, 0) for count in match.pads])

    def build(self) -> Value:
        half = len(self.axes)
        grows = [self.pads[i] + self.pads[i + half] for i in range(half)]
        shrinks = [before + after for before, after in self.cuts]
        x, out = self.root.operand(0), self.root.result.type
        if not any(grows):
            return self._slice(x, out)
        mode = attribute_of(self.root, "mode", "constant")
        if mode == "constant" and any(a and b for a, b in zip(grows, shrinks, strict=True)):
            return self._slice(self._pad(x, self._between(x, grows)), out)
        return self._pad(self._slice(x, self._between(x, [-count for count in shrinks])), out)

    def _between(self, x: Value, changes: Sequence[int]) -> TensorType:
        dtype = element_dtype(x)
        assert dtype is not None
        if x.type.dtype is FOREIGN:
            return unsized_type(dtype)
        return x.type.with_shape(tuple([size + change for size, change in zip(x.shape, changes, strict=True)]))

    def _slice(self, x: Value, type: TensorType) -> Value:
        rows = [(axis, *cut) for axis, cut in zip(self.axes, self.cuts, strict=True) if any(cut)]
        lists = {
            "starts": tuple([before for _, before, _ in rows]),
            "ends": tuple([-after if after else _END for _, _, after in rows]),
            "axes": tuple([axis for axis, _, _ in rows]),
        }
        if self.make.opset < 10:
            return self.make("Slice", type, x, **lists)
        return self.make("Slice", type, x, *[self.make.constant(numbers, i64) for numbers in lists.values()])

    def _pad(self, x: Value, type: TensorType) -> Value:
        mode, filled = attribute_of(self.root, "mode", "constant"), attribute_of(self.root, "value", 0.0)
        if self.make.opset < 11:
            return self.make("Pad", type, x, mode=mode, pads=self.pads, value=filled)
        is_whole = self.root.operand(0).type.dtype is not FOREIGN  # then the counts are for all axes by now
        more = list(self.root.operands[2 : 3 if is_whole else None])
        if filled:
            dtype = element_dtype(x)
            assert dtype is not None
            more = [self.make.constant(filled, dtype)]
        return self.make("Pad", type, x, self.make.constant(self.pads, i64), *more, mode=mode)


#: The end of every axis.
_END = 2**63 - 1


def _counts_of(node: Node, rank: int | None) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """The counts and their axes, all where the rank is known; None where they are not known. Counts are an attribute
    below opset 11, an operand since."""
    pads, listed = attribute_of(node, "pads"), None
    if pads is None:
        data = [constant_of(v) for v in node.operands[1:]]
        if data[0] is None:
            return None
        pads = data[0].array.tolist()
        if len(node.operands) > 3 and node.operands[3] is not None:
            if data[2] is None:
                return None
            listed = [int(axis) for axis in data[2].array]
    if rank is None:
        axes = tuple(range(len(pads) // 2) if listed is None else listed)
        return (tuple(map(int, pads)), axes) if len(pads) == 2 * len(axes) else None
    axes = tuple(range(rank) if listed is None else [axis % rank for axis in listed])
    if len(pads) != 2 * len(axes):
        return None
    out = [0] * (2 * rank)
    for i, axis in enumerate(axes):
        out[axis], out[axis + rank] = int(pads[i]), int(pads[i + len(axes)])
    return tuple(out), tuple(range(rank))


def _cuts(pads: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return the number of elements cut off before and after each axis."""
    rank = len(pads) // 2
    return [(max(-pads[i], 0), max(-pads[i + rank], 0)) for i in range(rank)]


def _padded(make: Formulas, root: Node, left: Value, pads: tuple[int, ...]) -> Value:
    """Pad the rest of the operand, in the mode and with the value of the root."""
    mode, value = str(attribute_of(root, "mode", "constant")), root.operands[2] if len(root.operands) > 2 else None
    number = constant_of(value)
    if mode == "constant" and (value is None or (number is not None and number.size == 1)):
        filled = attribute_of(root, "value", 0.0) if number is None else number.array.item()
        if not left.type.dtype.is_float:
            filled = bool(filled) if left.type.dtype is bool_ else int(filled)
        return make.add(PAD, [left], PadAttributes(pads=pads, value=filled))
    record = OpaqueAttributes(op_type="Pad", types=(root.result.type,), attributes=(("mode", mode),))
    return make.add(OPAQUE, [left, make.number(pads, i64).value, value], record)
