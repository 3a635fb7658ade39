"""Uses of the index of the largest element: a one-hot of it is hardmax, a gather by it the maximum."""

from __future__ import annotations

from typing import Any

import numpy as np
import pass_helpers as h
import pytest
import selection_helpers as s

from dmlc.ir.dtype import DType, bool_, f16, f32, f64, i32, i64, u32, u64
from dmlc.ops.choose import CAST
from dmlc.ops.elementwise import NEG
from dmlc.ops.index import GATHER, GATHER_ELEMENTS, ONE_HOT
from dmlc.ops.move import RESHAPE, SQUEEZE, TRANSPOSE, UNSQUEEZE
from dmlc.ops.select import ARGMAX, ARGMIN
from tests.rows import each_row

HOT = [("hot-argmax", "reassociates")]


def one_hot(
    *,
    shape: tuple[Any, ...] = (3, 4),
    dtype: DType = f32,
    axes: tuple[int, ...] = (-1,),
    place: int = -1,
    depth: Any = None,
    hot: DType | None = None,
    index: DType = i64,
    keepdims: bool = False,
    ties: str = "first",
    on: Any = 1,
    off: Any = 0,
    op: Any = ARGMAX,
    then: Any = None,
    **dims: tuple[int, float],
) -> Any:
    """The graph of a one_hot of an argmax; ``then`` continues it."""
    b = h.Building(**dims)
    x = b.input("x", shape, dtype)
    found = b(op, x, axes=list(axes), ties=ties, dtype=index, keepdims=keepdims)
    depth = x.shape[axes[0]] if depth is None else depth
    y = b(ONE_HOT, found, depth=depth, axis=place, on=on, off=off, dtype=hot or dtype)
    return b.done(then(b, y) if then else y)


@each_row(
    ("options", "want"),
    [
        ({}, ["hardmax"]),
        ({"index": u32}, ["hardmax"]),
        ({"dtype": f16}, ["hardmax"]),
        ({"axes": (0,), "place": 0}, ["hardmax"]),
        ({"shape": (2, 3, 4), "axes": (1,), "place": 1}, ["hardmax"]),
        ({"shape": (2, 3, 4), "axes": (1,), "place": 1, "on": 1.0, "off": -0.0}, ["hardmax"]),
        # a one-hot that is cast to the dtype of what is searched, moved or not
        ({"hot": i64, "then": lambda b, y: b(CAST, y, to=f32)}, ["hardmax"]),
        ({"hot": bool_, "on": True, "off": False, "then": lambda b, y: b(CAST, y, to=f32)}, ["hardmax"]),
        # F.one_hot(x.argmax(1)).permute(0, 3, 1, 2).float()
        (
            {"shape": (2, 5, 3, 4), "axes": (1,), "hot": i64,
             "then": lambda b, y: b(CAST, b(TRANSPOSE, y, perm=[0, 3, 1, 2]), to=f32)},
            ["hardmax"],
        ),
        (
            {"shape": (2, 5, 3, 4), "axes": (1,), "then": lambda b, y: b(TRANSPOSE, y, perm=[0, 3, 1, 2])},
            ["hardmax"],
        ),
        # the axis that argmax kept goes away afterwards
        ({"keepdims": True, "then": lambda b, y: b(SQUEEZE, y, axes=[1])}, ["hardmax"]),
        ({"keepdims": True, "place": 1, "then": lambda b, y: b(SQUEEZE, y, axes=[2])}, ["hardmax"]),
        ({"keepdims": True, "then": lambda b, y: b(RESHAPE, y, shape=[3, 4])}, ["hardmax"]),
        ({"keepdims": True, "then": lambda b, y: b(RESHAPE, y, shape=[12])}, ["hardmax", "reshape"]),
        # over neighbouring axes together
        ({"shape": (2, 3, 4), "axes": (1, 2), "depth": 12}, ["reshape", "hardmax"]),
        # another axis, where casting saves a node all the same
        ({"axes": (1,), "place": 0, "hot": i64, "then": lambda b, y: b(CAST, y, to=f32)}, ["hardmax", "transpose"]),
    ],
)  # fmt: skip
def test_one_hot_of_argmax_is_hardmax(options: dict[str, Any], want: list[str]) -> None:
    graph = one_hot(**options)
    before = graph.clone()
    ctx = s.fuse(graph)
    assert h.names(graph) == want
    assert s.fired(ctx) == HOT
    x = graph.inputs[0]
    shape = [int(str(d)) for d in x.shape]
    s.compare(before, graph, s.hard_inputs(shape, x.type.dtype.numpy))
    assert len(s.operators(graph)) < len(s.operators(before))


