"""Normalisation along axes: softmax and its logarithm, mean and variance, layer, RMS and Lp."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.ir import (
    FLOATS,
    Array,
    Attributes,
    DimTable,
    DType,
    Inference,
    Operand,
    Operation,
    OpError,
    Shape,
    TensorType,
)
from dmlc.ir.dtype import f64
from dmlc.ops.attributes import AxesKind, AxisKind, FlagKind, IntKind, RealKind, attribute
from dmlc.ops.literals import quiet
from dmlc.ops.rules import broadcast, same_type


class SoftmaxAttributes(Attributes, frozen=True, kw_only=True):
    axes: Annotated[tuple[int, ...], attribute(AxesKind(), "the axes to normalize over together", default=-1)]


def _shifted(x: Array, axes: tuple[int, ...]) -> Any:
    return x - np.max(x, axis=axes, keepdims=True, initial=-np.inf)


def _softmax(a: SoftmaxAttributes, x: Array) -> Any:
    powers = np.exp(_shifted(x, a.axes))
    return powers / np.sum(powers, axis=a.axes, keepdims=True)


def _log_softmax(a: SoftmaxAttributes, x: Array) -> Any:
    shifted = _shifted(x, a.axes)
    return shifted - np.log(np.sum(np.exp(shifted), axis=a.axes, keepdims=True))


_SOFTMAX_NOTES = {
    "nan": "a NaN or +inf in a group makes all of it NaN, as does a group of -inf only",
    "overflow": "none inside: the maximum is taken out first; f16 is computed in f32",
    "empty": "an empty result",
}

SOFTMAX = Operation(
    name="softmax",
    operands=(Operand("x", FLOATS),),
    attributes=SoftmaxAttributes,
    infer=same_type,
    reference=quiet(_softmax),
    summary="exp(x) over its sum, over the axes together.",
    source="DML_ACTIVATION_SOFTMAX1_OPERATOR_DESC; ONNX Softmax-13 (one axis)",
    notes=_SOFTMAX_NOTES,
)

LOG_SOFTMAX = Operation(
    name="log_softmax",
    operands=(Operand("x", FLOATS),),
    attributes=SoftmaxAttributes,
    infer=same_type,
    reference=quiet(_log_softmax),
    summary="The logarithm of softmax, over the axes together.",
    source="DML_ACTIVATION_LOG_SOFTMAX1_OPERATOR_DESC; ONNX LogSoftmax-13 (one axis)",
    notes=_SOFTMAX_NOTES,
)


def has_sound_kernel(op: Operation, dtype: DType, dims: DimTable) -> bool:
    """Return whether ONNX's own softmax gives what the language says.

    ONNX Runtime's LogSoftmax of f64 leaves -inf beside a +inf, where all is NaN. An imported model has what its runtime
    does.
    """
    return not (op is LOG_SOFTMAX and dtype is f64 and dims.least > 0)


def _mean(x: Array, axes: tuple[int, ...]) -> Any:
    count = int(np.prod([x.shape[i] for i in axes], dtype=np.int64))
    return np.divide(np.sum(x, axis=axes, keepdims=True, dtype=x.dtype), x.dtype.type(count))


class MeanVarianceAttributes(Attributes, frozen=True, kw_only=True):
    axes: Annotated[tuple[int, ...], attribute(AxesKind(), "the axes to normalize over together")]
    epsilon: Annotated[float, attribute(RealKind(), "added to the variance", default=1e-5)]
    variance: Annotated[bool, attribute(FlagKind(), "also divide by the deviation; false only centres", default=True)]


def _mean_variance_norm(a: MeanVarianceAttributes, x: Array) -> Any:
    centred = x - _mean(x, a.axes)
    if not a.variance:
        return centred
    return centred / np.sqrt(_mean(centred * centred, a.axes) + x.dtype.type(a.epsilon))


_NORM_NOTES = {
    "nan": "a NaN or infinity in a group makes all of it NaN",
    "overflow": "f16 is computed in f32",
    "empty": "an empty result",
}

MEAN_VARIANCE_NORM = Operation(
    name="mean_variance_norm",
    title="MeanVarianceNormalization",
    operands=(Operand("x", FLOATS),),
    attributes=MeanVarianceAttributes,
    infer=same_type,
    reference=quiet(_mean_variance_norm),
    summary="(x - mean) / sqrt(variance + epsilon) over the axes together; the variance is the population's.",
    source="DML_MEAN_VARIANCE_NORMALIZATION1_OPERATOR_DESC",
    notes={
        **_NORM_NOTES,
        "epsilon on ONNX Runtime CPU": "its MeanVarianceNormalization adds none: "
        "a group of equal numbers gives NaN there",
    },
)


_LARGER_GROUPS = {"one element on ONNX Runtime CPU": "up to 1.23 a group of one element is a run-time error"}


class NormAttributes(Attributes, frozen=True, kw_only=True):
    axis: Annotated[
        int, attribute(AxisKind(), "the first of the axes to normalize over, which go on to the last", default=-1)
    ]
    epsilon: Annotated[float, attribute(RealKind(), "added under the root", default=1e-5)]


def _infer_affine(call: Inference) -> Sequence[TensorType]:
    """``scale`` and ``bias`` broadcast to the normalized axes of x, and not beyond."""
    x = call.type(0)
    group = x.shape[call.attributes.axis :]
    for i in range(1, len(call.types)):
        if call.types[i] is not None:
            _check_affine(call, group, i)
    return [x]


def _check_affine(call: Inference, group: Shape, index: int) -> None:
    shape = call.type(index).shape
    reached = broadcast(call, (group, shape))
    fits = len(reached) == len(group) and all(call.dims.equal(a, b) for a, b in zip(reached, group, strict=True))
    if not fits:
        raise OpError(
            codes.DOES_NOT_BROADCAST,
            f"{call.type(index)} does not broadcast to the normalized axes [{', '.join(map(str, group))}]",
            at=index,
            about=0,
            help="it may have the sizes of the normalized axes, or 1",
        )


def _trailing(x: Array, axis: int) -> tuple[int, ...]:
    return tuple(range(axis, x.ndim))


def _layer_norm(a: NormAttributes, x: Array, scale: Array, bias: Array | None = None) -> Any:
    axes = _trailing(x, a.axis)
    centred = x - _mean(x, axes)
    out = centred / np.sqrt(_mean(centred * centred, axes) + x.dtype.type(a.epsilon)) * scale
    return out if bias is None else out + bias


def _rms_norm(a: NormAttributes, x: Array, scale: Array) -> Any:
    return x / np.sqrt(_mean(x * x, _trailing(x, a.axis)) + x.dtype.type(a.epsilon)) * scale


LAYER_NORM = Operation(
    name="layer_norm",
    title="LayerNormalization",
    operands=(Operand("x", FLOATS), Operand("scale", FLOATS), Operand("bias", FLOATS, optional=True)),
    attributes=NormAttributes,
    infer=_infer_affine,
    reference=quiet(_layer_norm),
    summary="(x - mean) / sqrt(variance + epsilon) * scale + bias, over the axes from `axis` to the last.",
    source="ONNX LayerNormalization-17; DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC",
    notes={
        **_NORM_NOTES,
        "operands": "scale and bias broadcast to the normalized axes; bias may be left out",
        **_LARGER_GROUPS,
    },
)

RMS_NORM = Operation(
    name="rms_norm",
    title="RMSNormalization",
    operands=(Operand("x", FLOATS), Operand("scale", FLOATS)),
    attributes=NormAttributes,
    infer=_infer_affine,
    reference=quiet(_rms_norm),
    summary="x / sqrt(mean of squares + epsilon) * scale, over the axes from `axis` to the last.",
    source="ONNX RMSNormalization-23; DML_MEAN_VARIANCE_NORMALIZATION2_OPERATOR_DESC without UseMean",
    notes={
        **_NORM_NOTES,
        "nan": "a NaN in a group makes all of it NaN",
        "operands": "scale broadcasts to the normalized axes",
        **_LARGER_GROUPS,
    },
)


class LpNormAttributes(Attributes, frozen=True, kw_only=True):
    axis: Annotated[int, attribute(AxisKind(), "the axis to normalize over", default=-1)]
    p: Annotated[int, attribute(IntKind(), "1 for the sum of absolute values, 2 for the Euclidean length", default=2)]


def _infer_lp(call: Inference) -> Sequence[TensorType]:
    p = call.attributes.p
    if p not in (1, 2):
        raise OpError(codes.WRONG_ATTRIBUTE, f"p must be 1 or 2, not {p}", at="p")
    return [call.type(0)]


def _lp_norm(a: LpNormAttributes, x: Array) -> Any:
    if a.p == 1:
        norm = np.sum(np.abs(x), axis=a.axis, keepdims=True)
    else:
        norm = np.sqrt(np.sum(x * x, axis=a.axis, keepdims=True))
    return np.where(norm == 0, x.dtype.type(0), x / norm)


LP_NORM = Operation(
    name="lp_norm",
    title="LpNormalization",
    operands=(Operand("x", FLOATS),),
    attributes=LpNormAttributes,
    infer=_infer_lp,
    reference=quiet(_lp_norm),
    summary="x over its norm along an axis.",
    source="DML_LP_NORMALIZATION_OPERATOR_DESC; ONNX LpNormalization",
    notes={
        "nan": "a NaN in a row makes all of it NaN",
        "overflow": "f16 is computed in f32",
        "zero row": "a row of zeros stays zero, as ONNX says",
        "empty": "an empty result",
    },
)

NORMALIZATIONS: tuple[Operation, ...] = (SOFTMAX, LOG_SOFTMAX, MEAN_VARIANCE_NORM, LAYER_NORM, RMS_NORM, LP_NORM)
