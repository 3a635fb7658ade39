"""Operations that move elements and compute nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np
from msgspec.structs import force_setattr

from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.diagnostics.counted import counted
from dmlc.ir import (
    DTYPES,
    Array,
    Attributes,
    Dim,
    Inference,
    Operand,
    Operation,
    OpError,
    Shape,
    TensorType,
    as_dtype,
    floordiv,
    product,
)
from dmlc.ops.attributes import (
    ALL,
    AxesKind,
    AxisKind,
    Binding,
    DimsKind,
    IntsKind,
    NewAxesKind,
    NumberKind,
    attribute,
    normalize_axis,
    show,
)
from dmlc.ops.literals import attribute_array
from dmlc.ops.rules import bound, broadcast, check_size


class ReshapeKind(DimsKind):
    """Sizes of which one may be -1; it becomes what the others leave."""

    spelling = "sizes, one of them may be -1"
    example = "[-1]"
    like = "shape"

    def convert(self, raw: Any, at: Binding) -> tuple[Dim, ...]:
        sizes = super().convert(raw, at)
        places = [i for i, size in enumerate(sizes) if size == -1]
        if not places:
            return sizes
        if len(places) > 1:
            raise at.fail(f"only one size of {at.name} may be -1", element=places[1])
        (place,) = places
        rest = product([size for size in sizes if size != -1])
        if rest == 0:
            raise at.fail(f"-1 cannot be computed where another size is 0, in {show(list(sizes))}", element=place)
        return (*sizes[:place], floordiv(product(at.first.shape), rest), *sizes[place + 1 :])


class ReshapeAttributes(Attributes, frozen=True, kw_only=True):
    """``shape`` holds no -1: it was resolved when the call was read."""

    shape: Annotated[tuple[Dim, ...], attribute(ReshapeKind(), "the sizes of the result")]


def _infer_reshape(call: Inference) -> Sequence[TensorType]:
    a: ReshapeAttributes = call.attributes
    x = call.type(0)
    for i, size in enumerate(a.shape):
        check_size(call, size, ("shape", i))
    have, want = product(x.shape), product(a.shape)
    texts = "[" + ", ".join(map(str, a.shape)) + "]"
    help = "a size of 0 means 0, not a copy of x's size" if 0 in a.shape else ""
    help = help or ("" if have == want else _other_shape(have, a.shape))
    error = OpError(
        codes.WRONG_SHAPE,
        f"{x} has {have} elements, shape {texts} has {want}",
        at="shape",
        about=0,
        help=help,
    )
    call.require(have, "==", want, error)
    return [x.with_shape(a.shape)]


def _other_shape(elements: Dim, shape: Shape) -> str:
    """The help for sizes that make another number of elements: the last of them that -1 can stand for."""
    for i in range(len(shape) - 1, -1, -1):
        rest = product([*shape[:i], *shape[i + 1 :]])
        if isinstance(elements, int) and isinstance(rest, int) and elements % rest == 0:
            texts = [str(size) if j != i else "-1" for j, size in enumerate(shape)]
            return f"-1 means the remaining elements: [{', '.join(texts)}]"
    return "sizes whose product is that number fit" if isinstance(elements, int) else "-1 means the remaining elements"


def _reshape_reference(a: ReshapeAttributes, x: Array) -> Array:
    return x.reshape([bound(d) for d in a.shape])


_MOVES = {"nan": "elements are moved, not computed"}

RESHAPE = Operation(
    name="reshape",
    operands=(Operand("x", DTYPES),),
    attributes=ReshapeAttributes,
    infer=_infer_reshape,
    reference=_reshape_reference,
    summary="The same elements in row-major order in another shape; one size may be -1.",
    source="ONNX Reshape with allowzero=1; numpy.reshape",
    notes={**_MOVES, "zero": "a size of 0 means 0, as in NumPy; ONNX's default reads it as a copy"},
)


_ONCE = "name each axis once"


class PermKind(IntsKind):
    """All axes of the operand in a new order; by default reversed."""

    spelling = "permutation of the axes"
    all_means = "reversed"

    def convert(self, raw: Any, at: Binding) -> tuple[int, ...]:
        rank = at.first.rank
        if raw is ALL:
            return tuple(range(rank))[::-1]
        given = super().convert(raw, at)
        if len(given) > rank:
            raise at.fail(
                f"{at.name} names {counted(len(given), 'axis')}, {at.operand_names[0]} has {rank}", help=_ONCE
            )
        axes = tuple([normalize_axis(axis, at, i) for i, axis in enumerate(given)])
        for i, axis in enumerate(axes):
            if axis in axes[:i]:
                raise OpError(
                    codes.DUPLICATE_AXIS, f"axis {axis} is named twice", at=(at.name, i), under="again", about=0
                )
        if len(axes) != rank:
            raise at.fail(f"{at.name} names {counted(len(axes), 'axis')}, {at.operand_names[0]} has {rank}", help=_ONCE)
        return axes


class TransposeAttributes(Attributes, frozen=True, kw_only=True):
    perm: Annotated[tuple[int, ...], attribute(PermKind(), "which axis of x comes where", default=ALL)]


def _infer_transpose(call: Inference) -> Sequence[TensorType]:
    x = call.type(0)
    return [x.with_shape(tuple([x.shape[axis] for axis in call.attributes.perm]))]


def _transpose_reference(a: TransposeAttributes, x: Array) -> Array:
    return np.transpose(x, a.perm)


TRANSPOSE = Operation(
    name="transpose",
    operands=(Operand("x", DTYPES),),
    attributes=TransposeAttributes,
    infer=_infer_transpose,
    reference=_transpose_reference,
    summary="The axes in another order: axis i of the result is axis perm[i] of x; without perm reversed.",
    source="ONNX Transpose; numpy.transpose",
    notes=_MOVES,
)


class AxesAttributes(Attributes, frozen=True, kw_only=True):
    axes: Annotated[tuple[int, ...], attribute(AxesKind(), "the axes to take out")]


def _infer_squeeze(call: Inference) -> Sequence[TensorType]:
    x, axes = call.type(0), call.attributes.axes
    for axis in axes:
        message = f"axis {axis} has size {x.shape[axis]}, only an axis of size 1 can be taken out"
        call.require(x.shape[axis], "==", 1, OpError(codes.WRONG_SHAPE, message, at="axes", about=0))
    return [x.with_shape(tuple([d for i, d in enumerate(x.shape) if i not in axes]))]


def _squeeze_reference(a: AxesAttributes, x: Array) -> Array:
    return np.squeeze(x, axis=a.axes)


SQUEEZE = Operation(
    name="squeeze",
    operands=(Operand("x", DTYPES),),
    attributes=AxesAttributes,
    infer=_infer_squeeze,
    reference=_squeeze_reference,
    summary="Without the named axes, which have size 1.",
    source="ONNX Squeeze; numpy.squeeze",
    notes=_MOVES,
)


class NewAxesAttributes(AxesAttributes, frozen=True, kw_only=True):
    """``axes`` are axes of the result."""

    axes: Annotated[tuple[int, ...], attribute(NewAxesKind(), "the positions of the new axes in the result")]


def _infer_unsqueeze(call: Inference) -> Sequence[TensorType]:
    x, axes = call.type(0), call.attributes.axes
    old = iter(x.shape)
    return [x.with_shape(tuple([1 if i in axes else next(old) for i in range(x.rank + len(axes))]))]


def _unsqueeze_reference(a: NewAxesAttributes, x: Array) -> Array:
    return np.expand_dims(x, a.axes)


UNSQUEEZE = Operation(
    name="unsqueeze",
    operands=(Operand("x", DTYPES),),
    attributes=NewAxesAttributes,
    infer=_infer_unsqueeze,
    reference=_unsqueeze_reference,
    summary="With new axes of size 1; they count in the result.",
    source="ONNX Unsqueeze; numpy.expand_dims",
    notes=_MOVES,
)


class ExpandAttributes(Attributes, frozen=True, kw_only=True):
    shape: Annotated[tuple[Dim, ...], attribute(DimsKind(), "the shape to broadcast with; 1 keeps x's size")]


def _infer_expand(call: Inference) -> Sequence[TensorType]:
    x, shape = call.type(0), call.attributes.shape
    for i, size in enumerate(shape):
        check_size(call, size, ("shape", i))
    return [x.with_shape(broadcast(call, (x.shape, shape)))]


def _expand_reference(a: ExpandAttributes, x: Array) -> Array:
    shape = np.broadcast_shapes(x.shape, tuple([bound(d) for d in a.shape]))
    return np.array(np.broadcast_to(x, shape))


EXPAND = Operation(
    name="expand",
    operands=(Operand("x", DTYPES),),
    attributes=ExpandAttributes,
    infer=_infer_expand,
    reference=_expand_reference,
    summary="x broadcast with the shape, which may be shorter and may hold 1.",
    source="ONNX Expand",
    notes=_MOVES,
)


class ConcatAttributes(Attributes, frozen=True, kw_only=True):
    axis: Annotated[int, attribute(AxisKind(), "the axis to join along")]


def _infer_concat(call: Inference) -> Sequence[TensorType]:
    axis = call.attributes.axis
    first = call.type(0)
    sizes = list(first.shape)
    for i in range(1, len(call.types)):
        other = call.type(i)
        if other.rank != first.rank:
            message = f"concat needs equal ranks: {first} and {other}"
            raise OpError(codes.WRONG_SHAPE, message, at=i, about=0)
        for position, (a, b) in enumerate(zip(sizes, other.shape, strict=True)):
            if position == axis:
                sizes[axis] = a + b
                continue
            message = f"concat along axis {axis} of {first} and {other}: axis {position} differs"
            call.require(a, "==", b, OpError(codes.WRONG_SHAPE, message, at=i, about=0))
            if isinstance(b, int):
                sizes[position] = b
    return [first.with_shape(tuple(sizes))]


def _concat_reference(a: ConcatAttributes, *arrays: Array) -> Array:
    return np.concatenate(arrays, axis=a.axis)


CONCAT = Operation(
    name="concat",
    operands=(Operand("x", DTYPES, variadic=True),),
    attributes=ConcatAttributes,
    infer=_infer_concat,
    reference=_concat_reference,
    summary="The operands one after another along an axis; their other sizes are equal.",
    source="DML_JOIN_OPERATOR_DESC; ONNX Concat; numpy.concatenate",
    notes=_MOVES,
)


class SplitAttributes(Attributes, frozen=True, kw_only=True):
    axis: Annotated[int, attribute(AxisKind(), "the axis to cut")]
    sizes: Annotated[tuple[Dim, ...], attribute(DimsKind(), "the sizes of the parts; they add up to the axis")]


def _infer_split(call: Inference) -> Sequence[TensorType]:
    a: SplitAttributes = call.attributes
    x = call.type(0)
    if not a.sizes:
        raise OpError(codes.WRONG_ATTRIBUTE, "split needs at least one size", at="sizes")
    total: Dim = 0
    for i, size in enumerate(a.sizes):
        check_size(call, size, ("sizes", i))
        total = total + size
    message = f"the sizes add up to {total}, axis {a.axis} has {counted(x.shape[a.axis], 'element')}"
    call.require(total, "==", x.shape[a.axis], OpError(codes.WRONG_SHAPE, message, at="sizes", about=0))
    return [x.with_shape((*x.shape[: a.axis], size, *x.shape[a.axis + 1 :])) for size in a.sizes]


def _split_reference(a: SplitAttributes, x: Array) -> tuple[Array, ...]:
    cuts = np.cumsum([bound(d) for d in a.sizes])[:-1]
    return tuple(np.split(x, cuts, axis=a.axis))


SPLIT = Operation(
    name="split",
    operands=(Operand("x", DTYPES),),
    attributes=SplitAttributes,
    results=("parts",),
    infer=_infer_split,
    reference=_split_reference,
    summary="x cut along an axis; one result for each size.",
    source="DML_SPLIT_OPERATOR_DESC; ONNX Split; numpy.split",
    notes=_MOVES,
)


#: From here on a start or an end lies beyond every axis, as ONNX exporters write it.
FAR = 2**31 - 1


class OrderedAxesKind(AxesKind):
    """Axes that belong to the elements of other lists, so their order is kept."""

    def convert(self, raw: Any, at: Binding) -> tuple[int, ...]:
        return self.in_order(raw, at)


class SliceAttributes(Attributes, frozen=True, kw_only=True):
    """One start, end and step for each axis.

    Where axes are left out they are the first ones, steps then 1; the record always holds them, sorted by axis.
    """

    starts: Annotated[tuple[Dim, ...], attribute(DimsKind(), "where each axis starts; negative counts from the end")]
    ends: Annotated[
        tuple[Dim, ...], attribute(DimsKind(), "where each axis ends, exclusive; negative counts from the end")
    ]
    axes: Annotated[
        tuple[int, ...] | None, attribute(OrderedAxesKind(), "the axes; without it the first ones", default=None)
    ]
    steps: Annotated[tuple[int, ...] | None, attribute(IntsKind(), "the steps, not 0; without it 1", default=None)]

    def __post_init__(self) -> None:
        axes = tuple(range(len(self.starts))) if self.axes is None else self.axes
        steps = (1,) * len(self.starts) if self.steps is None else self.steps
        columns = (self.starts, self.ends, axes, steps)
        if len({len(column) for column in columns}) == 1:  # else inference says what is wrong
            rows = sorted(zip(*columns, strict=True), key=lambda row: row[2])
            starts, ends, axes, steps = zip(*rows, strict=True) if rows else ((), (), (), ())
            force_setattr(self, "starts", starts)
            force_setattr(self, "ends", ends)
        force_setattr(self, "axes", axes)
        force_setattr(self, "steps", steps)

    def rows(self) -> list[tuple[int, Dim, Dim, int]]:
        """(axis, start, end, step) of each sliced axis."""
        assert self.axes is not None
        assert self.steps is not None
        return list(zip(self.axes, self.starts, self.ends, self.steps, strict=True))


def _infer_slice(call: Inference) -> Sequence[TensorType]:
    a: SliceAttributes = call.attributes
    x = call.type(0)
    for name in ("ends", "axes", "steps"):
        count = len(getattr(a, name))
        if count != len(a.starts):
            message = f"slice has {len(a.starts)} starts and {count} {name}"
            raise OpError(codes.WRONG_ATTRIBUTE, message, at=name, help="give one of each for every axis")
    shape = list(x.shape)
    for i, (axis, start, end, step) in enumerate(a.rows()):
        if axis >= x.rank:
            raise OpError(
                codes.AXIS_OUT_OF_RANGE, f"axis {axis} does not exist: x has {x.rank} axes", at=("starts", i), about=0
            )
        if step == 0:
            raise OpError(codes.WRONG_ATTRIBUTE, "a step of slice cannot be 0", at=("steps", i))
        shape[axis] = _Axis(call, axis, shape[axis]).length(start, end, step)
    return [x.with_shape(tuple(shape))]


class _Axis:
    """One axis that is sliced. The sizes prove whether an end is clamped, or it is left as a condition."""

    def __init__(self, call: Inference, axis: int, size: Dim) -> None:
        self.call = call
        self.axis = axis
        self.size = size

    def length(self, start: Dim, end: Dim, step: int) -> Dim:
        if step > 0:
            first = self._clamp("start", start, 0, self.size)
            last = self._clamp("end", end, 0, self.size)
            return self._count(first, last, step)
        if isinstance(start, int) and start < 0:
            # NumPy takes nothing here and ONNX the first element, so a start before the first one is refused.
            self._require("start", start, 0, self.size + start)
        first = self._clamp("start", start, -1, self.size - 1)
        last = self._clamp("end", end, -1, self.size - 1)
        return self._count(last, first, -step)

    def _clamp(self, what: str, written: Dim, low: int, high: Dim) -> Dim:
        """The place that is meant, between ``low`` and ``high``."""
        place = written
        if isinstance(written, int):
            is_open = not isinstance(self.size, int)
            if is_open and written >= FAR:
                return high
            if is_open and written <= -FAR:
                return low
            if written < 0:
                place = self.size + written
                return self._limit(what, written, place, low, upper=False)
        else:
            # The value of a symbolic place must not decide whether it counts from the end.
            self._require(what, written, 0, written)
        return self._limit(what, written, place, high, upper=True)

    def _limit(self, what: str, written: Dim, place: Dim, limit: Dim, *, upper: bool) -> Dim:
        """``place``, or the limit that it is proved to pass. An open one is required to stay within."""
        small, large = (place, limit) if upper else (limit, place)
        known = self.call.dims.at_most(small, large)
        if known is False or (known is None and self.call.dims.at_most(large, small)):
            return limit
        if known is None:
            self._require(what, written, small, large)
        return place

    def _count(self, first: Dim, last: Dim, step: int) -> Dim:
        """Return the number of steps from ``first`` to before ``last``."""
        known = self.call.dims.at_most(first, last)
        if known is False or (known is None and self.call.dims.at_most(last, first)):
            return 0
        if known is None:
            self._require("end", last, first, last)
        return floordiv(last - first + (step - 1), step)

    def _require(self, what: str, written: Dim, small: Dim, large: Dim) -> None:
        message = f"the {what} {written} of axis {self.axis} is not within its {counted(self.size, 'element')}"
        self.call.require(small, "<=", large, OpError(codes.WRONG_ATTRIBUTE, message, at=f"{what}s", about=0))


def _slice_reference(a: SliceAttributes, x: Array) -> Array:
    index = [slice(None)] * x.ndim
    for axis, start, end, step in a.rows():
        index[axis] = slice(bound(start), bound(end), step)
    return np.asarray(x[tuple(index)])


SLICE = Operation(
    name="slice",
    operands=(Operand("x", DTYPES),),
    attributes=SliceAttributes,
    infer=_infer_slice,
    reference=_slice_reference,
    summary="A part of x: from start to before end by step, along each named axis.",
    source="DML_SLICE1_OPERATOR_DESC; ONNX Slice; NumPy's basic slicing",
    notes={
        "nan": "elements are moved, not computed",
        "bounds": "starts and ends out of range are clamped, as in NumPy, but for a start before the first element "
        "with a negative step, which is refused: NumPy takes nothing there and ONNX the first element; with a symbolic "
        "size, a place that is not proved to lie within becomes a condition that run time checks",
    },
)


class PadAttributes(Attributes, frozen=True, kw_only=True):
    pads: Annotated[tuple[Dim, ...], attribute(DimsKind(), "how many elements: before each axis, then after each axis")]
    value: Annotated[int | float | bool, attribute(NumberKind(), "what to pad with, of x's dtype", default=0)]


def _infer_pad(call: Inference) -> Sequence[TensorType]:
    a: PadAttributes = call.attributes
    x = call.type(0)
    if len(a.pads) != 2 * x.rank:
        raise OpError(
            codes.WRONG_ATTRIBUTE,
            f"pads needs {2 * x.rank} numbers for {x.rank} axes, not {len(a.pads)}",
            at="pads",
            about=0,
            help="first those before each axis, then those after each axis",
        )
    for i, count in enumerate(a.pads):
        message = f"pads cannot be negative: {count}"
        error = OpError(codes.WRONG_ATTRIBUTE, message, at=("pads", i), help="use slice to cut")
        call.require(0, "<=", count, error)
    attribute_array(a.value, x.dtype, "value")
    return [x.with_shape(tuple([d + a.pads[i] + a.pads[x.rank + i] for i, d in enumerate(x.shape)]))]


def _pad_reference(a: PadAttributes, x: Array) -> Array:
    before, after = a.pads[: x.ndim], a.pads[x.ndim :]
    shape = [low + size + high for low, size, high in zip(before, x.shape, after, strict=True)]
    out = np.full(shape, attribute_array(a.value, as_dtype(x.dtype), "value"))
    out[tuple([slice(low, low + size) for low, size in zip(before, x.shape, strict=True)])] = x
    return out


PAD = Operation(
    name="pad",
    operands=(Operand("x", DTYPES),),
    attributes=PadAttributes,
    infer=_infer_pad,
    reference=_pad_reference,
    summary="x with a value around it; pads are the counts before each axis, then those after each axis.",
    source="DML_PADDING_OPERATOR_DESC, DML_PADDING_MODE_CONSTANT; ONNX Pad",
    notes=_MOVES,
)


class TileAttributes(Attributes, frozen=True, kw_only=True):
    repeats: Annotated[tuple[Dim, ...], attribute(DimsKind(), "how often x is repeated along each axis")]


def _infer_tile(call: Inference) -> Sequence[TensorType]:
    x, repeats = call.type(0), call.attributes.repeats
    if len(repeats) != x.rank:
        message = f"repeats needs {x.rank} numbers for {x.rank} axes, not {len(repeats)}"
        raise OpError(codes.WRONG_ATTRIBUTE, message, at="repeats", about=0, help="1 leaves an axis as it is")
    for i, count in enumerate(repeats):
        check_size(call, count, ("repeats", i))
    return [x.with_shape(tuple([size * count for size, count in zip(x.shape, repeats, strict=True)]))]


def _tile_reference(a: TileAttributes, x: Array) -> Array:
    return np.tile(x, [bound(count) for count in a.repeats])


TILE = Operation(
    name="tile",
    operands=(Operand("x", DTYPES),),
    attributes=TileAttributes,
    infer=_infer_tile,
    reference=_tile_reference,
    summary="x repeated along each axis, as a whole.",
    source="DML_TILE_OPERATOR_DESC; ONNX Tile; numpy.tile",
    notes=_MOVES,
)

#: Moves that keep the elements in their order.
RESHAPES: tuple[Operation, ...] = (RESHAPE, SQUEEZE, UNSQUEEZE)
MOVES: tuple[Operation, ...] = (RESHAPE, TRANSPOSE, SQUEEZE, UNSQUEEZE, EXPAND, CONCAT, SPLIT, SLICE, PAD, TILE)
