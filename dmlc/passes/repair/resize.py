"""Repairs of Resize: of more axes than DirectML resamples, of sizes that keep the ratio of the axes, and to one
element."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from msgspec.structs import replace

from dmlc.ir import Dim, Node, Value, product
from dmlc.ir.dtype import f32, i64
from dmlc.ops.constant import constant_of
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import KEEP, Lowered, lowers
from dmlc.passes.rewrite import Miss

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
