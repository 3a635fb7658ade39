"""Operations on indices, and tensors made from attributes alone."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Annotated, Any

import numpy as np

from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.diagnostics.counted import counted
from dmlc.ir import (
    DTYPES,
    INDEX,
    NUMERIC,
    Array,
    Attributes,
    Dim,
    DimExpr,
    DType,
    Inference,
    Operand,
    Operation,
    OpError,
    TensorType,
)
from dmlc.ir.dtype import f32
from dmlc.ops.attributes import AxisKind, Binding, DimKind, DimsKind, DTypeKind, IntKind, NumberKind, ValueOf, attribute
from dmlc.ops.literals import attribute_array
from dmlc.ops.rules import beyond_i64, bound, check_size


class IndexAttributes(Attributes, frozen=True, kw_only=True):
    axis: Annotated[int, attribute(AxisKind(), "the axis of x that the indices count along", default=0)]


_INDEX_NOTES = {
    "indices": "negative ones count from the end; out of range is unspecified (the reference clamps)",
    "indices on ONNX Runtime CPU": "out of range is a run-time error",
    "nan": "elements are moved, not computed",
}


_ELEMENT_NOTES = {
    **_INDEX_NOTES,
    "sizes": "away from the axis the indices may be smaller than x, as in ONNX; DirectML wants them equal",
}


def _wrapped(i: Array, size: int) -> Array:
    """Indices of 0 to ``size - 1``: negative ones count from the end, the rest is clamped."""
    i = i.astype(np.int64)
    return np.clip(np.where(i < 0, i + size, i), 0, max(size - 1, 0))


class GatherAttributes(IndexAttributes, frozen=True, kw_only=True):
    axis: Annotated[
        int,
        attribute(
            AxisKind(),
            "the axis of x that the indices count along, not below batch_axes",
            default=ValueOf("batch_axes"),
        ),
    ]
    batch_axes: Annotated[int, attribute(IntKind(), "how many first axes of x and i run together", default=0)]


def _infer_gather(call: Inference) -> Sequence[TensorType]:
    a: GatherAttributes = call.attributes
    x, i, batch = call.type(0), call.type(1), a.batch_axes
    if not 0 <= batch <= i.rank:
        message = f"batch_axes is {batch}, the indices have {i.rank} {'axis' if i.rank == 1 else 'axes'}"
        raise OpError(codes.WRONG_ATTRIBUTE, message, at="batch_axes", about=1)
    if a.axis < batch:
        message = f"axis {a.axis} is one of the first {batch}, which run together"
        raise OpError(codes.WRONG_ATTRIBUTE, message, at="axis", about=0, help=f"write axis={batch} or a later one")
    for axis in range(batch):
        message = f"axis {axis} runs together, and has {x.shape[axis]} elements in x, {i.shape[axis]} in the indices"
        error = OpError(codes.WRONG_SHAPE, message, at=1, about=0)
        call.require(x.shape[axis], "==", i.shape[axis], error)
    return [x.with_shape((*x.shape[: a.axis], *i.shape[batch:], *x.shape[a.axis + 1 :]))]


def _gather_reference(a: GatherAttributes, x: Array, i: Array) -> Array:
    shape = (*x.shape[: a.axis], *i.shape[a.batch_axes :], *x.shape[a.axis + 1 :])
    if x.shape[a.axis] == 0:  # every index is out of range
        return np.zeros(shape, dtype=x.dtype)
    out = np.empty(shape, dtype=x.dtype)
    for at in np.ndindex(x.shape[: a.batch_axes]):
        out[at] = np.take(x[at], _wrapped(i[at], x.shape[a.axis]), axis=a.axis - a.batch_axes)
    return out


GATHER = Operation(
    name="gather",
    operands=(Operand("x", DTYPES), Operand("i", INDEX, group="I")),
    attributes=GatherAttributes,
    infer=_infer_gather,
    reference=_gather_reference,
    summary="The slices of x at the indices: the axis is replaced by the axes of i, but for the batch axes.",
    source="DML_GATHER_OPERATOR_DESC, DML_GATHER_ND1_OPERATOR_DESC; ONNX Gather, GatherND-12; numpy.take",
    notes={**_INDEX_NOTES, "batch_axes": "the result is x.shape[:axis] + i.shape[batch_axes:] + x.shape[axis + 1:]"},
)


def _check_indices(call: Inference, op: str) -> None:
    """``i`` has the rank of ``x`` and is not larger, but along ``axis``. Raises E0317."""
    x, i = call.type(0), call.type(1)
    if x.rank != i.rank:
        raise OpError(codes.WRONG_SHAPE, f"{op} needs indices of rank {x.rank}, as x, not {i.rank}", at=1, about=0)
    for axis, (index_size, size) in enumerate(zip(i.shape, x.shape, strict=True)):
        if axis != call.attributes.axis:
            message = f"axis {axis} of the indices has {counted(index_size, 'element')}, x has {size}"
            call.require(index_size, "<=", size, OpError(codes.WRONG_SHAPE, message, at=1, about=0))


def _infer_gather_elements(call: Inference) -> Sequence[TensorType]:
    _check_indices(call, "gather_elements")
    return [call.type(0).with_shape(call.type(1).shape)]


def _positions(i: Array, axis: int, size: int) -> tuple[Array, ...]:
    """The coordinates in x of each element of ``i``."""
    own: list[Array] = [*np.indices(i.shape)]
    return (*own[:axis], _wrapped(i, size), *own[axis + 1 :])


def _gather_elements_reference(a: IndexAttributes, x: Array, i: Array) -> Array:
    if x.shape[a.axis] == 0:
        return np.zeros(i.shape, dtype=x.dtype)
    return np.asarray(x[_positions(i, a.axis, x.shape[a.axis])])


GATHER_ELEMENTS = Operation(
    name="gather_elements",
    operands=(Operand("x", DTYPES), Operand("i", INDEX, group="I")),
    attributes=IndexAttributes,
    infer=_infer_gather_elements,
    reference=_gather_elements_reference,
    summary="For each index the element of x at its own place, but for the axis, where the index says.",
    source="DML_GATHER_ELEMENTS_OPERATOR_DESC; ONNX GatherElements; numpy.take_along_axis",
    notes=_ELEMENT_NOTES,
)


def _infer_scatter_elements(call: Inference) -> Sequence[TensorType]:
    x, i, updates = call.type(0), call.type(1), call.type(2)
    _check_indices(call, "scatter_elements")
    error = OpError(
        codes.WRONG_SHAPE, f"updates is {updates}, the indices are {i}: their shapes must be equal", at=2, about=1
    )
    if updates.rank != i.rank:
        raise error
    for have, want in zip(updates.shape, i.shape, strict=True):
        call.require(have, "==", want, error)
    return [x]


def _scatter_elements_reference(a: IndexAttributes, x: Array, i: Array, updates: Array) -> Array:
    out: Array = x.copy()
    if x.shape[a.axis]:
        out[_positions(i, a.axis, x.shape[a.axis])] = updates
    return out


SCATTER_ELEMENTS = Operation(
    name="scatter_elements",
    operands=(Operand("x", DTYPES), Operand("i", INDEX, group="I"), Operand("updates", DTYPES)),
    attributes=IndexAttributes,
    infer=_infer_scatter_elements,
    reference=_scatter_elements_reference,
    summary="x with the updates put at the places that gather_elements would read.",
    source="DML_SCATTER_OPERATOR_DESC; ONNX ScatterElements; numpy.put_along_axis",
    notes={**_ELEMENT_NOTES, "ties": "which of several updates of one place wins is unspecified"},
)


class OneHotAttributes(Attributes, frozen=True, kw_only=True):
    depth: Annotated[Dim, attribute(DimKind(), "the length of the new axis, 1 or more")]
    axis: Annotated[int, attribute(AxisKind(extra=1), "the position of the new axis in the result", default=-1)]
    on: Annotated[int | float | bool, attribute(NumberKind(), "the value at the index", default=1)]
    off: Annotated[int | float | bool, attribute(NumberKind(), "the value elsewhere", default=0)]
    dtype: Annotated[DType, attribute(DTypeKind(DTYPES), "the dtype of the result", default=f32)]


def _infer_one_hot(call: Inference) -> Sequence[TensorType]:
    a: OneHotAttributes = call.attributes
    i = call.type(0)
    check_size(call, a.depth, "depth")
    call.require(
        1, "<=", a.depth, OpError(codes.WRONG_ATTRIBUTE, f"depth is {a.depth}, it must be 1 or more", at="depth")
    )
    for name, value in (("on", a.on), ("off", a.off)):
        attribute_array(value, a.dtype, name)
    return [TensorType(a.dtype, (*i.shape[: a.axis], a.depth, *i.shape[a.axis :]))]


def _one_hot_reference(a: OneHotAttributes, i: Array) -> Array:
    depth = bound(a.depth)
    wide = i.astype(np.int64)
    # A negative u64 here is an index beyond i64, which is out of range; what stays negative matches no place.
    index = np.where(wide < 0, wide + depth, wide) if i.dtype.kind == "i" else wide
    hot = np.expand_dims(index, a.axis) == np.arange(depth).reshape([-1] + [1] * (i.ndim - a.axis))
    return np.asarray(np.where(hot, attribute_array(a.on, a.dtype, "on"), attribute_array(a.off, a.dtype, "off")))


ONE_HOT = Operation(
    name="one_hot",
    operands=(Operand("indices", INDEX, group="I"),),
    attributes=OneHotAttributes,
    infer=_infer_one_hot,
    reference=_one_hot_reference,
    summary="A new axis that holds `on` at the index and `off` elsewhere.",
    source="DML_ONE_HOT_OPERATOR_DESC; ONNX OneHot",
    notes={"indices": "-depth to -1 count from the end; out of range gives `off` everywhere"},
)


class IotaAttributes(Attributes, frozen=True, kw_only=True):
    length: Annotated[Dim, attribute(DimKind(), "how many numbers")]
    dtype: Annotated[DType, attribute(DTypeKind(NUMERIC), "their dtype")]


def _infer_iota(call: Inference) -> Sequence[TensorType]:
    a: IotaAttributes = call.attributes
    check_size(call, a.length, "length")
    if a.dtype.is_integer and call.dims.at_most(a.length, int(a.dtype.highest) + 1) is False:
        raise OpError(
            codes.LITERAL_DOES_NOT_FIT,
            f"{a.length} numbers from 0 do not fit {a.dtype.name}: its largest is {a.dtype.highest}",
            at="length",
        )
    return [TensorType(a.dtype, (a.length,))]


def _iota_reference(a: IotaAttributes) -> Array:
    with np.errstate(all="ignore"):
        return np.arange(bound(a.length)).astype(a.dtype.numpy)


IOTA = Operation(
    name="iota",
    title="Range",
    operands=(),
    attributes=IotaAttributes,
    infer=_infer_iota,
    reference=_iota_reference,
    summary="The numbers 0, 1, 2 and so on.",
    source="DML_FILL_VALUE_SEQUENCE_OPERATOR_DESC; ONNX Range; numpy.arange",
    notes={
        "overflow": "a length known to exceed an integer dtype is an error, else integers wrap modulo 2^n; "
        "floats round to the nearest even",
        "empty": "length 0 gives an empty tensor",
    },
)


class ElementKind(NumberKind):
    """A number, or a size."""

    spelling = "number"
    hint = "float | DimExpr"

    def convert(self, raw: Any, at: Binding) -> Any:
        return raw if isinstance(raw, DimExpr) else super().convert(raw, at)


class FullAttributes(Attributes, frozen=True, kw_only=True):
    shape: Annotated[tuple[Dim, ...], attribute(DimsKind(), "the sizes; [] makes a scalar")]
    value: Annotated[int | float | bool | DimExpr, attribute(ElementKind(), "what every element is")]
    dtype: Annotated[DType, attribute(DTypeKind(DTYPES), "the dtype")]


def _infer_full(call: Inference) -> Sequence[TensorType]:
    a: FullAttributes = call.attributes
    for i, size in enumerate(a.shape):
        check_size(call, size, ("shape", i))
    if isinstance(a.value, DimExpr):
        _check_fit(call, a.value, a.dtype)
    else:
        attribute_array(a.value, a.dtype, "value")
    return [TensorType(a.dtype, a.shape)]


def _check_fit(call: Inference, size: DimExpr, dtype: DType) -> None:
    """Prove that a size fits the dtype, or leave it to run time. Every size fits types of 32 bits and more.

    Raises E0311.
    """
    if dtype.kind == "bool":
        message = f"{size} does not fit bool: a size is not a truth value"
        raise OpError(codes.LITERAL_DOES_NOT_FIT, message, at="value", under="a size", help=f"write {size} as bool")
    number = beyond_i64(size)
    if number is not None:
        raise OpError(codes.LITERAL_DOES_NOT_FIT, f"{number} does not fit the 64 bits of a size", at="value")
    for divisor in size.divisors():
        zero = OpError(codes.DIVISION_BY_ZERO, f"{size} divides by {divisor}, which is 0", at="value")
        call.require(1, "<=", divisor, zero)
    highest = int(np.finfo(dtype.numpy).max) if dtype.is_float else int(dtype.highest)
    lowest = -highest if dtype.is_float else int(dtype.lowest)
    misfit = f"{size} does not fit {dtype.name}: its range is {lowest} to {highest}"
    error = OpError(codes.LITERAL_DOES_NOT_FIT, misfit, at="value", under="it does not fit")
    if dtype.bits < 32:
        call.require(size, "<=", highest, error)
    if dtype.bits < 32 or lowest == 0:
        call.require(lowest, "<=", size, error)


def full_value(a: FullAttributes) -> Array:
    """Return the element of a ``full`` whose dims are all bound, as a 0-d array. Raises ``OpError`` E0311."""
    assert not isinstance(a.value, DimExpr)
    return attribute_array(a.value, a.dtype, "value")


def _full_reference(a: FullAttributes) -> Array:
    return np.full([bound(d) for d in a.shape], full_value(a))


FULL = Operation(
    name="full",
    title="ConstantOfShape",
    operands=(),
    attributes=FullAttributes,
    infer=_infer_full,
    reference=_full_reference,
    summary="A tensor whose elements are all one value.",
    source="DML_FILL_VALUE_CONSTANT_OPERATOR_DESC; ONNX ConstantOfShape; numpy.full",
    notes={
        "overflow": "a value that does not fit the dtype is an error; a size of which that is not proved is a condition"
    },
)

#: Fills and ranges of no more elements are written as data: what depends on it can be computed while compiling.
MOST_FILLED = 2**12


def is_written(shape: Sequence[Dim]) -> bool:
    """Return whether a fill or a range of that shape is written as data."""
    sizes = [size for size in shape if isinstance(size, int)]
    return len(sizes) == len(shape) and prod(sizes) <= MOST_FILLED


INDEXING: tuple[Operation, ...] = (GATHER, GATHER_ELEMENTS, SCATTER_ELEMENTS, ONE_HOT, IOTA, FULL)
