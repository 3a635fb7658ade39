"""Upsample and Resize: how a place in the result became a place in the data."""

from __future__ import annotations

import numpy as np

from dmlc.onnx_schema.moves.draft import Draft, Unmovable, count
from dmlc.onnx_schema.moves.rows import Row

_UNSPOKEN = "how a place of the result becomes one of the data can be chosen since opset 11"


def _upsample_up(draft: Draft) -> None:
    draft.set_constant(1, np.asarray(draft.pop("scales"), np.float32), "scales")


def _upsample_down(draft: Draft) -> None:
    scales = draft.constant(1, "scales")
    assert scales is not None
    draft.drop_inputs(1)
    draft.set("scales", [float(s) for s in scales.reshape(-1)])


def _shrinks_down(draft: Draft) -> None:
    scales = draft.constant(1, "scales")
    if scales is None or (scales < 1).any():
        raise Unmovable("Upsample makes nothing smaller")


def _spoken_up(draft: Draft) -> None:
    """ONNX Runtime's Resize 10 is asymmetric and takes the nearest below where it enlarges, above where it shrinks
    (onnxruntime, core/providers/cpu/tensor/upsamplebase.h, ``NearestMode::SIMPLE``)."""
    if draft.get("mode", "nearest") == "nearest":
        scales = draft.constant(1, "scales")
        assert scales is not None
        if (scales >= 1).all():
            draft.set("nearest_mode", "floor")
        elif (scales <= 1).all():
            draft.set("nearest_mode", "ceil")
        else:
            raise Unmovable("it enlarges one axis and shrinks another, which rounded differently before opset 11")
    draft.set("coordinate_transformation_mode", "asymmetric")
    draft.set_input(2, draft.input(1))
    draft.set_constant(1, np.zeros(0, np.float32), "roi")


def _spoken_down(draft: Draft) -> None:
    if draft.input(3):
        raise Unmovable("it is given sizes, which came with opset 11")
    if draft.pop("coordinate_transformation_mode", "half_pixel") != "asymmetric":
        raise Unmovable(f"{_UNSPOKEN}; before it was asymmetric")
    mode = draft.get("mode", "nearest")
    if mode == "cubic":
        raise Unmovable("mode cubic came with opset 11")
    rounding = draft.pop("nearest_mode", "round_prefer_floor")
    if mode == "nearest":
        scales = draft.constant(2, "scales")
        assert scales is not None
        same = {"floor": (scales >= 1).all(), "ceil": (scales <= 1).all()}.get(rounding, False)
        if not same:
            raise Unmovable(f"it rounds with nearest_mode {rounding}, which can be said since opset 11")
    for name in ("cubic_coeff_a", "exclude_outside", "extrapolation_value"):  # of modes that it does not have
        draft.pop(name)
    draft.set_input(1, draft.input(2))
    draft.drop_inputs(2)


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


ROWS: tuple[Row, ...] = (
    Row("Upsample", 9, "scales are an input", _upsample_up, _upsample_down),
    Row("Upsample", 10, "Resize took its place", becomes="Resize", down=_shrinks_down),
    Row("Resize", 11, _UNSPOKEN, _spoken_up, _spoken_down),
    Row("Resize", 13, "roi and scales may be absent; tf_half_pixel_for_nn was taken out", _absent_up, _absent_down),
    Row("Resize", 18, "scales and sizes may name the axes they are of", down=_policy_down),
)
