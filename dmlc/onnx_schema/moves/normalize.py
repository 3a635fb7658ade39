"""Normalizations, softmax and dropout."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import AttributeProto

from dmlc.ir import Array
from dmlc.onnx_schema.moves.draft import Draft, Unmovable, int64
from dmlc.onnx_schema.moves.rows import Row, never

# --- softmax: before opset 13 all axes from axis on are one


def _flat_up(draft: Draft) -> None:
    axis, sizes = draft.pop("axis", 1), draft.sizes(0)
    if sizes is None:
        if axis != -1:
            draft.flatten(axis)
        draft.set("axis", -1)
        return
    long = _long_axes(sizes, axis)
    if len(long) > 1:
        draft.flatten(axis)
        draft.set("axis", -1)
    else:
        draft.set("axis", long[0] if long else axis % max(len(sizes), 1))


def _flat_down(draft: Draft) -> None:
    axis, sizes = draft.pop("axis", -1), draft.sizes(0)
    if axis != -1:
        if sizes is None or _long_axes(sizes, axis) not in ([], [axis % max(len(sizes), 1)]):
            raise Unmovable("all axes from axis on are one before opset 13")
        axis %= max(len(sizes), 1)
    draft.set("axis", axis)


def _long_axes(sizes: Sequence[int | str | None], axis: int) -> list[int]:
    """The axes from ``axis`` on that may have more than one element."""
    return [i for i in range(axis % max(len(sizes), 1), len(sizes)) if sizes[i] != 1]


# --- batch normalization


def _spatial_up(draft: Draft) -> None:
    """With spatial=0 every element of an example has statistics of its own: it is a channel of the flattened data."""
    if draft.pop("spatial", 1):
        return
    draft.trim()
    if len(draft.node.output) > 1:
        raise Unmovable("spatial=0, which was taken out with opset 9, makes statistics as it trains")
    for index in range(1, 5):
        values = draft.known.constant(draft.input(index))
        if values is None:
            all_of_it = draft.new_constant(int64([-1]), "shape")
            draft.set_input(index, draft.add_before("Reshape", [draft.input(index), all_of_it], "flat"))
        else:
            draft.set_constant(index, values.reshape(-1), ("", "scale", "bias", "mean", "var")[index])
    draft.flatten(1)


_TRAINING = "what it computes for training changed with opset 14"


def _training_up(draft: Draft) -> None:
    draft.trim()
    if len(draft.node.output) > 1:
        raise Unmovable(_TRAINING)


def _training_down(draft: Draft) -> None:
    draft.trim()
    if draft.pop("training_mode", 0) or len(draft.node.output) > 1:
        raise Unmovable(_TRAINING)


# --- group normalization: a scale per group, then a scale per channel


def _per_channel_up(draft: Draft) -> None:
    groups, channels = _groups(draft)
    if channels == groups:
        return
    parts = [_values(draft, index, groups) for index in (1, 2)]
    for index, values in enumerate(parts, 1):
        draft.set_constant(index, np.repeat(values, channels // groups), ("", "scale", "bias")[index])


def _groups(draft: Draft) -> tuple[int, int]:
    sizes, groups = draft.sizes(0), draft.get("num_groups")
    channels = sizes[1] if sizes is not None and len(sizes) > 1 else None
    if not isinstance(channels, int) or channels % groups:
        raise Unmovable("scale and bias are one per channel since opset 21, and the number of channels is not known")
    return groups, channels


def _values(draft: Draft, index: int, size: int) -> Array:
    values = draft.constant(index, "the scale or the bias, one per channel since opset 21,")
    if values is None or values.shape != (size,):
        raise Unmovable("scale and bias are one per channel since opset 21")
    return values


# --- mean and variance


def _default_axes(draft: Draft) -> None:
    """ONNX's definition by other operators cannot be typed where they are left out, and inference fails."""
    if not draft.has("axes"):
        draft.set("axes", [0, 2, 3])


# --- dropout


def _mask(draft: Draft) -> None:
    draft.trim()
    if len(draft.node.output) > 1:
        raise Unmovable("its mask is ones since opset 12, and has another type since opset 10")


def _ratio_up(draft: Draft) -> None:
    _mask(draft)
    ratio = draft.pop("ratio")
    if ratio is not None:
        draft.set_constant(1, np.asarray(ratio, np.float32), "ratio")


def _ratio_down(draft: Draft) -> None:
    _mask(draft)
    training = draft.constant(2, "training_mode")
    if training is not None and training.any():
        raise Unmovable("it drops values (training_mode), which it did not before opset 12")
    name = draft.input(1)
    known = [t.name for t in draft.constants if t.name == name] or draft.known.constant(name) is not None
    ratio = draft.constant(1, "ratio") if name and known else None
    draft.pop("seed")
    draft.drop_inputs(1)
    if ratio is not None:  # it has no effect but in training
        draft.set("ratio", float(ratio.reshape(-1)[0]), AttributeProto.FLOAT)


_FLAT = "axis is one axis; before, all from it on were one"
_TRAINED = "training is set by training_mode and has other results"
_PER_CHANNEL = "scale and bias are one per channel, and were one per group"
_DEPRECATED = never("its version before opset 21 is deprecated")
ROWS: tuple[Row, ...] = (
    *[Row(op, 13, _FLAT, _flat_up, _flat_down) for op in ("Softmax", "LogSoftmax", "Hardmax")],
    Row("BatchNormalization", 9, "spatial was taken out, as 1", _spatial_up),
    Row("BatchNormalization", 14, _TRAINED, _training_up, _training_down),
    Row("GroupNormalization", 21, _PER_CHANNEL, _per_channel_up, _DEPRECATED),
    Row("MeanVarianceNormalization", 13, "its definition needs axes to be given", _default_axes),
    Row("Dropout", 10, "the mask is bool and was of the type of the data", _mask),
    Row("Dropout", 12, "ratio is an input; the mask is all ones, which was not said", _ratio_up, _ratio_down),
)
