"""Upsample and Resize: how a place in the result became a place in the data."""

from __future__ import annotations

import numpy as np

from dmlc.onnx_schema.moves.draft import Draft, Unmovable, count
from dmlc.onnx_schema.moves.rows import Row

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


ROWS: tuple[Row, ...] = (
    Row("Upsample", 9, "scales are an input", _upsample_up),
    Row("Upsample", 10, "Resize took its place", becomes="Resize"),
    Row("Resize", 11, _UNSPOKEN, _spoken_up),
    Row("Resize", 13, "roi and scales may be absent; tf_half_pixel_for_nn was taken out", _absent_up, _absent_down),
    Row("Resize", 18, "scales and sizes may name the axes they are of", down=_policy_down),
)
