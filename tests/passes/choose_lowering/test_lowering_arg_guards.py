"""The form that a search takes: each test fails where one guard of the plans of argmax and hardmax is dropped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import dmlc

pytestmark = pytest.mark.usefixtures("by_one_calibration")

OPERATIONS: dict[str, Any] = {
    "argmax": dmlc.argmax,
    "argmin": dmlc.argmin,
    "max": dmlc.reduce_max,
    "min": dmlc.reduce_min,
    "hardmax": dmlc.hardmax,
}
Asked = tuple[str, Sequence[int]]


def compiled(shape: Sequence[Any], *asked: Asked, dtype: str = "float32", **options: Any) -> dmlc.Program:
    """The operations over those axes of one input, for the cpu target. The size ``N`` may be 0."""
    g = dmlc.Graph("m")
    if "N" in shape:
        g.dim("N", min=0, max=64)
    x = g.input("x", dtype=dtype, shape=tuple(shape))
    for i, (name, axes) in enumerate(asked):
        g.output(f"y{i}", OPERATIONS[name](x, axes=axes))
    return dmlc.compile(g, target="cpu", **options)


def rules(program: dmlc.Program) -> list[str]:
    return [e.rule for e in program.ledger]


def operators(program: dmlc.Program) -> list[str]:
    return [node.op_type for node in program.to_onnx().graph.node]


def test_winners_along_an_inner_axis_are_reduced_not_gathered() -> None:
    program = compiled((2, 1000, 20, 512), ("argmin", [0, 3]), only_rules=["inner-first-argmax"])
    found = Counter(operators(program))
    assert found["ReduceMin"] == found["GatherElements"] == 1


def test_rows_are_gathered_whole() -> None:
    program = compiled((20, 512), ("argmax", [0, 1]))
    assert rules(program) == ["blocked-argmax"]
    assert "Gather" in operators(program) and "GatherElements" not in operators(program)


def test_the_way_between_blocks_is_asked_for_one_axis_alone() -> None:
    """All elements of a block of several axes are gathered by their places, which are counted at run time."""
    program = compiled((8, "N", 16384, 3, 3), ("argmin", [0, 2, 4]), dtype="uint8")
    assert "blocked-argmax" in rules(program)
    x = np.random.default_rng(0).integers(0, 255, (8, 2, 16384, 3, 3)).astype(np.uint8)
    want = np.moveaxis(x, (1, 3), (0, 1)).reshape(2, 3, -1).argmin(-1)
    np.testing.assert_array_equal(program.run({"x": x}, "cpu")["y0"].reshape(2, 3), want)


def test_what_may_be_empty_is_reshaped_from_opset_14_on() -> None:
    assert "blocked-argmax" in rules(compiled((291, 16384, "N"), ("argmin", [0]), opset=14))
    assert "blocked-argmax" not in rules(compiled((291, 16384, "N"), ("argmin", [0]), opset=13))
    assert "blocked-argmax" in rules(compiled((291, 16384, 8), ("argmin", [0]), opset=13))


def test_many_places_are_counted_at_run_time() -> None:
    """None of the constants holds more than 4096 numbers."""
    program = compiled((16384, 4096, 3, 3, 2), ("argmax", [1, 2, 3, 4]))
    assert Counter(operators(program))["Range"] == 1
    hot = compiled((100, 600), ("hardmax", [0, 1]))
    assert Counter(operators(hot))["Range"] == 1
    for made in (program, hot):
        assert max(np.prod(i.dims, dtype=int) for i in made.to_onnx().graph.initializer) <= 4096
    assert "Range" not in operators(compiled((4, 600), ("hardmax", [0, 1])))


def test_no_place_is_added_over_no_axes() -> None:
    found = Counter(operators(compiled((1, 600, 100, 512), ("argmin", [0, 1, 2]))))
    assert found["Add"] == found["Mul"] == 4


# --- an extreme beside a search


def test_an_extreme_of_blocks_is_made_of_those_of_a_search() -> None:
    both = compiled((1000, 64, 64), ("argmax", [0, 1, 2]), ("max", [0, 1, 2]))
    assert {"blocked-argmax", "max-of-blocks"} <= set(rules(both))
    # A reduction in steps leaves a value that looks like blocks too.
    alone = compiled((16384, 3, 3, 2), ("argmax", [1, 3]), ("max", [1, 3]))
    assert "max-of-blocks" not in rules(alone)


def test_an_extreme_of_the_other_end_is_made_alone() -> None:
    program = compiled((20, 16, 32), ("argmax", [2]), ("max", [0, 1, 2]), ("argmin", [0, 1, 2]), dtype="int32")
    assert "blocked-argmax" in rules(program) and "max-of-blocks" not in rules(program)
    other = compiled((20, 16, 32), ("min", [0, 1, 2]), ("argmax", [0, 1, 2]))
    assert "blocked-argmax" in rules(other) and "max-of-blocks" not in rules(other)


def test_an_extreme_over_other_axes_is_made_alone() -> None:
    program = compiled((64, 32, 64, 32), ("argmax", [1, 3]), ("max", [0, 2]))
    assert "blocked-argmax" in rules(program) and "max-of-blocks" not in rules(program)


# --- hardmax


def test_the_own_hardmax_has_no_doubles() -> None:
    """A double is searched, and ones are put at the places."""
    assert rules(compiled((3, 3), ("hardmax", [0]), dtype="float64")) == ["hardmax-by-scatter"]
    assert operators(compiled((3, 3), ("hardmax", [0]))) == ["Hardmax"]