def test_an_index_may_be_cast_on_the_way() -> None:
    b = h.Building()
    x = b.input("x", (3, 4))
    index = b(CAST, b(ARGMAX, x, axes=[1], dtype=i64, keepdims=False), to=i32)
    graph = b.done(b(ONE_HOT, index, depth=4))
    s.fuse(graph)
    assert h.names(graph) == ["hardmax"]


def test_symbolic_sizes() -> None:
    graph = one_hot(shape=("N", 4), N=(0, 9))
    s.fuse(graph)
    assert h.names(graph) == ["hardmax"]
    graph = one_hot(shape=("N", "C"))
    s.fuse(graph)
    assert h.names(graph) == ["hardmax"]


@each_row(
    ("options", "reason"),
    [
        ({"ties": "last"}, "the last of equal elements is hot"),
        ({"depth": 5}, "the depth is 5, and 4 elements are reduced"),
        ({"depth": 3}, "the depth is 3"),
        ({"on": 2}, "the values are 2 and 0"),
        ({"on": 0, "off": 1}, "the values are 0 and 1"),
        ({"off": -1}, "the values are 1 and -1"),
        ({"shape": (3, 3), "axes": (1,), "place": 0}, "the new axis is at 0, the reduced one at 1"),
        ({"shape": (3, 3), "axes": (0,), "place": 1}, "the new axis is at 1, the reduced one at 0"),
        ({"keepdims": True}, "a transpose would be needed"),
        ({"keepdims": True, "then": lambda b, y: b(UNSQUEEZE, y, axes=[0])}, "a transpose would be needed"),
        ({"dtype": i32, "hot": f32}, "hardmax takes floats, and the operand is i32"),
        ({"hot": i64}, "hardmax of f32 gives f32, not i64"),
        ({"hot": f16}, "hardmax of f32 gives f32, not f16"),
        ({"dtype": f64}, "Hardmax of f64 has no kernel"),
        ({"shape": (2, 3, 4), "axes": (0, 2), "depth": 8}, "axis 1 is between the reduced ones"),
    ],
)
def test_near_misses_of_hardmax(options: dict[str, Any], reason: str) -> None:
    graph = one_hot(**options)
    before = h.names(graph)
    ctx = s.fuse(graph)
    assert h.names(graph) == before
    assert reason in s.reasons(ctx, "hot-argmax")


def test_argmin_is_no_hardmax() -> None:
    graph = one_hot(op=ARGMIN)
    s.fuse(graph)
    assert h.names(graph) == ["argmin", "one_hot"]


def test_an_index_that_is_used_elsewhere_stays() -> None:
    b = h.Building()
    x = b.input("x", (3, 4))
    index = b(ARGMAX, x, axes=[1], dtype=i64, keepdims=False)
    graph = b.done(b(ONE_HOT, index, depth=4), index)
    ctx = s.fuse(graph)
    assert h.names(graph) == ["argmax", "one_hot"]
    assert "is used 2 times" in s.reasons(ctx, "hot-argmax")


def test_hardmax_is_chosen_by_target_and_opset() -> None:
    """Off the last axis the CPU provider transposes; below opset 13 there is no such Hardmax."""
    off_last: dict[str, Any] = {"shape": (2, 3, 4), "axes": (1,), "place": 1}
    for target, opset, want, reason in (
        ("cpu", 21, ["argmax", "one_hot"], "slower at Hardmax"),
        ("onnx", 21, ["hardmax"], ""),
        ("directml", 12, ["argmax", "one_hot"], "below opset 13"),
        ("numpy", 12, ["hardmax"], ""),
    ):
        graph = one_hot(**off_last)
        ctx = s.fuse(graph, target, opset=opset)
        assert h.names(graph) == want, (target, opset)
        assert reason in s.reasons(ctx, "hot-argmax")
    for target, opset in (("cpu", 21), ("directml", 12)):
        graph = one_hot()
        s.fuse(graph, target, opset=opset)
        assert h.names(graph) == ["hardmax"]
        assert s.operators(graph, target, opset) == ["Hardmax"]


def test_a_nan_keeps_hardmax_out_of_exact() -> None:
    """Hardmax of a group with a NaN may be all zeros (in ONNX Runtime 1.32): that is not the one-hot of an index."""
    graph = one_hot()
    before = graph.clone()
    ctx = s.fuse(graph, allowed="exact")
    assert h.names(graph) == ["argmax", "one_hot"]
    assert "it reassociates" in s.reasons(ctx, "hot-argmax")
    s.fuse(graph)
    feeds = {"x": np.array([[np.nan, 2, 7, 1], [1, np.nan, 0, 2], [3, 1, 2, np.nan]], dtype=np.float32)}
    ((old,), (new,)) = s.run_cpu(before, feeds), s.run_cpu(graph, feeds)
    assert (old.sum(axis=1) == 1).all()
    assert (new.sum(axis=1) <= 1).all()
    graph = one_hot()
    assert s.fired(s.fuse(graph, "numpy", "exact")) == [("hot-argmax", "exact")]


