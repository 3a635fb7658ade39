"""Flatten and argmax are one search over several axes, and ONNX says that in two nodes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pass_helpers as h
import pytest
import selection_helpers as s

from dmlc.ir.dtype import f32, i64
from dmlc.ops.move import RESHAPE, SQUEEZE, TRANSPOSE
from dmlc.ops.select import ARGMAX, ARGMIN
from tests.rows import each_row


def flat(
    shape: tuple[Any, ...],
    to: tuple[Any, ...],
    axis: int,
    *,
    op: Any = ARGMAX,
    ties: str = "first",
    perm: tuple[int, ...] = (),
    keepdims: bool = False,
    then: Any = None,
    **dims: tuple[int, float],
) -> Any:
    b = h.Building(**dims)
    x = b.input("x", shape, f32)
    value = b(TRANSPOSE, x, perm=list(perm)) if perm else x
    value = b(RESHAPE, value, shape=[value.shape[d] if isinstance(d, int) and d < 0 else d for d in to])
    y = b(op, value, axes=[axis], ties=ties, dtype=i64, keepdims=keepdims)
    return b.done(then(b, y) if then else y)


@each_row(
    ("options", "axes"),
    [
        ({"shape": (2, 3, 4, 5), "to": (2, 60), "axis": 1}, (1, 2, 3)),
        ({"shape": (2, 3, 4, 5), "to": (120,), "axis": 0}, (0, 1, 2, 3)),
        ({"shape": (2, 3, 4, 5), "to": (2, 3, 20), "axis": 2, "op": ARGMIN}, (2, 3)),
        ({"shape": (2, 3, 4, 5), "to": (6, 4, 5), "axis": 0, "ties": "last"}, (0, 1)),
        ({"shape": (2, 3, 4, 5), "to": (2, 12, 5), "axis": 1}, (1, 2)),
        ({"shape": (2, 1, 4, 5), "to": (2, 20), "axis": 1}, (1, 2, 3)),
        ({"shape": (2, 4, 5, 1), "to": (2, 20), "axis": 1}, (1, 2, 3)),
        ({"shape": (2, 3, 4), "to": (2, 12), "axis": 1, "keepdims": True,
          "then": lambda b, y: b(RESHAPE, y, shape=[2, 1, 1])}, (1, 2)),
        ({"shape": (2, 3, 4), "to": (2, 12), "axis": 1, "keepdims": True,
          "then": lambda b, y: b(SQUEEZE, y, axes=[1])}, (1, 2)),
        # axes that stand apart, brought together by a transpose
        ({"shape": (2, 3, 4), "perm": (1, 0, 2), "to": (3, 8), "axis": 1}, (0, 2)),
        ({"shape": (2, 3, 4), "perm": (0, 2, 1), "to": (8, 3), "axis": 0}, (0, 2)),
    ],
)  # fmt: skip
def test_a_flattened_search(options: dict[str, Any], axes: tuple[int, ...]) -> None:
    graph = flat(**options)
    before = graph.clone()
    ctx = s.fuse(graph, allowed="exact")
    assert len(h.names(graph)) == 1
    (node,) = list(graph)
    assert node.attributes.axes == axes
    assert ("arg-of-flattened", "exact") in s.fired(ctx)
    s.compare(before, graph, s.hard_inputs(options["shape"]))
    assert len(s.operators(graph)) <= len(s.operators(before))
    text = before.clone()
    s.fuse(text, "numpy", "exact")
    assert len(h.names(text)) == 1


@pytest.mark.parametrize(
    ("shape", "to", "axis", "want"),
    [
        (("N", 3, 4, 5), (-2, 60), 1, ["Flatten", "ArgMax"]),
        (("N", "C", "H", "W"), (-2, "C*H*W"), 1, ["Flatten", "ArgMax"]),
        (("N", "C"), ("N*C",), 0, ["Reshape", "ArgMax"]),
        (("N", "C", 4, 5), (-2, -2, 20), 2, ["Reshape", "ArgMax"]),
    ],
)
def test_symbolic_sizes_are_not_computed(shape: Any, to: Any, axis: int, want: list[str]) -> None:
    """Even where the batch may be empty, as dims of models may be."""
    b = h.Building()
    b.graph.dims.least = 0
    x = b.input("x", shape)
    n, *rest = x.shape
    product: Any = 1
    for size in rest:
        product = product * size
    sizes = [product if d == "C*H*W" else n * x.shape[-1] if d == "N*C" else d for d in to]
    sizes = [x.shape[i] if d == -2 else d for i, d in enumerate(sizes)]
    graph = b.done(b(ARGMAX, b(RESHAPE, x, shape=sizes), axes=[axis], dtype=i64, keepdims=False))
    before = graph.clone()
    s.fuse(graph)
    assert h.names(graph) == ["argmax"]
    assert s.operators(graph) == want
    concrete = tuple(d if isinstance(d, int) else i + 2 for i, d in enumerate(shape))
    for array in s.hard_inputs(concrete):
        want_values = h.evaluate(before, {"x": array})
        h.assert_equal(want_values, h.evaluate(graph, {"x": array}))
        h.assert_equal(want_values, s.run_cpu(graph, {"x": array}))
    if axis == 1 and shape[1] == 3:
        (empty,) = s.run_cpu(graph, {"x": np.zeros((0, 3, 4, 5), np.float32)})
        assert empty.shape == (0,)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"shape": (2, 3, 4), "to": (2, 12), "axis": 1, "keepdims": True}, "would cost a move"),
        ({"shape": (2, 3, 4), "to": (6, 4), "axis": 1}, ""),
        ({"shape": (2, 3, 4), "to": (6, 4), "axis": 0, "keepdims": True}, "would cost a move"),
        ({"shape": (2, 6), "to": (2, 2, 3), "axis": 2}, ""),
        ({"shape": (4, 3, 2), "to": (6, 4), "axis": 1}, ""),
        ({"shape": (2, 3, 4, 5), "to": (6, 20), "axis": 1}, ""),
    ],
)
def test_near_misses(options: dict[str, Any], reason: str) -> None:
    graph = flat(**options)
    ctx = s.fuse(graph)
    assert h.names(graph) == ["reshape", "argmax"]
    assert reason in s.reasons(ctx, "arg-of-flattened")


def test_a_computed_shape_is_not_traded_for_a_copied_one() -> None:
    b = h.Building()
    b.graph.dims.least = 0
    x = b.input("x", ("N", "C", 3, "W"))
    merged = b(RESHAPE, x, shape=[x.shape[0] * x.shape[1], 3, x.shape[3]])
    graph = b.done(b(ARGMAX, merged, axes=[0], dtype=i64, keepdims=False))
    ctx = s.fuse(graph)
    assert h.names(graph) == ["reshape", "argmax"]
    assert "would have to be computed" in s.reasons(ctx, "arg-of-flattened")
    s.fuse(graph, "numpy")
    assert h.names(graph) == ["argmax"]


def test_an_axis_that_is_declared_as_empty_perhaps() -> None:
    """The language refuses a search over it, so none is made."""
    b = h.Building(N=(0, 9))
    x = b.input("x", ("N", "C"))
    graph = b.done(b(ARGMAX, b(RESHAPE, x, shape=[x.shape[0] * x.shape[1]]), axes=[0], dtype=i64, keepdims=False))
    assert "may be empty" in s.reasons(s.fuse(graph), "arg-of-flattened")


def test_column_major_is_not_row_major() -> None:
    """The index counts the columns first: the transpose must stay."""
    graph = flat((2, 4, 5), (2, 20), 1, perm=(0, 2, 1))
    before = graph.clone()
    ctx = s.fuse(graph)
    assert h.names(graph) == ["transpose", "argmax"]
    assert "the index counts the axes in the order [2, 1]" in s.reasons(ctx, "drop-transpose-before-reduction")
    s.compare(before, graph, s.hard_inputs((2, 4, 5)))
    assert s.operators(graph) == ["Transpose", "Reshape", "ArgMax"]


def test_an_argmax_of_an_argmax_is_no_search_over_both() -> None:
    b = h.Building()
    x = b.input("x", (2, 4, 5))
    inner = b(ARGMAX, x, axes=[2], dtype=i64, keepdims=False)
    graph = b.done(b(ARGMAX, inner, axes=[1], dtype=i64, keepdims=False))
    assert s.fired(s.fuse(graph)) == []


def test_a_reshape_that_others_read_stays() -> None:
    b = h.Building()
    merged = b(RESHAPE, b.input("x", (2, 3, 4)), shape=[2, 12])
    graph = b.done(b(ARGMAX, merged, axes=[1], dtype=i64, keepdims=False), merged)
    assert "is used 2 times" in s.reasons(s.fuse(graph), "arg-of-flattened")


@pytest.mark.parametrize(
    ("shape", "axes", "keepdims", "want"),
    [
        ((2, 1, 4, 5), (1, 2, 3), False, ["Reshape", "ArgMax"]),
        ((2, 4, 5, 1), (1, 2, 3), False, ["Reshape", "ArgMax"]),
        ((2, 4, 5, 1), (1, 2, 3), True, ["Reshape", "ArgMax", "Reshape"]),
        ((2, 1, 4, 1), (1, 2, 3), True, ["ArgMax"]),
        ((4, 5), (0, 1), False, ["Reshape", "ArgMax"]),
        ((4, 5, 6), (0, 2), True, ["Transpose", "Reshape", "ArgMax", "Reshape"]),
        ((4, 5, 6), (0, 2), False, ["Transpose", "Reshape", "ArgMax"]),
    ],
)
def test_lowering_of_searches_over_axes(
    shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool, want: Any
) -> None:
    b = h.Building()
    graph = b.done(b(ARGMAX, b.input("x", shape), axes=list(axes), dtype=i64, keepdims=keepdims))
    s.fuse(graph)
    assert s.operators(graph) == want
    for array in s.hard_inputs(shape):
        h.assert_equal(h.evaluate(graph, {"x": array}), s.run_cpu(graph, {"x": array}))
