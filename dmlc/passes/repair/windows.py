"""Repairs of windows: pads, paddings of Conv and ConvTranspose, and Resize."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from dmlc.ir import FOREIGN, Dim, Node, TensorType, Value, product
from dmlc.ir.dtype import bool_, f32, i64
from dmlc.onnx_schema.transposed_conv import transposed_axes
from dmlc.ops.constant import constant_of
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import KEEP, Lowered, lowers
from dmlc.passes.repair.foreign import element_dtype, unsized_type
from dmlc.passes.rewrite import Miss
from dmlc.targets import dispatch_row

# --- Pads of negative counts, which ONNX cuts off and DirectML's PADDING1 does not take, and pads that a Conv computes


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


# --- Repairs of ConvTranspose: paddings that the provider computes otherwise, in numbers

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


# --- Repairs of Resize: of more axes than DirectML resamples, of sizes that keep the ratio of the axes, and to one

#: The operands that say how an axis is resized, since opset 11: factors, or the sizes of the result.
_SCALES, _SIZES = 2, 3
#: The first opset at which the region and the factors may be left out; they are empty below it.
_OPTIONAL_SINCE = 13
#: Attributes that come with opset 18: what they say without effect, and what is written in another way.
_POLICY = "keep_aspect_ratio_policy"
_NEWER = {"antialias": 0, _POLICY: "stretch"}
_PYTORCH = "pytorch_half_pixel"
#: Coordinates that move along an axis of factor 1 as well, or are of a part of it.
_MOVING = ("tf_half_pixel_for_nn", "tf_crop_and_resize")
#: Axes before those that are resized in the forms that ONNX Runtime's CPU provider resizes linearly, and axes in all.
_AXES_BEFORE, _LEAST_AXES = 2, 4


_POLICED = Miss("it has an antialias or a keep_aspect_ratio_policy")


def _has_newer(node: Node) -> bool:
    return any(attribute_of(node, name, usual) != usual for name, usual in _NEWER.items())


@lowers(onnx=("Resize",), repairs=("resize-rank",))
def merge_resize_axes(e: Sketch, node: Node, x: Term, *_: Term | None) -> Lowered:
    """A Resize of more than 4 axes has neighbouring axes that keep their size merged, between reshapes."""
    found, result = e.target.fault("resize-rank", "Resize"), node.result.type
    if found is None or found.resized_over is None or x.rank != len(result.shape):
        return KEEP
    if _resized(zip(x.shape, result.shape, strict=True)) <= found.resized_over:
        return KEEP
    operand = next((i for i in (_SCALES, _SIZES) if _operand(node, i) is not None), _SCALES)
    given = _given(node, operand)
    if node.origin is not None and node.origin.version < 11:
        return Miss("its opset is older than 11")
    if given is None:
        return Miss("its factors or sizes are not constant")
    if attribute_of(node, "coordinate_transformation_mode") in _MOVING:
        return Miss("its coordinates move along axes that keep their size")
    if _has_newer(node):
        return _POLICED
    groups = _groups(node, operand, given)
    count = _resized([(product(before), product(after)) for before, after, _ in groups])
    if count > found.resized_over:
        return Miss("{0} axes are left", (count,))
    resized = sum(before != after for before, after, _ in groups)
    groups = [((), (), 1.0)] * (max(_LEAST_AXES, resized + _AXES_BEFORE) - len(groups)) + groups
    shape = tuple([product(after) for _, after, _ in groups])
    how = e.number([factor for *_, factor in groups], f32) if operand == _SCALES else e.number(list(shape), i64)
    old = node.attributes_as(OpaqueAttributes)
    kept = tuple([pair for pair in old.attributes if pair[0] not in (*_NEWER, "axes")])
    record = replace(old, types=(result.with_shape(shape),), attributes=kept)
    absent = e.number([], f32) if e.target.opset < _OPTIONAL_SINCE else None
    merged = x.reshape([product(before) for before, _, _ in groups])
    made = e(OPAQUE, merged, absent, *[absent] * (operand - _SCALES), how, attributes=record)
    return made.reshape(result.shape)


@lowers(onnx=("Resize",), repairs=("resize-aspect",))
def resize_by_one_factor(e: Sketch, node: Node, x: Term, *more: Term | None) -> Lowered:
    """A Resize to sizes that keep the ratio of the axes is given the one factor of its axes."""
    policy = attribute_of(node, _POLICY, "stretch")
    if policy == "stretch" or e.target.fault("resize-aspect", "Resize") is None:
        return KEEP
    tensor = constant_of(_operand(node, _SIZES))
    if tensor is None:
        return Miss("its sizes are not constant")
    axes = attribute_of(node, "axes", tuple(range(x.rank)))
    known = [size for axis in axes if isinstance(size := x.shape[axis], int)]
    if len(known) != tensor.size or 0 in known:
        return Miss("the sizes of the axes are not known")
    factors = np.float32(tensor.array) / np.array(known, np.float32)
    factor = float(factors.min() if policy == "not_larger" else factors.max())
    made = np.floor(np.float32(factor) * np.array(known, np.float32)).tolist()
    if made != [node.result.shape[axis] for axis in axes]:
        return Miss("the factor {0} makes other sizes: it rounds down", (factor,))
    old = node.attributes_as(OpaqueAttributes)
    record = replace(old, attributes=tuple([pair for pair in old.attributes if pair[0] != _POLICY]))
    how = e.number(np.full(len(known), factor), f32)
    return e(OPAQUE, x, *more[: _SCALES - 1], how, attributes=record)


@lowers(onnx=("Resize",), optional=True, repairs=("resize-pytorch-pixel",))
def first_of_resized(e: Sketch, node: Node, x: Term, *more: Term | None) -> Lowered:
    """A Resize to one element at PyTorch's coordinates takes the first element of the axis, which is cut out before."""
    if e.target.fault("resize-pytorch-pixel", "Resize") is None:
        return KEEP
    if attribute_of(node, "coordinate_transformation_mode") != _PYTORCH:
        return KEEP
    sizes = enumerate(zip(x.shape, node.result.shape, strict=True))
    axes = tuple([axis for axis, (old, new) in sizes if new == 1 and isinstance(old, int) and old > 1])
    if not axes:
        return KEEP
    factors, count = constant_of(_operand(node, _SCALES)), len(axes)
    if _has_newer(node):
        return _POLICED
    if _operand(node, _SIZES) is None and factors is None:
        return Miss("its factors are not constant")
    operands = [e.slice(x, starts=(0,) * count, ends=(1,) * count, axes=axes, steps=(1,) * count), *more]
    if factors is not None:
        array = factors.array.copy()
        listed = [axis % x.rank for axis in attribute_of(node, "axes", tuple(range(x.rank)))]
        array[[listed.index(axis) for axis in axes]] = 1
        operands[_SCALES] = e.number(array, f32)
    return e(OPAQUE, *operands, attributes=node.attributes)


