"""Rows of pools, Resize, norms and other operators."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import AttributeProto, TensorProto, numpy_helper

from dmlc.ir import Array
from dmlc.onnx_schema.moves.draft import Draft, Row, Step, Unmovable, count, int64, never

# --- Pools: how windows that hang over the data are counted, and how many of them there are

#: Measured: onnxruntime 1.23 and 1.24 differ below and from opset 19 on where the pads are not all the same or
#: windows hang over them (ceil_mode); 1.31 gives one result.
_HANGING = "what count_include_pad counts where windows hang over the padding"
_CEILING = "a window that begins behind the data is not counted by ONNX's inference, and was before"


def _hanging(draft: Draft) -> None:
    if not draft.get("count_include_pad", 0):
        return
    uneven = len(set(draft.get("pads", []))) > 1 or draft.get("auto_pad", "NOTSET").startswith("SAME")
    if uneven or (draft.get("ceil_mode", 0) and not _fits(draft)):
        raise Unmovable("windows that hang over uneven padding are averaged differently since opset 19")


def _fits(draft: Draft) -> bool:
    """Return whether the sizes are known to be such that no window hangs over the padding."""
    kernel, sizes = draft.get("kernel_shape"), draft.sizes(0)
    axes = len(kernel)
    pads, steps = draft.get("pads", [0] * (2 * axes)), draft.get("strides", [1] * axes)
    for axis, size in enumerate((sizes or [None] * (axes + 2))[2:]):
        width = (kernel[axis] - 1) * draft.get("dilations", [1] * axes)[axis] + 1
        if not isinstance(size, int) or (size + pads[axis] + pads[axis + axes] - width) % steps[axis]:
            return False
    return True


def _ceiling_down(draft: Draft) -> None:
    """No runtime computes a window that begins behind the data, but before opset 22 ONNX's inference counted it. Where
    that would contradict the result's declared shape, floors are taken of sizes that are padded at their ends."""
    if not draft.get("ceil_mode", 0):
        return
    kernel, auto_pad = draft.get("kernel_shape", []), draft.get("auto_pad", "NOTSET")
    if auto_pad.startswith("SAME"):  # the strides alone decide
        if set(draft.get("dilations", [])) - {1}:
            raise Unmovable("ONNX Runtime counts dilated windows otherwise without ceil_mode")
        draft.pop("ceil_mode")
        return
    sizes, axes = draft.sizes(0), len(kernel)
    if sizes is None or not any(_is_miscounted(draft, axis, sizes[axis + 2]) for axis in range(axes)):
        return
    if draft.get("count_include_pad", 0):
        raise Unmovable(f"{_CEILING}; padding that is counted cannot make up for it")
    pads = draft.get("pads", [0] * (2 * axes))
    for axis in range(axes):
        size = sizes[axis + 2]
        if not isinstance(size, int):
            raise Unmovable(f"{_CEILING}, and the size of an axis is not known")
        windows, _, step, width = _windows(draft, axis, size)
        end = (windows - 1) * step + width - size - pads[axis]
        if end >= kernel[axis]:
            raise Unmovable(f"{_CEILING}, and the padding that says it would be as long as the kernel")
        pads[axis + axes] = max(pads[axis + axes], end)
    for name in ("ceil_mode", "auto_pad"):
        draft.pop(name)
    draft.set("pads", pads)


def _is_miscounted(draft: Draft, axis: int, size: int | str | None) -> bool:
    if not isinstance(size, int):
        return False
    windows, counted, _, _ = _windows(draft, axis, size)
    return windows != counted


