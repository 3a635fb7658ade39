"""Repairs of Resize: of more axes than DirectML resamples, of sizes that keep the ratio of the axes, and to one
element."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

import numpy as np
from msgspec.structs import replace

from dmlc.ir import Dim, Graph, Node, Operation, Value, product
from dmlc.ir.dtype import f32, i64
from dmlc.ops.constant import constant_of
from dmlc.ops.move import SLICE, SliceAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of, is_opaque
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule

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


class _ResizeMatch(Match, eq=False, kw_only=True):
    """``given`` has a factor or a size for each axis, from the operand ``operand``; None where it is not constant.
    ``most`` is how many axes of more than one element DirectML resamples."""

    operand: int
    given: Sequence[float] | None
    most: int


class ResizeOfMergedAxes(Rule[_ResizeMatch]):
    """A Resize of more than 4 axes has neighbouring axes that keep their size merged, between reshapes."""

    name = "merge-resize-axes"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    repairs: ClassVar[tuple[str, ...]] = ("resize-rank",)

    def match(self, node: Node, graph: Graph) -> _ResizeMatch | None:
        (failure,) = self.repairs
        found = self.capabilities.fault(failure, "Resize") if is_opaque(node, "Resize") else None
        x, result = node.operands[0] if node.operands else None, node.results[0]
        if found is None or found.resized_over is None or x is None:
            return None
        if len(x.shape) != len(result.shape) or _resized(zip(x.shape, result.shape, strict=True)) <= found.resized_over:
            return None
        operand = next((i for i in (_SCALES, _SIZES) if _operand(node, i) is not None), _SCALES)
        return _ResizeMatch(node, operand=operand, given=_given(node, operand), most=found.resized_over)

    def check(self, match: _ResizeMatch, graph: Graph) -> Miss | None:
        root = match.root
        if root.origin is not None and root.origin.version < 11:
            return Miss("its opset is older than 11")
        if match.given is None:
            return Miss("its factors or sizes are not constant")
        if attribute_of(root, "coordinate_transformation_mode") in _MOVING:
            return Miss("its coordinates move along axes that keep their size")
        if any(attribute_of(root, name, usual) != usual for name, usual in _NEWER.items()):
            return Miss("it has an antialias or a keep_aspect_ratio_policy")
        count = _resized([(product(x), product(y)) for x, y, _ in _groups(match)])
        return Miss("{0} axes are left", (count,)) if count > match.most else None

    def describe(self, match: _ResizeMatch) -> str:
        return f"Resize of {match.root.result.type.rank} axes"

    def build(self, match: _ResizeMatch, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        groups = _groups(match)
        resized = sum(x != y for x, y, _ in groups)
        groups = [((), (), 1.0)] * (max(_LEAST_AXES, resized + _AXES_BEFORE) - len(groups)) + groups
        x = rewriter.reshape(root.operand(0), [product(sizes) for sizes, _, _ in groups])
        shape = [product(sizes) for _, sizes, _ in groups]
        if match.operand == _SCALES:
            how = rewriter.number(np.array([factor for *_, factor in groups]), f32).value
        else:
            how = rewriter.number(np.array(shape), i64).value
        old = root.attributes_as(OpaqueAttributes)
        kept = tuple([pair for pair in old.attributes if pair[0] not in (*_NEWER, "axes")])
        record = replace(old, types=(root.result.type.with_shape(tuple(shape)),), attributes=kept)
        absent = rewriter.number(np.array([]), f32).value if self.capabilities.opset < _OPTIONAL_SINCE else None
        operands = [x, absent, *[absent] * (match.operand - _SCALES), how]
        return [rewriter.reshape(rewriter.add(OPAQUE, operands, record), root.result.shape)]


class _PolicyMatch(Match, eq=False, kw_only=True):
    """``factor`` resizes the axes, from the sizes ``before`` to ``after``."""

    factor: float
    before: Sequence[int]
    after: Sequence[Dim]


class ResizeByOneFactor(Rule[_PolicyMatch]):
    """A Resize to sizes that keep the ratio of the axes is given the one factor of its axes."""

    name = "resize-by-one-factor"
    optional = False
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    repairs: ClassVar[tuple[str, ...]] = ("resize-aspect",)

    def match(self, node: Node, graph: Graph) -> _PolicyMatch | Miss | None:
        policy = attribute_of(node, _POLICY, "stretch") if is_opaque(node, "Resize") else "stretch"
        if policy == "stretch" or self.capabilities.fault(self.repairs[0], "Resize") is None:
            return None
        tensor, x, result = constant_of(_operand(node, _SIZES)), node.operand(0), node.result
        if tensor is None:
            return Miss("its sizes are not constant")
        axes = attribute_of(node, "axes", tuple(range(x.type.rank)))
        before = [x.shape[axis] for axis in axes]
        known = [size for size in before if isinstance(size, int)]
        if len(known) != tensor.size or 0 in known:
            return Miss("the sizes of the axes are not known")
        factors = np.float32(tensor.array) / np.array(known, np.float32)
        factor = float(factors.min() if policy == "not_larger" else factors.max())
        return _PolicyMatch(node, factor=factor, before=known, after=[result.shape[axis] for axis in axes])

    def check(self, match: _PolicyMatch, graph: Graph) -> Miss | None:
        made = np.floor(np.float32(match.factor) * np.array(match.before, np.float32)).tolist()
        is_same = made == list(match.after)
        return None if is_same else Miss("the factor {0} makes other sizes: it rounds down", (match.factor,))

    def describe(self, match: _PolicyMatch) -> str:
        return f"Resize with {_POLICY} {attribute_of(match.root, _POLICY)}"

    def build(self, match: _PolicyMatch, rewriter: Rewriter) -> Sequence[Value]:
        root, old = match.root, match.root.attributes_as(OpaqueAttributes)
        factors = rewriter.number(np.full(len(match.before), match.factor), f32).value
        record = replace(old, attributes=tuple([pair for pair in old.attributes if pair[0] != _POLICY]))
        return list(rewriter.add_node(OPAQUE, [*root.operands[:_SCALES], factors], record).results)


class _FirstMatch(Match, eq=False, kw_only=True):
    """``axes`` are those that are resized to one element."""

    axes: tuple[int, ...]


class FirstOfResized(Rule[_FirstMatch]):
    """A Resize to one element at PyTorch's coordinates takes the first element of the axis, which is cut out before."""

    name = "first-of-resized"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    repairs: ClassVar[tuple[str, ...]] = ("resize-pytorch-pixel",)

    def match(self, node: Node, graph: Graph) -> _FirstMatch | None:
        (failure,) = self.repairs
        if not is_opaque(node, "Resize") or self.capabilities.fault(failure, "Resize") is None:
            return None
        if attribute_of(node, "coordinate_transformation_mode") != _PYTORCH or node.operands[0] is None:
            return None
        sizes = enumerate(zip(node.operand(0).shape, node.result.shape, strict=True))
        axes = tuple([axis for axis, (old, new) in sizes if new == 1 and isinstance(old, int) and old > 1])
        return _FirstMatch(node, axes=axes) if axes else None

    def check(self, match: _FirstMatch, graph: Graph) -> Miss | None:
        root = match.root
        if any(attribute_of(root, name, usual) != usual for name, usual in _NEWER.items()):
            return Miss("it has an antialias or a keep_aspect_ratio_policy")
        if _operand(root, _SIZES) is None and constant_of(_operand(root, _SCALES)) is None:
            return Miss("its factors are not constant")
        return None

    def describe(self, match: _FirstMatch) -> str:
        return "Resize to one element"

    def build(self, match: _FirstMatch, rewriter: Rewriter) -> Sequence[Value]:
        root, count = match.root, len(match.axes)
        record = SliceAttributes(starts=(0,) * count, ends=(1,) * count, axes=match.axes, steps=(1,) * count)
        operands: list[Value | None] = [rewriter.add(SLICE, [root.operand(0)], record), *root.operands[1:]]
        factors = constant_of(_operand(root, _SCALES))
        if factors is not None:
            array, rank = factors.array.copy(), root.operand(0).type.rank
            listed = [axis % rank for axis in attribute_of(root, "axes", tuple(range(rank)))]
            array[[listed.index(axis) for axis in match.axes]] = 1
            operands[_SCALES] = rewriter.number(array, f32).value
        return [rewriter.add(OPAQUE, operands, root.attributes_as(OpaqueAttributes))]


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


def _groups(match: _ResizeMatch) -> list[tuple[tuple[Dim, ...], tuple[Dim, ...], float]]:
    """The axes that become one: their sizes before and after, and the factor. Resized axes stay apart."""
    root, joins = match.root, False
    out: list[tuple[tuple[Dim, ...], tuple[Dim, ...], float]] = []
    assert match.given is not None
    for x, y, number in zip(root.operand(0).shape, root.result.shape, match.given, strict=True):
        stays = x == y and number == (1.0 if match.operand == _SCALES else x)
        if stays and joins:
            before, after, _ = out[-1]
            out[-1] = ((*before, x), (*after, y), 1.0)
        else:
            out.append(((x,), (y,), number))
        joins = stays
    return out
