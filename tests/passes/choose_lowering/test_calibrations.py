"""Without times a plan replaces a node only where it wins by every calibration."""

from __future__ import annotations

import re
from functools import cache

import pytest
from search_helpers import fired, one

from benchmarks.calibrate import FOLDER, factors, graph_of
from dmlc.api.chosen_options import chosen_options
from dmlc.api.program import Program
from dmlc.passes import choose_lowering
from dmlc.targets import load_target
from dmlc.targets.cost import CostModel, cost_model
from dmlc.targets.target import load_data
from tests.kit import dml
from tests.rows import each_row

CALIBRATIONS = {name: load_data(f"calibrations/{name}") for name in load_data("cost_ort_cpu")["calibrations"]}
#: The classes of a segmentation: a short axis with much behind it.
SEGMENTATIONS = [(2, 21, 512, 512), (64, 3, 224, 224), (8, 64, 128, 128), (1, 19, 512, 1024), (4, 150, 128, 128)]


def costs() -> CostModel:
    found = cost_model(load_target("cpu"))
    assert found is not None
    return found


@cache
def choice(operation: str, types: str, attributes: str) -> str:
    """The lowering that is taken for the operation of a row."""
    dtype, sizes = re.fullmatch(r"(\w+)\[(.*)\]", types).groups()  # type: ignore[union-attr]
    axes = re.search(r"axes=\((.*?)\)", attributes)[1]  # type: ignore[index]
    shape, dims = (tuple(int(size) for size in text.split(",") if size.strip()) for text in (sizes, axes))
    program = Program(graph_of(operation, dtype, shape, dims), chosen_options({"target": "cpu"}))
    return next(iter(fired(program)), "unchanged")


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
        times = row["microseconds"]
        taken = choice(row.get("form") or row["operator"], row["types"][0], row["attributes"])
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


def test_many_nodes_must_win_by_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """8 nodes are taken that the base calibration finds 2.2 times cheaper; if they were many, they were not."""
    monkeypatch.setattr(costs(), "calibrations", [])
    assert fired(one("argmax", (64, 4096), [1]))[0] == "blocked-argmax"
    monkeypatch.setattr(choose_lowering, "_FEW_NODES", 6)
    assert fired(one("argmax", (64, 4096), [1])) == []


@each_row(
    "body, shape, operators",
    [
        ("reduce_sum(x * x, axes=[1])", "4096, 1024", ["Mul", "ReduceSum"]),
        ("reduce_sum(abs(x), axes=[1])", "4096, 1024", ["Abs", "ReduceSum"]),
        ("reduce_max(reduce_max(x, axes=[3]), axes=[1])", "8, 64, 128, 128", ["ReduceMax", "ReduceMax"]),
        ("reduce_mean(reduce_mean(x, axes=[1]), axes=[2, 3])", "8, 64, 128, 128", ["ReduceMean", "ReduceMean"]),
        ("reduce_max(x, axes=[1, 3])", "8, 64, 128, 128", ["ReduceMax"]),
        ("reduce_mean(x, axes=[1, 2, 3])", "8, 64, 128, 128", ["ReduceMean"]),
    ],
)
def test_what_rewrites_merged_is_taken_apart_again_where_that_is_cheaper(
    body: str, shape: str, operators: list[str]
) -> None:
    """It was not written as one node, so that nothing that was written becomes slower. One that was written stays."""
    program = dml(f"(x: f32[{shape}]) -> (y) {{\n    y = {body}\n    return y\n}}", target="cpu")
    assert [node.op_type for node in program.to_onnx().graph.node] == operators