# --- gathers


def gather(
    *,
    dtype: DType = f32,
    op: Any = ARGMAX,
    ties: str = "first",
    axis: int = 1,
    along: int = 1,
    other: bool = False,
    index: DType = i64,
    twice: bool = False,
) -> Any:
    b = h.Building()
    x, z = b.input("x", (4, 4), dtype), b.input("z", (4, 4), dtype)
    found = b(op, x, axes=[axis], ties=ties, dtype=index)
    y = b(GATHER_ELEMENTS, z if other else x, found, axis=along)
    return b.done(y, found) if twice else b.done(y)


@pytest.mark.parametrize(
    ("options", "want"),
    [
        ({}, "reduce_max"),
        ({"op": ARGMIN}, "reduce_min"),
        ({"ties": "last"}, "reduce_max"),
        ({"axis": 0, "along": 0, "op": ARGMIN, "index": u32}, "reduce_min"),
        ({"dtype": f16}, "reduce_max"),
        ({"dtype": i32}, "reduce_max"),
    ],
)
def test_the_element_at_the_argmax_is_the_maximum(options: dict[str, Any], want: str) -> None:
    graph = gather(**options)
    before = graph.clone()
    ctx = s.fuse(graph)
    assert h.names(graph) == [want]
    assert s.fired(ctx) == [("gather-at-arg", "reassociates")]
    dtype = graph.inputs[0].type.dtype.numpy
    for x in s.hard_inputs((4, 4), dtype):
        feeds = {"x": x, "z": x}
        # equal but for the sign of a zero
        for old, new in zip(h.evaluate(before, feeds), s.run_cpu(graph, feeds), strict=True):
            assert old.dtype == new.dtype
            assert np.array_equal(old, new)
    assert s.fired(s.fuse(gather(), allowed="exact")) == []


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"other": True}, "z is gathered, and the index is of x"),
        ({"along": 0}, "the index counts along [1], and axis 0 is gathered"),
        ({"twice": True}, "is used 2 times"),
        ({"dtype": i64}, "ReduceMax and ReduceMin of i64 need detours"),
        ({"dtype": u64}, "of u64 need detours"),
        ({"dtype": f64}, "directml has no ReduceMax of f64"),
    ],
)
def test_near_misses_of_gathers(options: dict[str, Any], reason: str) -> None:
    b = gather(**options)
    before = h.names(b)
    ctx = s.fuse(b)
    assert h.names(b) == before
    assert reason in s.reasons(ctx, "gather-at-arg")


def test_a_large_i64_is_not_compared_by_reduce_max() -> None:
    """ONNX Runtime's CPU provider compares i64 wrongly above 2^31; NumPy code and DirectML do not."""
    for target in ("cpu", "onnx", "directml"):
        graph = gather(dtype=i64)
        s.fuse(graph, target)
        assert h.names(graph) == ["argmax", "gather_elements"]
    for target in ("numpy", "directml-only"):
        graph = gather(dtype=i64)
        s.fuse(graph, target)
        assert h.names(graph) == ["reduce_max"]


def test_a_vector_is_gathered_too() -> None:
    for keepdims in (True, False):
        b = h.Building()
        x = b.input("x", (5,))
        graph = b.done(b(GATHER, x, b(ARGMAX, x, axes=[0], dtype=i64, keepdims=keepdims), axis=0))
        before = graph.clone()
        s.fuse(graph)
        assert h.names(graph) == ["reduce_max"]
        s.compare(before, graph, [a for a in s.hard_inputs((5,)) if a.any()])
    b = h.Building()
    x = b.input("x", (5, 5))
    graph = b.done(b(GATHER, x, b(ARGMAX, x, axes=[0], dtype=i64, keepdims=False), axis=0))
    s.fuse(graph)
    assert h.names(graph) == ["argmax", "gather"]  # whole rows, not elements


def test_rules_meet() -> None:
    """The element at the argmin of -x is the least of -x, and the index cast does not hide it."""
    b = h.Building()
    x = b.input("x", (3, 4))
    turned = b(NEG, x)
    index = b(CAST, b(ARGMIN, turned, axes=[1], dtype=i64), to=i32)
    graph = b.done(b(GATHER_ELEMENTS, turned, index, axis=1))
    s.fuse(graph)
    assert h.names(graph) == ["neg", "reduce_min"]