def _windows(draft: Draft, axis: int, size: int) -> tuple[int, int, int, int]:
    """The number of windows along an axis, the number that ONNX's inference counted, their step and their width."""
    kernel = draft.get("kernel_shape")
    axes = len(kernel)
    pads, step = draft.get("pads", [0] * (2 * axes)), draft.get("strides", [1] * axes)[axis]
    width = (kernel[axis] - 1) * draft.get("dilations", [1] * axes)[axis] + 1
    counted = -(-(size + pads[axis] + pads[axis + axes] - width) // step) + 1
    behind = (counted - 1) * step >= size + pads[axis]
    return counted - behind, counted, step, width


# --- Upsample and Resize: how a place in the result became a place in the data

_COORDINATES = "coordinate_transformation_mode"
_UNSPOKEN = "how a place of the result becomes one of the data can be chosen since opset 11"


def _upsample_up(draft: Draft) -> None:
    draft.set_constant(1, np.asarray(draft.pop("scales"), np.float32), "scales")


def _spoken_up(draft: Draft) -> None:
    """ONNX Runtime's Resize 10 is asymmetric and takes the nearest below along an axis that it enlarges, above along
    one that it shrinks (onnxruntime, core/providers/cpu/tensor/upsamplebase.h, ``NearestMode::SIMPLE``). An axis that
    stays has the same elements either way, so where both may happen, one node shrinks and the next enlarges."""
    if draft.get("mode", "nearest") == "nearest":
        rounding = _rounding(draft)
        draft.set("nearest_mode", rounding or "floor")
        if not rounding:
            _shrink_first(draft)
    draft.set(_COORDINATES, "asymmetric")
    draft.set_input(2, draft.input(1))
    draft.set_constant(1, np.zeros(0, np.float32), "roi")


def _rounding(draft: Draft) -> str:
    """The mode of rounding that says it for all axes; empty where it depends on the axis."""
    if draft.op == "Upsample":
        return "floor"
    scales = draft.known_constant(1)
    if scales is None:
        return ""
    return "floor" if (scales >= 1).all() else "ceil" if (scales <= 1).all() else ""


def _shrink_first(draft: Draft) -> None:
    roi = draft.new_constant(np.zeros(0, np.float32), "roi")
    said = {_COORDINATES: "asymmetric", "nearest_mode": "ceil", "mode": "nearest"}
    less, more = _both_ways(draft)
    draft.set_input(0, draft.add_before("Resize", [draft.input(0), roi, less], "shrunk", **said))
    draft.set_input(1, more)


def _both_ways(draft: Draft) -> tuple[str, str]:
    """The scales of the axes that are shrunk, and of those that are enlarged; 1 for all others."""
    scales, one = draft.known_constant(1), np.ones(1, np.float32)
    if scales is not None:
        less, more = np.minimum(scales, one), np.maximum(scales, one)
        return draft.new_constant(less, "scales"), draft.new_constant(more, "scales")
    bound = draft.new_constant(one, "one")
    computed = [draft.add_before(op, [draft.input(1), bound], "scales") for op in ("Min", "Max")]
    return computed[0], computed[1]


def _absent_up(draft: Draft) -> None:
    if draft.get("coordinate_transformation_mode") == "tf_half_pixel_for_nn":
        raise Unmovable("coordinate_transformation_mode tf_half_pixel_for_nn was taken out with opset 13")
    if draft.input(3):
        draft.set_input(2, "")  # an empty tensor until then


def _absent_down(draft: Draft) -> None:
    for index, name in ((1, "roi"), (2, "scales")):
        if not draft.input(index):
            draft.set_constant(index, np.zeros(0, np.float32), name)


def _policy_down(draft: Draft) -> None:
    axes = draft.get("axes")
    if axes is None or draft.input(3) or draft.input(1):
        return
    scales = draft.constant(2, "scales")
    if scales is None or count(scales) != len(axes):
        return
    rank = draft.rank(0, "it resizes the axes that an attribute names")
    every = np.ones(rank, np.float32)
    every[axes] = scales
    draft.pop("axes")
    draft.drop_inputs(2)
    draft.set_constant(2, every, "scales")


# --- Changes of single operators: defaults, names of modes, meanings

# --- modes


_MODES = {"bilinear": "linear", "bicubic": "cubic"}


def _grid_up(draft: Draft) -> None:
    mode = draft.get("mode")
    if mode in _MODES:
        draft.set("mode", _MODES[mode])


def _grid_down(draft: Draft) -> None:
    if draft.rank(0, "data of other than two spatial axes came with opset 20") != 4:
        raise Unmovable("data of other than two spatial axes came with opset 20")
    mode = draft.get("mode")
    for old, new in _MODES.items():
        if mode == new:
            draft.set("mode", old)


def _roi_up(draft: Draft) -> None:
    draft.set("coordinate_transformation_mode", "output_half_pixel")


def _roi_down(draft: Draft) -> None:
    if draft.pop("coordinate_transformation_mode", "half_pixel") != "output_half_pixel":
        raise Unmovable("it shifts by half a pixel, which came with opset 16")


# --- types


def _unsigned_zero(draft: Draft) -> None:
    """float8e4m3fnuz and float8e5m2fnuz: infinity became NaN before opset 24, and the largest number since."""
    to = draft.get("to")
    if to is None:
        text = draft.type_text(draft.input(1)) or ""
        to_fnuz = text.endswith("fnuz)")
    else:
        to_fnuz = to in (TensorProto.FLOAT8E4M3FNUZ, TensorProto.FLOAT8E5M2FNUZ)
    if to_fnuz and draft.get("saturate", 1):
        raise Unmovable("infinity becomes another number of that type since opset 24")


def _cast_up(draft: Draft) -> None:
    to = draft.get("to")
    if isinstance(to, str):
        number = dict(TensorProto.DataType.items()).get(to)
        if number is None:
            raise Unmovable(f"it casts to {to}, which is not a type")
        draft.set("to", number)


def _slope_up(draft: Draft) -> None:
    """Before opset 7 a slope had one number, or one for each channel, which is axis 1."""
    sizes = draft.sizes(1)
    if sizes is None or any(size != 1 for size in sizes):
        rank = draft.rank(0, "a slope for each channel is another operand since opset 7")
        if rank != 2 or sizes is None or len(sizes) != 1:
            raise Unmovable("a slope for each channel is another operand since opset 7")


def _defaults_up(**defaults: float) -> Step:
    """Attributes that are left out get the default of the older version."""

    def up(draft: Draft) -> None:
        for name, value in defaults.items():
            draft.set(name, draft.get(name, value))

    return up


def _mod_down(draft: Draft) -> None:
    text = draft.type_text(draft.input(0))
    if not draft.get("fmod", 0) and (text is None or not text.startswith(("tensor(int", "tensor(uint"))):
        raise Unmovable("the floored remainder of floats came with opset 28")


def _constant_down(draft: Draft) -> None:
    for name, dtype in _VALUES.items():
        value = draft.pop(name)
        if value is not None:
            array: Array = np.asarray(value, dtype)
            draft.set("value", numpy_helper.from_array(array))


_VALUES = {
    "value_int": np.int64, "value_ints": np.int64, "value_float": np.float32, "value_floats": np.float32,
    "value_string": object, "value_strings": object,
}  # fmt: skip
_SCAN = "the axis of the batch was taken out"


# --- Normalizations, softmax and dropout

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
    Row("Upsample", 9, "scales are an input", _upsample_up),
    Row("Upsample", 10, "Resize took its place", becomes="Resize"),
    Row("Resize", 11, _UNSPOKEN, _spoken_up),
    Row("Resize", 13, "roi and scales may be absent; tf_half_pixel_for_nn was taken out", _absent_up, _absent_down),
    Row("Resize", 18, "scales and sizes may name the axes they are of", down=_policy_down),
    *[Row(op, 13, _FLAT, _flat_up, _flat_down) for op in ("Softmax", "LogSoftmax", "Hardmax")],
    Row("BatchNormalization", 9, "spatial was taken out, as 1", _spatial_up),
    Row("BatchNormalization", 14, _TRAINED, _training_up, _training_down),
    Row("GroupNormalization", 21, _PER_CHANNEL, _per_channel_up, _DEPRECATED),
    Row("MeanVarianceNormalization", 13, "its definition needs axes to be given", _default_axes),
    Row("Dropout", 10, "the mask is bool and was of the type of the data", _mask),
    Row("Dropout", 12, "ratio is an input; the mask is all ones, which was not said", _ratio_up, _ratio_down),
    Row("AveragePool", 19, _HANGING, _hanging, _hanging),
    *[Row(op, 22, _CEILING, down=_ceiling_down) for op in ("MaxPool", "AveragePool", "LpPool")],
    Row("GridSample", 20, "modes have other names, and data may have more spatial axes", _grid_up, _grid_down),
    Row("RoiAlign", 16, "places are shifted by half a pixel unless it says otherwise", _roi_up, _roi_down),
    Row("Cast", 6, "the type is a number", _cast_up),
    Row("Concat", 4, "the axis has no default", _defaults_up(axis=1)),
    Row("Selu", 6, "the defaults have more digits", _defaults_up(alpha=1.6732, gamma=1.0507)),
    Row("PRelu", 7, "the slope is broadcast to the data", _slope_up),
    Row("Cast", 24, "infinity saturates in the types without negative zero", _unsigned_zero, _unsigned_zero),
    Row("CastLike", 24, "infinity saturates in the types without negative zero", _unsigned_zero, _unsigned_zero),
    Row("Mod", 28, "fmod=0 takes floats too", down=_mod_down),
    Row("Scan", 9, _SCAN, never(_SCAN)),
    Row("Scatter", 11, "ScatterElements took its place", becomes="ScatterElements"),
    Row("Constant", 12, "numbers and texts may be given without a tensor", down=_constant_down),
)
