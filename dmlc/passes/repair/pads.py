"""Pads of negative counts, which ONNX cuts off and DirectML's PADDING1 does not take, and pads that a Conv computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from dmlc.ir import FOREIGN, Node, TensorType
from dmlc.ir.dtype import bool_, i64
from dmlc.ops.constant import constant_of
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import KEEP, Lowered, lowers
from dmlc.passes.repair.foreign import element_dtype, unsized_type
from dmlc.passes.rewrite import Miss
from dmlc.targets import dispatch_row


@lowers(onnx=("Conv",))
def explicit_conv_pads(e: Sketch, node: Node, x: Term, weights: Term, *bias: Term | None) -> Lowered:
    """A Conv that pads for a size of its result gets its pads in numbers, where the provider then prepares its weights.

    SAME_LOWER has the odd element before, SAME_UPPER behind.
    """
    mode = attribute_of(node, "auto_pad", "NOTSET")
    if mode == "NOTSET" or not e.target.has_provider or FOREIGN in (x.dtype, weights.dtype):
        return KEEP
    if not dispatch_row("Conv", e.target.provider.dispatches).unprepared:
        return KEEP
    count = x.rank - 2
    strides, dilations = (attribute_of(node, name, (1,) * count) for name in ("strides", "dilations"))
    totals: list[int] = []
    for size, kernel, stride, dilation in zip(x.shape[2:], weights.shape[2:], strides, dilations, strict=True):
        if mode == "VALID":
            totals.append(0)
        elif isinstance(kernel, int) and (isinstance(size, int) or stride == 1):
            left = 0 if not isinstance(size, int) else (size - 1) // stride * stride + 1 - size
            totals.append(max(left + (kernel - 1) * dilation, 0))
        else:
            return Miss("its pads depend on a dynamic size")
    before = [(total + (mode == "SAME_LOWER")) // 2 for total in totals]
    pads = (*before, *(total - first for total, first in zip(totals, before, strict=True)))
    a = node.attributes_as(OpaqueAttributes)
    kept: dict[str, Any] = {**dict(a.attributes), "pads": pads}
    del kept["auto_pad"]
    return e(OPAQUE, x, weights, *bias, attributes=replace(a, attributes=tuple(sorted(kept.items()))))


@lowers(onnx=("Pad",), repairs=("pad-negative", "pad-negative-attribute"))
def slice_negative_pads(e: Sketch, node: Node, x: Term, *more: Term | None) -> Lowered:
    """A pad of negative counts becomes a slice, and a pad of what is left of the counts.

    ONNX Runtime cuts first and then pads what is left, in every mode; so does this.
    """
    faults = [e.target.fault(fault, "Pad") for fault in ("pad-negative", "pad-negative-attribute")]
    if not any(faults) or element_dtype(x.value) is None:
        return KEEP
    found = _counts_of(node, None if x.dtype is FOREIGN else x.rank)
    if found is None or min(found[0], default=0) >= 0:
        return KEEP
    pads, axes = found
    cuts, left = _cuts(pads), tuple([max(count, 0) for count in pads])
    if x.dtype is FOREIGN:
        return _OpenPad(e, node, more, axes, cuts, left).pad(x)
    for axis, (before, after) in enumerate(cuts):
        size = x.shape[axis]
        if isinstance(size, int) and 0 < before + after > size:
            return Miss("axis {0} has {1} elements, {2} are cut off", (axis, size, before + after), x.value)
    rows = [(axis, *cut) for axis, cut in enumerate(cuts) if any(cut)]
    if not all(isinstance(x.shape[axis], int) for axis, _, _ in rows):
        return _OpenPad(e, node, more, axes, cuts, left).pad(x)
    rest = e.slice(
        x,
        starts=tuple([before for _, before, _ in rows]),
        ends=tuple([x.shape[axis] - after for axis, _, after in rows]),
        axes=tuple([axis for axis, _, _ in rows]),
        steps=(1,) * len(rows),
    )
    return _padded(e, node, rest, left, more) if any(left) else rest


class _OpenPad:
    """The repair where a size that is cut is not known, or the rank is not: in ONNX operators, by the counts alone.

    A constant pad comes first where one axis is cut on one side and padded on the other: more may be cut off than
    there was, and then ONNX Runtime cuts what was padded. Otherwise the slice comes first.
    """

    def __init__(
        self,
        e: Sketch,
        node: Node,
        more: Sequence[Term | None],
        axes: Sequence[int],
        cuts: Sequence[tuple[int, int]],
        pads: tuple[int, ...],
    ) -> None:
        self.e, self.node, self.more, self.axes, self.cuts, self.pads = e, node, more, axes, cuts, pads

    def pad(self, x: Term) -> Term:
        half = len(self.axes)
        grows = [self.pads[i] + self.pads[i + half] for i in range(half)]
        shrinks = [before + after for before, after in self.cuts]
        out = self.node.result.type
        if not any(grows):
            return self._slice(x, out)
        mode = attribute_of(self.node, "mode", "constant")
        if mode == "constant" and any(a and b for a, b in zip(grows, shrinks, strict=True)):
            return self._slice(self._pad(x, self._between(x, grows)), out)
        return self._pad(self._slice(x, self._between(x, [-count for count in shrinks])), out)

    def _between(self, x: Term, changes: Sequence[int]) -> TensorType:
        dtype = element_dtype(x.value)
        assert dtype is not None
        if x.dtype is FOREIGN:
            return unsized_type(dtype)
        return x.type.with_shape(tuple([size + change for size, change in zip(x.shape, changes, strict=True)]))

    def _slice(self, x: Term, type: TensorType) -> Term:
        rows = [(axis, *cut) for axis, cut in zip(self.axes, self.cuts, strict=True) if any(cut)]
        lists = {
            "starts": tuple([before for _, before, _ in rows]),
            "ends": tuple([-after if after else _END for _, _, after in rows]),
            "axes": tuple([axis for axis, _, _ in rows]),
        }
        if self.e.target.opset < 10:
            return self.e.onnx("Slice", type, x, **lists)
        return self.e.onnx("Slice", type, x, *[self.e.number(numbers, i64) for numbers in lists.values()])

    def _pad(self, x: Term, type: TensorType) -> Term:
        mode, filled = attribute_of(self.node, "mode", "constant"), attribute_of(self.node, "value", 0.0)
        if self.e.target.opset < 11:
            return self.e.onnx("Pad", type, x, mode=mode, pads=self.pads, value=filled)
        is_whole = self.node.operand(0).type.dtype is not FOREIGN  # then the counts are for all axes by now
        more = list(self.more[1 : 2 if is_whole else None])
        if filled:
            dtype = element_dtype(x.value)
            assert dtype is not None
            more = [self.e.number(filled, dtype)]
        return self.e.onnx("Pad", type, x, self.e.number(self.pads, i64), *more, mode=mode)


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


def _padded(e: Sketch, node: Node, left: Term, pads: tuple[int, ...], more: Sequence[Term | None]) -> Term:
    """Pad the rest of the operand, in the mode and with the value of the node."""
    mode, value = str(attribute_of(node, "mode", "constant")), more[1] if len(more) > 1 else None
    number = None if value is None else value.data
    if mode == "constant" and (value is None or (number is not None and number.size == 1)):
        filled = attribute_of(node, "value", 0.0) if number is None else number.array.item()
        if not left.dtype.is_float:
            filled = bool(filled) if left.dtype is bool_ else int(filled)
        return e.pad(left, pads=pads, value=filled)
    return e.onnx("Pad", node.result.type, left, e.number(pads, i64), value, mode=mode)
