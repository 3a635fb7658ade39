"""Selection: argmax, argmin, top_k, hardmax. The four DirectML operators the project was born from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from dmlc.diagnostics import proposal
from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.diagnostics.counted import counted
from dmlc.ir import (
    FLOATS,
    INDEX,
    NUMERIC,
    Array,
    Attributes,
    Dim,
    DType,
    Inference,
    InferRule,
    Operand,
    Operation,
    OpError,
    TensorType,
)
from dmlc.ir.dtype import u32
from dmlc.ops.attributes import ALL, AxesKind, AxisKind, DimKind, DTypeKind, FlagKind, Synonym, WordKind, attribute
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_MIN, Reduction
from dmlc.ops.rules import check_selection, reduced_shape


class ArgAttributes(Attributes, frozen=True, kw_only=True):
    """``axes`` sorted; the index is row-major over them in ascending order."""

    axes: Annotated[tuple[int, ...], attribute(AxesKind(), "the axes to reduce together", default=ALL)]
    ties: Annotated[
        str,
        attribute(
            WordKind("first", "last"),
            "which of equal elements wins",
            default="first",
            synonym=Synonym("axis_direction", {"increasing": "first", "decreasing": "last"}),
        ),
    ]
    dtype: Annotated[DType, attribute(DTypeKind(INDEX), "the index type", default=u32)]
    keepdims: Annotated[bool, attribute(FlagKind(), "keep the axes as size 1", default=True)]


def _infer_arg(op: str) -> InferRule:
    def infer(call: Inference) -> Sequence[TensorType]:
        a: ArgAttributes = call.attributes
        check_selection(call, a.axes, op)
        return [TensorType(a.dtype, reduced_shape(call.type(0).shape, a.axes, a.keepdims))]

    return infer


def _flat_groups(x: Array, axes: tuple[int, ...]) -> Array:
    """The elements of each group along a last axis, row-major over ``axes`` in ascending order."""
    kept = [i for i in range(x.ndim) if i not in axes]
    moved = np.transpose(x, [*kept, *axes])
    # The last size is spelled out: NumPy cannot find a -1 beside a size of 0.
    return moved.reshape([*[x.shape[i] for i in kept], math.prod(x.shape[i] for i in axes)])


def _arg_reference(chooser: Any) -> Any:
    def reference(a: ArgAttributes, x: Array) -> Array:
        flat = _flat_groups(x, a.axes)
        if a.ties == "last":
            index = flat.shape[-1] - 1 - chooser(flat[..., ::-1], axis=-1)
        else:
            index = chooser(flat, axis=-1)
        shape = reduced_shape(x.shape, a.axes, a.keepdims)
        return np.asarray(index).astype(a.dtype.numpy).reshape([int(str(d)) for d in shape])

    return reference


_ARG_NOTES = {
    "ties": "the first or the last of equal elements, as `ties` says; -0 equals +0",
    "nan": "which element wins is unspecified where a NaN is among them; the index stays in range. "
    "The reference does as NumPy (the first NaN wins)",
    "nan on DirectML": "a NaN never wins, except that one at the first place of its group always does",
    "nan on ONNX Runtime CPU": "the first NaN of a vector wins, a NaN inside a row of a matrix may not",
    "empty": "an error",
}

ARGMAX = Operation(
    name="argmax",
    title="ArgMax",
    operands=(Operand("x", NUMERIC),),
    attributes=ArgAttributes,
    results=("index",),
    infer=_infer_arg("argmax"),
    reference=_arg_reference(np.argmax),
    summary="The row-major index of the largest element over the axes together.",
    source="DML_ARGMAX_OPERATOR_DESC; ONNX ArgMax",
    notes=_ARG_NOTES,
)

ARGMIN = Operation(
    name="argmin",
    title="ArgMin",
    operands=(Operand("x", NUMERIC),),
    attributes=ArgAttributes,
    results=("index",),
    infer=_infer_arg("argmin"),
    reference=_arg_reference(np.argmin),
    summary="The row-major index of the smallest element over the axes together.",
    source="DML_ARGMIN_OPERATOR_DESC; ONNX ArgMin",
    notes=_ARG_NOTES,
)


class TopKAttributes(Attributes, frozen=True, kw_only=True):
    k: Annotated[Dim, attribute(DimKind(), "how many, 1 to the length of the axis")]
    axis: Annotated[int, attribute(AxisKind(), "the axis to reduce", default=-1)]
    order: Annotated[
        str,
        attribute(
            WordKind("largest", "smallest"),
            "which end, and the order of the values",
            default="largest",
            synonym=Synonym("axis_direction", {"decreasing": "largest", "increasing": "smallest"}),
        ),
    ]
    dtype: Annotated[DType, attribute(DTypeKind(INDEX), "the index type", default=u32)]


def _infer_top_k(call: Inference) -> list[TensorType]:
    a: TopKAttributes = call.attributes
    x = call.type(0)
    if x.rank == 0:
        check_selection(call, (), "top_k")
    size = x.shape[a.axis]
    call.require(1, "<=", a.k, OpError(codes.K_OUT_OF_RANGE, f"k is {a.k}, it must be 1 or more", at="k"))
    check_selection(call, (a.axis,), "top_k")
    message = f"k is {a.k}, axis {a.axis} has {counted(size, 'element')}"
    help = proposal(f"k is at most {size}", str(size))
    error = OpError(codes.K_OUT_OF_RANGE, message, at="k", under="too large", about=0, help=help)
    call.require(a.k, "<=", size, error)
    shape = tuple([a.k if i == a.axis else d for i, d in enumerate(x.shape)])
    return [TensorType(x.dtype, shape), TensorType(a.dtype, shape)]


def _top_k_reference(a: TopKAttributes, x: Array) -> tuple[Array, Array]:
    moved = np.moveaxis(x, a.axis, -1)
    if a.order == "largest":
        # A stable ascending sort of the reversed row, read backwards: descending, ties by ascending index.
        backwards = np.argsort(moved[..., ::-1], axis=-1, kind="stable")[..., ::-1]
        order = moved.shape[-1] - 1 - backwards
    else:
        order = np.argsort(moved, axis=-1, kind="stable")
    index = order[..., : int(str(a.k))]
    values = np.take_along_axis(moved, index, axis=-1)
    return np.moveaxis(values, -1, a.axis), np.moveaxis(index, -1, a.axis).astype(a.dtype.numpy)


TOP_K = Operation(
    name="top_k",
    operands=(Operand("x", NUMERIC),),
    attributes=TopKAttributes,
    results=("values", "indices"),
    infer=_infer_top_k,
    reference=_top_k_reference,
    summary="The k largest or smallest elements along an axis, in that order, and their indices.",
    source="DML_TOP_K1_OPERATOR_DESC; ONNX TopK",
    notes={
        "ties": "equal values by ascending index, in both orders; -0 equals +0",
        "nan": "where a NaN is placed is unspecified; indices stay in range. "
        "The reference does as NumPy sorts (NaN largest)",
        "nan on DirectML": "the order around a NaN is lost; a number may be missing from the result",
        "nan on ONNX Runtime CPU": "a NaN may come first in both orders",
        "empty": "an error",
    },
)


class HardmaxAttributes(Attributes, frozen=True, kw_only=True):
    axes: Annotated[tuple[int, ...], attribute(AxesKind(), "the axes to reduce together", default=-1)]


def _infer_hardmax(call: Inference) -> list[TensorType]:
    check_selection(call, call.attributes.axes, "hardmax")
    return [call.type(0)]


def _hardmax_reference(a: HardmaxAttributes, x: Array) -> Array:
    flat = _flat_groups(x, a.axes)
    winners = np.argmax(flat, axis=-1)
    hot = (np.arange(flat.shape[-1]) == winners[..., None]).astype(x.dtype)
    kept = [i for i in range(x.ndim) if i not in a.axes]
    order = [*kept, *a.axes]
    return np.ascontiguousarray(np.transpose(hot.reshape([x.shape[i] for i in order]), np.argsort(order)))


#: The reduction that gives the element whose index a search gives.
EXTREME_OF: dict[Operation, Reduction] = {ARGMAX: REDUCE_MAX, ARGMIN: REDUCE_MIN}

HARDMAX = Operation(
    name="hardmax",
    operands=(Operand("x", FLOATS),),
    attributes=HardmaxAttributes,
    infer=_infer_hardmax,
    reference=_hardmax_reference,
    summary="1 at the first maximum over the axes together, 0 elsewhere.",
    source="DML_ACTIVATION_HARDMAX1_OPERATOR_DESC; ONNX Hardmax",
    notes={
        "ties": "the first maximum",
        "nan": "which element is 1 is unspecified where a NaN is among them; at most one per group is",
        "nan on DirectML": "the element that its argmax chooses",
        "nan on ONNX Runtime CPU": "all zeros where the group starts with a NaN",
        "empty": "an error",
    },
)

SELECTIONS: tuple[Operation, ...] = (ARGMAX, ARGMIN, TOP_K, HARDMAX)