def _resized(sizes: Iterable[tuple[Dim, Dim]]) -> int:
    """The number of axes that have more than one element before or after."""
    return sum(a != 1 or b != 1 for a, b in sizes)


def _operand(node: Node, index: int) -> Value | None:
    """The operand of that number; None if it is left out, or empty as an operand below opset 13 is instead."""
    value = node.operands[index] if index < len(node.operands) else None
    return None if value is None or 0 in value.shape else value


def _given(node: Node, operand: int) -> Sequence[float] | None:
    """The factor or the size of each axis of the result; an axis that ``axes`` leaves out keeps its size."""
    tensor, x = constant_of(_operand(node, operand)), node.operand(0)
    if tensor is None:
        return None
    numbers, rank = tensor.array.tolist(), x.type.rank
    axes = attribute_of(node, "axes", tuple(range(rank)))
    if len(axes) != len(numbers):
        return None
    own: Sequence[Dim | float] = [1.0] * rank if operand == _SCALES else x.shape
    known = dict(zip([axis % rank for axis in axes], numbers, strict=True))
    out = [known.get(axis, own[axis]) for axis in range(rank)]
    return [float(number) for number in out] if all(isinstance(n, (int, float)) for n in out) else None


def _groups(node: Node, operand: int, given: Sequence[float]) -> list[tuple[tuple[Dim, ...], tuple[Dim, ...], float]]:
    """The axes that become one: their sizes before and after, and the factor. Resized axes stay apart."""
    joins = False
    out: list[tuple[tuple[Dim, ...], tuple[Dim, ...], float]] = []
    for x, y, number in zip(node.operand(0).shape, node.result.shape, given, strict=True):
        stays = x == y and number == (1.0 if operand == _SCALES else x)
        if stays and joins:
            before, after, _ = out[-1]
            out[-1] = ((*before, x), (*after, y), 1.0)
        else:
            out.append(((x,), (y,), number))
        joins = stays
    return out
