"""The lowerings of argmax and argmin: each one alone gives every index of the reference."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnx
import pytest
from search_helpers import DTYPES, check, draws, fired, on_runtime, one, operators

import dmlc
from dmlc import builder
from tests.rows import each_row

pytestmark = pytest.mark.usefixtures("by_one_calibration")

PLANS = (
    "blocked-argmax",
    "fine-blocked-argmax",
    "inner-first-argmax",
)
#: Each way in which kept and searched axes can stand; axes of size 1 among them.
CASES = (
    ((6,), [0]),
    ((8, 9), [0]),
    ((8, 9), [1]),
    ((4, 6), [0, 1]),
    ((1, 16, 1), [1, 2]),
    ((1, 1), [0]),
    ((4, 3, 6), [0, 2]),
    ((4, 3, 6), [1]),
    ((2, 3, 4, 6), [1, 3]),
    ((2, 3, 4, 6), [0, 2]),
    ((2, 3, 4, 6), [1, 2]),
    ((2, 3, 2, 3, 4), [0, 2, 4]),
)
#: No reduction of these is right on ONNX Runtime, so that nothing can be found by blocks.
_NO_BLOCKS = {"i64", "u64"}


def everything(dtype: str, turn: int = 0, step: int = 1, **options: Any) -> dmlc.Program:
    """All cases, or one in ``step``, both ends, both ties, all index types, in one program."""
    graph = builder.Graph("all")
    kinds = itertools.cycle(itertools.product(("u32", "i32", "i64", "u64"), (True, False)))
    for i, (shape, axes) in list(enumerate(CASES))[turn % step :: step]:
        x = graph.input(f"x{i}", dtype=dtype, shape=list(shape))
        for op, ties in (("argmax", "first"), ("argmax", "last"), ("argmin", "last" if i % 2 else "first")):
            index, keepdims = next(kinds)
            y = getattr(builder, op)(x, axes=axes, ties=ties, dtype=index, keepdims=keepdims)
            graph.output(f"{op}_{ties}_{i}_{''.join(map(str, axes))}", y)
    return dmlc.compile(graph, target="cpu", **options)


@each_row("dtype", DTYPES)
@pytest.mark.parametrize("plan", PLANS)
def test_every_plan_alone_is_exact(plan: str, dtype: str) -> None:
    """Every other case, and the next dtype takes the others."""
    program = everything(dtype, DTYPES.index(dtype), 2, only_rules=[plan])
    impossible = "blocked" in plan and dtype in _NO_BLOCKS
    impossible |= dtype == "u64" and plan == "inner-first-argmax"
    assert (plan in fired(program)) is not impossible
    assert all(entry.rewrite_class == "exact" for entry in program.ledger)
    check(program, *draws(program, dtype))


@pytest.mark.parametrize("dtype", ["f32", "u8", "i64"])
def test_what_is_chosen_is_exact(dtype: str) -> None:
    program = everything(dtype)
    check(program, *draws(program, dtype, seed=1))


@pytest.mark.parametrize("plan", PLANS)
def test_all_rows_of_few_values(plan: str) -> None:
    """Every order of ties there is: rows of 6 and groups of 2x3 over apart axes, of three values."""
    rows = np.array(list(itertools.product((-1.0, 0.0, 1.0), repeat=6)), np.float32)
    graph = builder.Graph("rows")
    x = graph.input("x", dtype="f32", shape=[len(rows), 6])
    pairs = builder.reshape(x, shape=[len(rows), 2, 1, 3])
    wide = builder.expand(pairs, shape=[len(rows), 2, 2, 3])
    for op, ties in itertools.product((builder.argmax, builder.argmin), ("first", "last")):
        graph.output(f"row_{op.__name__}_{ties}", op(x, axes=[1], ties=ties))
        graph.output(f"column_{op.__name__}_{ties}", op(builder.transpose(x, perm=[1, 0]), axes=[0], ties=ties))
        graph.output(f"pair_{op.__name__}_{ties}", op(wide, axes=[1, 3], ties=ties))
    program = dmlc.compile(graph, target="cpu", only_rules=[plan])
    if plan != "fine-blocked-argmax":  # 3 cannot be divided
        assert plan in fired(program)
    check(program, {"x": rows})


@each_row("plan", PLANS)
@each_row(("shape", "axes"), [((256, 4), [1]), ((4, 256), [0]), ((256, 2, 1, 2), [1, 3]), ((64, 2, 2, 4), [1, 3])])
def test_an_index_beside_nan_stays_in_range(plan: str, shape: tuple[int, ...], axes: list[int]) -> None:
    program = one("argmax", shape, axes, only_rules=[plan])
    values = np.array(list(itertools.product((np.nan, np.inf, 0.0, -np.inf), repeat=4)), np.float32)
    size = int(np.prod(shape))
    x = np.resize(values.T if shape[0] == 4 else values, size).reshape(shape)
    for found in on_runtime(program, {"x": x}):
        assert found["y"].max() < np.prod([shape[a] for a in axes])


BIG = [
    ((64, 64, 64), [1, 2], "blocked-argmax"),
    ((8, 32, 8, 64), [1, 3], "blocked-argmax"),
    ((8, 32, 8, 64), [0, 2], "blocked-argmax"),
    ((512, 512), [0], "blocked-argmax"),
    ((65536,), [0], "blocked-argmax"),
]


@each_row("ties", ["first", "last"])
@each_row(("shape", "axes", "plan"), BIG)
def test_big_ones_are_not_left_as_they_stand(shape: tuple[int, ...], axes: list[int], plan: str, ties: str) -> None:
    program = one("argmax", shape, axes, ties=ties, exact=True)
    assert fired(program)[0] == plan
    assert "Transpose" not in operators(program)
    x = np.random.default_rng(0).integers(0, 50, shape).astype(np.float32)
    check(program, {"x": x})


@pytest.mark.parametrize(
    ("shape", "axes", "plan"),
    [
        ((64, 3, 224, 224), [0, 2], "fine-blocked-argmax"),
        ((16, 16, 128, 256), [0, 2], "fine-blocked-argmax"),
        ((64, 3, 32, 2048), [0, 2], "fine-blocked-argmax"),
        ((16, 3, 64, 224), [0, 2], "fine-blocked-argmax"),
        ((8, 64, 4, 4), [0, 2], "blocked-argmax"),
        ((32, 10, 10), [0, 2], None),
    ],
)
def test_blocks_are_long_where_little_lies_behind_them(
    shape: tuple[int, ...], axes: list[int], plan: str | None
) -> None:
    """A tensor that the cache does not hold is fetched ahead in runs of a page and more."""
    assert next(iter(fired(one("argmax", shape, axes))), None) == plan


@pytest.mark.parametrize(("shape", "axes"), [((1, 1000), [1]), ((3, 4), [0]), ((2, 3, 4, 5), [1, 3]), ((64, 64), [1])])
def test_small_ones_stay(shape: tuple[int, ...], axes: list[int]) -> None:
    assert fired(one("argmax", shape, axes)) == []


def test_a_prime_axis_stays() -> None:
    program = one("argmax", (13, 4096), [0])
    assert fired(program) == []
    assert operators(program).count("ArgMax") == 1


def test_a_part_of_a_blocked_search_may_be_blocked_again() -> None:
    program = one("argmax", (65536, 64), [0])
    assert fired(program).count("blocked-argmax") > 1
    x = np.random.default_rng(0).integers(0, 9, (65536, 64)).astype(np.float32)
    check(program, {"x": x})


def test_wide_integers_are_not_reduced() -> None:
    """ReduceMax of i64 is wrong there; the winners of the inner axes are gathered."""
    program = one("argmax", (16, 64, 16, 64), [1, 3], "i64", only_rules=["inner-first-argmax"])
    assert "ReduceMax" not in operators(program)
    x = np.random.default_rng(0).choice([2**31 - 1, 2**31 + 5, -(2**31) - 7, 7], (16, 64, 16, 64))
    check(program, {"x": x})


@each_row("plan", [None, *PLANS])
@each_row(("shape", "axes"), [(("n", 6), [1]), ((6, "n"), [0]), (("n", 4, "m", 6), [1, 3]), (("n", 2, 3, "m"), [1, 2])])
def test_open_sizes(plan: str | None, shape: tuple[int | str, ...], axes: list[int]) -> None:
    program = one("argmax", shape, axes, only_rules=None if plan is None else [plan])
    rounds = [[n if d == "n" else m if d == "m" else int(d) for d in shape] for n, m in ((1, 1), (2, 3), (5, 4))]
    check(program, *[{"x": np.random.default_rng(0).integers(0, 3, sizes).astype(np.float32)} for sizes in rounds])


def test_an_open_searched_axis_is_searched_as_it_stands() -> None:
    program = one("argmax", ("n", "m"), [1])
    assert fired(program) == []
    check(program, {"x": np.random.default_rng(0).integers(0, 3, (3, 7)).astype(np.float32)})


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_older_opsets(opset: int) -> None:
    for plan in PLANS:
        program = one("argmax", (3, 4, 2, 6), [1, 3], opset=opset, ties="last", only_rules=[plan])
        check(program, {"x": np.random.default_rng(0).integers(0, 3, (3, 4, 2, 6)).astype(np.float32)})


def searching_model(shape: list[int | str], axis: int, opset: int) -> onnx.ModelProto:
    make = onnx.helper
    node = make.make_node("ArgMax", ["x"], ["y"], axis=axis, keepdims=0)
    x = make.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)
    y = make.make_tensor_value_info("y", onnx.TensorProto.INT64, None)
    return make.make_model(
        make.make_graph([node], "g", [x], [y]), opset_imports=[make.make_opsetid("", opset)], ir_version=8
    )


@pytest.mark.parametrize("opset", [12, 18])
@pytest.mark.parametrize(("shape", "axis"), [(["n", 256, 512], 2), (["n", 1024, 128], 1), ([512, 512, "n"], 0)])
def test_imported_models_may_have_empty_axes(shape: list[int | str], axis: int, opset: int) -> None:
    model = searching_model(shape, axis, opset)
    program = dmlc.compile(model, target="cpu", opset=opset)
    rng = np.random.default_rng(0)
    for n in (0, 1, 3):
        x = rng.integers(0, 9, [n if d == "n" else int(d) for d in shape]).astype(np.float32)
        for found in on_runtime(program, {"x": x}):
            np.testing.assert_array_equal(found["y"], np.argmax(x, axis=axis))


@each_row("first", ["max", "argmax"])
@each_row(("shape", "axes"), [((16, 64, 64), [1, 2]), ((8, 64, 16, 64), [1, 3]), ((512, 512), [0]), ((64, 4096), [1])])
def test_a_maximum_beside_it_is_that_of_the_blocks(shape: tuple[int, ...], axes: list[int], first: str) -> None:
    graph = builder.Graph("both")
    x = graph.input("x", dtype="f32", shape=list(shape))
    calls = {
        "max": lambda: builder.reduce_max(x, axes=axes, keepdims=False),
        "argmax": lambda: builder.argmax(x, axes=axes),
    }
    for name in (first, *[name for name in calls if name != first]):
        graph.output(name, calls[name]())
    program = dmlc.compile(graph, target="cpu")
    assert "max-of-blocks" in fired(program)
    model = onnx.shape_inference.infer_shapes(program.to_onnx())
    size = {
        v.name: np.prod([d.dim_value for d in v.type.tensor_type.shape.dim])
        for v in (*model.graph.value_info, *model.graph.input)
    }
    reduced = [size.get(node.input[0]) for node in model.graph.node if node.op_type == "ReduceMax"]
    assert reduced.count(np.prod(shape)) == 1
    check(program, {"x": np.random.default_rng(0).integers(0, 9, shape).astype(np.float32)})


def test_another_maximum_is_not_touched() -> None:
    graph = builder.Graph("both")
    x = graph.input("x", dtype="f32", shape=[8, 64, 64])
    graph.output("i", builder.argmax(x, axes=[1, 2]))
    graph.output("m", builder.reduce_max(x, axes=[0]))
    program = dmlc.compile(graph, target="cpu")
    assert "max-of-blocks" not in fired(program)
