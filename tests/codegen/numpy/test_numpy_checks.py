"""The checks at the head of a generated function: every message names the parameter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy_models import Model, compare, expected, function, run, source

from dmlc.ir import symbol
from tests.rows import each_row


def zeros(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return np.zeros(shape, dtype)


def identity(*shapes: tuple[Any, ...], **dims: tuple[float, float]) -> Any:
    """A function that only checks: its inputs have these shapes."""
    model = Model(**dims)
    names = [model.input("xyz"[i], "f32", *shape) for i, shape in enumerate(shapes)]
    return function(source(model.returns(out=names[0])))


def test_what_fits_is_taken() -> None:
    made = identity(("n", 3), ("m", "n"), n=(0, 4), m=(2, float("inf")))
    x = zeros(0, 3)
    assert made(x, zeros(2, 0)) is x
    made(zeros(4, 3), zeros(900, 4))


@pytest.mark.parametrize(
    ("bad", "error", "message"),
    [
        ([1.0, 2.0, 3.0], TypeError, "x must be a NumPy array, not list"),
        (zeros(3, dtype=np.float64), TypeError, "x must have dtype float32, not float64"),
        (zeros(3).astype(">f4"), TypeError, "x must have dtype float32, not >f4"),
        (zeros(4), ValueError, "x must have shape [3], not [4]"),
        (zeros(3, 1), ValueError, "x must have shape [3], not [3, 1]"),
        (zeros(), ValueError, "x must have shape [3], not []"),
    ],
)
def test_wrong_array(bad: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        identity((3,))(bad)
    assert str(caught.value) == message


@each_row(
    ("shapes", "feeds", "message"),
    [
        ([("n", 3), ("n",)], [(2, 3), (4,)], "y must have shape [2], not [4]"),
        ([("n", 3)], [(2, 4)], "x must have shape [n, 3], not [2, 4]"),
        ([("n", "n")], [(2, 3)], "axis 1 of x must be n = 2, not 3"),
        ([("free", 2)], [(0, 2)], "free (axis 0 of x) must be 1 or more, not 0"),
        ([("n",)], [(9,)], "n (axis 0 of x) must be 2 to 8, not 9"),
        ([("n",)], [(1,)], "n (axis 0 of x) must be 2 to 8, not 1"),
        ([("low",)], [(6,)], "low (axis 0 of x) must be 5 or less, not 6"),
        ([("high",)], [(6,)], "high (axis 0 of x) must be 7 or more, not 6"),
        ([("four",)], [(6,)], "four (axis 0 of x) must be 4, not 6"),
        ([("n",), (symbol("n") * 2,)], [(3,), (5,)], "y must have shape [6], not [5]"),
        ([(symbol("n") * 2 + 1,), ("n",)], [(6,), (3,)], "axis 0 of x must be 2 * n + 1 = 7, not 6"),
        ([(symbol("n") * symbol("m"),), ("n", "m")], [(6,), (3, 3)], "axis 0 of x must be m * n = 9, not 6"),
    ],
)
def test_wrong_sizes(shapes: list[tuple[Any, ...]], feeds: list[tuple[int, ...]], message: str) -> None:
    made = identity(*shapes, n=(2, 8), low=(0, 5), high=(7, float("inf")), four=(4, 4))
    with pytest.raises(ValueError) as caught:
        made(*[zeros(*shape) for shape in feeds])
    assert str(caught.value) == message


def test_conditions() -> None:
    model = Model()
    x = model.input("x", "f32", "n", "m")
    values, _ = model.node("top_k", x, k=5, axis=0).results
    graph = model.returns(v=values, r=model.call("reshape", x, shape=[3, symbol("n")]))
    assert len(graph.conditions) == 2
    run(graph, [zeros(5, 3)])
    with pytest.raises(ValueError, match=r"5 <= n does not hold for n = 4 \(axis 0 of x\): k is 5, axis 0 has n elem"):
        run(graph, [zeros(4, 3)])
    with pytest.raises(ValueError, match=r"m = 2 \(axis 1 of x\), n = 6 \(axis 0 of x\)"):
        run(graph, [zeros(6, 2)])


def test_sizes_in_attributes() -> None:
    n, m = symbol("n"), symbol("m")
    model = Model(n=(2, 9), m=(1, 9))
    x = model.input("x", "f32", "n", "m")
    graph = model.returns(
        r=model.call("reshape", x, shape=[n * m // 1]),
        i=model.call("iota", length=n * 2 - 1, dtype="f32"),
        f=model.call("full", shape=[m, n - 1], value=7, dtype="i8"),
        s=model.call("slice", x, starts=[n - 1], ends=[n], axes=[0]),
        h=model.call("one_hot", model.call("argmax", x, axes=[0]), depth=n),
        e=model.call("expand", x, shape=[n + m, 1, 1]),
        p=model.call("split", x, axis=0, sizes=[n]),
    )
    for shape in ((2, 1), (3, 4)):
        feed = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        compare(run(graph, [feed]), expected(graph, [feed]))


def test_scalars_are_arrays_of_rank_0_in_and_out() -> None:
    model = Model()
    x = model.input("x", "f32")
    graph = model.returns(y=model.call("+", x, 1.0))
    for feed in (np.float32(2), np.array(2, np.float32)):
        (got,) = run(graph, [feed])  # type: ignore[list-item]
        assert got.shape == () and got.dtype == np.float32 and got == 3


def test_no_dim_is_bound_that_nothing_needs() -> None:
    model = Model(n=(0, float("inf")))
    text = source(model.returns(y=model.call("neg", model.input("x", "f32", "n"))))
    assert "n = x" not in text and '("n",)' in text


def test_arguments_are_not_changed() -> None:
    model = Model()
    x, i = model.input("x", "f32", 3), model.input("i", "i64", 1)
    graph = model.returns(y=model.call("scatter_elements", x, i, model.constant(np.ones(1, np.float32))))
    feed = zeros(3)
    run(graph, [feed, np.array([1])])
    assert not feed.any()
