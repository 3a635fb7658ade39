"""The cost model: what a step costs, and which row counts."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from dmlc.diagnostics import DmlcError
from dmlc.ir.dtype import f32, f64, i8, i64
from dmlc.targets import load_target, target_names
from dmlc.targets.cost import Cheapest, Step, cost_model, parse_costs
from dmlc.targets.target import load_data

DATA: dict[str, Any] = {
    "source": "s",
    "date": "2026-11-21",
    "kernels": {
        "others": {"any": [500, 0.5, 0, 2], "i64": [600, 0, 0, 0]},
        "Sum": {"any": [100, 0.25, 10, 1], "i8 f64": [200, 1, 0, 0]},
    },
}


def test_a_step_costs_its_node_its_reads_its_runs_and_its_writes() -> None:
    model = parse_costs(DATA)
    assert model.step(Step("Sum", f32, reads=400, writes=4, run=100)) == 100 + 100 + 40 + 4
    assert model.step(Step("Sum", f32, reads=401, writes=0, run=100)) == 100 + 100.25 + 50
    assert model.step(Step("Sum", f32)) == 100
    assert model.step(Step("Sum", i8, reads=8)) == model.step(Step("Sum", f64, reads=8)) == 208


def test_kernels_and_types_without_a_row_have_that_of_others() -> None:
    model = parse_costs(DATA)
    assert model.step(Step("Copy", f32, reads=8, writes=8)) == 500 + 4 + 16
    assert model.step(Step("Copy", i64, reads=8, writes=8)) == 600
    assert model.step(Step("Sum", i64)) == 100


def test_of_several_ways_the_cheapest_counts() -> None:
    model = parse_costs(DATA)
    dear, cheap = (Step("Copy", f32), Step("Copy", f32)), (Step("Sum", f32),)
    assert model.total([Cheapest((dear, cheap)), Step("Copy", f32)]) == 600


def test_which_targets_have_costs() -> None:
    with_costs = [name for name in target_names() if load_target(name).costs is not None]
    assert with_costs == ["cpu"]
    assert cost_model(load_target("cpu")) is cost_model(load_target("cpu"))
    assert cost_model(load_target("directml")) is None


def test_a_target_whose_calibration_is_missing_says_so() -> None:
    with pytest.raises(DmlcError) as caught:
        cost_model(replace(load_target("cpu"), costs="cost_of_nothing"))
    assert caught.value.diagnostics[0].code.id == "E0590"


def test_the_calibration_says_where_it_is_from() -> None:
    data = load_data("cost_ort_cpu")
    assert "onnxruntime" in data["source"] and data["date"]
    model = parse_costs(data)
    # The order that lowerings live by: a reduction is faster than a search, and lying together than apart.
    steps = [Step(k, f32, 1 << 20, 1 << 10, 1 << 10) for k in ("ReduceMax", "ArgMax", "ArgMax deep", "ArgMax far")]
    costs = [model.step(step) for step in steps]
    assert costs == sorted(costs)
