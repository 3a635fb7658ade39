"""The lowerings of hardmax: each one alone gives exactly one 1 in each group, at its first maximum."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
import pytest
from search_helpers import FLOATS, check, draws, fired, numpy_of, on_runtime, one, operators

import dmlc
from dmlc import builder
from tests.rows import each_row

pytestmark = pytest.mark.usefixtures("by_one_calibration")

PLANS = ("hardmax-by-places", "hardmax-by-scatter", "hardmax-merged")
CASES = (
    ((6,), [0]),
    ((4, 6), [0]),
    ((4, 6), [1]),
    ((4, 6), [0, 1]),
    ((1, 1), [0]),
    ((4, 3, 6), [1]),
    ((4, 3, 6), [0, 2]),
    ((1, 3, 1, 5), [1, 3]),
    ((2, 3, 4, 6), [1, 3]),
    ((2, 3, 4, 6), [0, 2]),
    ((2, 3, 4, 6), [1, 2]),
    ((2, 3, 4, 6), [2, 3]),
    ((2, 3, 2, 3, 4), [0, 2, 4]),
)


def everything(dtype: str, **options: Any) -> dmlc.Program:
    graph = builder.Graph("all")
    for i, (shape, axes) in enumerate(CASES):
        x = graph.input(f"x{i}", dtype=dtype, shape=list(shape))
        graph.output(f"y{i}", builder.hardmax(x, axes=axes))
    return dmlc.compile(graph, target="cpu", **options)


@each_row("dtype", FLOATS)
@each_row("plan", [None, *PLANS])
def test_every_plan_alone_is_exact(plan: str | None, dtype: str) -> None:
    program = everything(dtype, only_rules=None if plan is None else [plan])
    if plan is not None:
        assert (plan in fired(program)) is not (plan == "hardmax-merged" and dtype == "f64")
    assert all(entry.rewrite_class == "exact" for entry in program.ledger)
    check(program, *draws(program, dtype))


@pytest.mark.parametrize("plan", PLANS)
def test_all_groups_of_few_values(plan: str) -> None:
    groups = np.array(list(itertools.product((-np.inf, -0.0, 0.0, np.inf), repeat=4)), np.float32).reshape(-1, 2, 1, 2)
    x = np.broadcast_to(groups, (len(groups), 2, 3, 2)).copy()
    program = one("hardmax", x.shape, [1, 3], only_rules=[plan, "blocked-argmax"])
    check(program, {"x": x})
    for found in on_runtime(program, {"x": x}):
        assert (found["y"].sum(axis=(1, 3)) == 1).all()


@each_row("plan", [None, *PLANS])
@each_row("axes", [[2], [1, 3], [1, 2]])
def test_beside_nan_at_most_one_is_hot(plan: str | None, axes: list[int]) -> None:
    program = one("hardmax", (2, 4, 4, 16), axes, only_rules=None if plan is None else [plan])
    x = np.random.default_rng(0).choice([np.nan, 1.0, np.inf, -np.inf], (2, 4, 4, 16)).astype(np.float32)
    for found in on_runtime(program, {"x": x}):
        assert set(np.unique(found["y"])) <= {0.0, 1.0}
        assert found["y"].sum(axis=tuple(axes)).max() <= 1


@each_row("dtype", FLOATS)
@each_row(
    ("shape", "axes"),
    [
        ((8, 32, 8, 64), [1, 3]),
        ((8, 32, 8, 64), [0, 2]),
        ((8, 21, 32, 32), [1]),
        ((512, 256), [0]),
    ],
)
def test_big_ones_need_no_transpose(shape: tuple[int, ...], axes: list[int], dtype: str) -> None:
    program = one("hardmax", shape, axes, dtype, exact=True)
    assert fired(program)[0] in ("hardmax-by-places", "hardmax-by-scatter")
    assert not {"Transpose", "OneHot", "Hardmax"} & set(operators(program))
    x = np.random.default_rng(0).integers(0, 20, shape).astype(numpy_of(dtype))
    check(program, {"x": x})


def test_small_ones_are_one_hardmax() -> None:
    assert operators(one("hardmax", (1, 1000), [1])) == ["Hardmax"]
    assert operators(one("hardmax", (2, 3, 4), [1, 2])) == ["Reshape", "Hardmax", "Reshape"]
    assert operators(one("hardmax", (16, 64, 64), [1, 2])) == ["Reshape", "Hardmax", "Reshape"]
    assert operators(one("hardmax", (2, 3, 4), [0, 2])) == ["Transpose", "Reshape", "Hardmax", "Reshape", "Transpose"]


@each_row("plan", [None, *PLANS])
@each_row(
    ("shape", "axes"),
    [(("n", 6), [1]), (("n", 6), [0, 1]), ((4, "n", 5), [0, 2]), (("n", 3, "m", 4), [1, 3]), ((3, "n", "m"), [1, 2])],
)
def test_open_sizes(plan: str | None, shape: tuple[int | str, ...], axes: list[int]) -> None:
    program = one("hardmax", shape, axes, only_rules=None if plan is None else [plan])
    rounds = [[n if d == "n" else m if d == "m" else int(d) for d in shape] for n, m in ((1, 1), (2, 3), (5, 4))]
    check(program, *[{"x": np.random.default_rng(0).integers(0, 3, sizes).astype(np.float32)} for sizes in rounds])


def test_asking_for_argmax_and_one_hot_gives_them() -> None:
    program = one("hardmax", (64, 4096), [1], lower_hardmax=True)
    assert "OneHot" in operators(program)
    assert not set(PLANS) & set(fired(program))
    check(program, {"x": np.random.default_rng(0).integers(0, 9, (64, 4096)).astype(np.float32)})


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_older_opsets(opset: int) -> None:
    for plan in PLANS:
        program = one("hardmax", (3, 4, 2, 6), [1, 3], opset=opset, only_rules=[plan])
        check(program, {"x": np.random.default_rng(0).integers(0, 3, (3, 4, 2, 6)).astype(np.float32)})


@pytest.mark.parametrize("opset", [11, 13])
def test_imported_models(opset: int) -> None:
    """Up to opset 12 ONNX's own takes all axes from one on together."""
    make = onnx.helper
    node = make.make_node("Hardmax", ["x"], ["y"], axis=1)
    x, y = [make.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", 64, 512]) for name in "xy"]
    opsets = [make.make_opsetid("", opset)]
    model = make.make_model(make.make_graph([node], "g", [x], [y]), opset_imports=opsets, ir_version=6)
    program = dmlc.compile(model, target="cpu", opset=opset)
    for n in (0, 1, 3):
        data = np.random.default_rng(0).integers(0, 9, (n, 64, 512)).astype(np.float32)
        flat = data.reshape(n, 64 * 512, 1) if opset < 13 else data
        hot = np.arange(flat.shape[1]).reshape(1, -1, 1) == np.argmax(flat, axis=1)[:, None]
        for found in on_runtime(program, {"x": data}):
            np.testing.assert_array_equal(found["y"], hot.reshape(data.shape))


@pytest.mark.parametrize("target", ["directml", "onnx", "cpu"])
@pytest.mark.parametrize("axis", [0, 1])
def test_imported_models_give_nothing_for_nothing(axis: int, target: str) -> None:
    """A model may be fed an empty batch: ONNX's own hardmax takes it, over several axes too, and an ArgMax fails."""
    make = onnx.helper
    node = make.make_node("Hardmax", ["x"], ["y"], axis=axis)
    x, y = [make.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["n", "c", "w"]) for name in "xy"]
    opsets = [make.make_opsetid("", 8)]
    model = make.make_model(make.make_graph([node], "g", [x], [y]), opset_imports=opsets, ir_version=6)
    program = dmlc.compile(model, target=target, exact=True)
    for shape in [(0, 4, 2), (2, 0, 2), (2, 4, 0), (0, 0, 0), (2, 4, 2)]:
        data = np.random.default_rng(0).integers(0, 3, shape).astype(np.float32)
        flat = data.reshape(int(np.prod(shape[:axis])), int(np.prod(shape[axis:])))
        wanted = np.zeros_like(flat)
        for row, hot in zip(flat, wanted, strict=True):
            hot[np.flatnonzero(row == row.max(initial=-1))[:1]] = 1
        for found in on_runtime(program, {"x": data}):
            np.testing.assert_array_equal(found["y"], wanted.reshape(shape))
