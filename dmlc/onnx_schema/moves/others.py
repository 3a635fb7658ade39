"""Changes of single operators: defaults, names of modes, meanings."""

from __future__ import annotations

import numpy as np
from onnx import TensorProto, numpy_helper

from dmlc.ir import Array
from dmlc.onnx_schema.moves.draft import Draft, Unmovable
from dmlc.onnx_schema.moves.rows import Row, Step, never

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

ROWS: tuple[Row, ...] = (
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
