"""Selections without times: a plan replaces a node that suffices only where it wins by every calibration."""

from __future__ import annotations

import re
from typing import Any

import pytest
from search_helpers import fired, one

from benchmarks.calibrate import FOLDER, factors
from dmlc.targets import load_target
from dmlc.targets.cost import CostModel, cost_model
from dmlc.targets.target import load_data

CALIBRATIONS = {name: load_data(f"calibrations/{name}") for name in load_data("cost_ort_cpu")["calibrations"]}
#: The classes of a segmentation: a short axis with much behind it.
SEGMENTATIONS = [(2, 21, 512, 512), (64, 3, 224, 224), (8, 64, 128, 128), (1, 19, 512, 1024), (4, 150, 128, 128)]


def costs() -> CostModel:
    found = cost_model(load_target("cpu"))
    assert found is not None
    return found


def choice(row: dict[str, Any]) -> str:
    """The lowering that is taken for the operation of a row."""
    dtype, sizes = re.fullmatch(r"(\w+)\[(.*)\]", row["types"][0]).groups()  # type: ignore[union-attr]
    axes = re.search(r"axes=\((.*?)\)", row["attributes"])[1]  # type: ignore[index]
    shape, dims = (tuple(int(size) for size in text.split(",") if size.strip()) for text in (sizes, axes))
    return next(iter(fired(one(row["operator"], shape, dims, dtype))), "unchanged")


def test_there_are_three_of_which_one_is_of_an_older_release() -> None:
    assert len(CALIBRATIONS) >= 3
    assert {file.stem for file in FOLDER.glob("*.json")} == set(CALIBRATIONS)
    assert all(one["device"] and one["onnxruntime"] and one["date"] and one["threads"] for one in CALIBRATIONS.values())
    assert any(int(one["onnxruntime"].split(".")[1]) <= 30 for one in CALIBRATIONS.values())


@pytest.mark.parametrize("name", CALIBRATIONS)
def test_what_is_taken_is_not_slower_by_any_calibration(name: str) -> None:
    """By its times, from which the estimates come; other work shared the cores of some."""
    wins = []
    for row in CALIBRATIONS[name]["rows"]:
        times, taken = row["microseconds"], choice(row)
        if taken in times and taken != "unchanged":
            wins.append(times["unchanged"] / times[taken])
    assert min(wins) > 0.95
    assert sorted(wins)[len(wins) // 2] > 2


@pytest.mark.parametrize("name", ["intel_ort_1_31", "intel_ort_1_32"])
def test_factors_come_from_the_times(name: str) -> None:
    found = factors(CALIBRATIONS[name]["rows"], costs())
    assert found == pytest.approx(CALIBRATIONS[name]["factors"], abs=0.02)


@pytest.mark.parametrize("dtype", ["f32", "f16", "u32"])
def test_segmentations_stay_one_node(dtype: str) -> None:
    assert [shape for shape in SEGMENTATIONS if "blocked-argmax" in fired(one("argmax", shape, [1], dtype))] == []


def test_one_calibration_keeps_the_node(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fired(one("argmax", (4096, 4096), [0]))[0] == "blocked-argmax"
    slow = costs().scaled({"others": 100.0, "ArgMax far": 1.0})
    monkeypatch.setattr(costs(), "calibrations", [slow])
    assert fired(one("argmax", (4096, 4096), [0])) == []


def test_many_nodes_must_win_by_more() -> None:
    """Estimated at twice the speed, 8 nodes are taken and 20 are not."""
    assert fired(one("argmax", (64, 4096), [1]))[0] == "blocked-argmax"
    assert fired(one("argmax", (512, 256), [0])) == []
