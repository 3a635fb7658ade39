"""The fast style computes chains part by part; the results are those of the whole."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from numpy_models import Model, check, compare, expected, function, sample, source
from numpy_random import random_graph

from dmlc.codegen.numpy import emit
from dmlc.codegen.numpy.names import identifier
from dmlc.ir import Graph

BIG = (70, 40, 60)  # some parts; each axis is long enough to be split


def by_parts(graph: Graph) -> int:
    return source(graph).count("_by_parts(part")


def in_tiny_parts(graph: Graph) -> Any:
    """The function of the generated code, for parts of few elements."""
    made = function(source(graph), identifier(graph.name))
    for name, value in made.__globals__.items():
        if name.startswith("_parts"):
            value.__defaults__ = (300, 1) if graph.inputs[0].shape == BIG else (4, 1)
    return made


def feed(*shape: int, dtype: str = "float32") -> np.ndarray:
    return np.random.default_rng(len(shape)).normal(size=shape).astype(dtype)


@pytest.mark.parametrize("axes", [[0], [1], [2], [0, 1], [0, 2], [1, 2]], ids=str)
@pytest.mark.parametrize("op", ["softmax", "log_softmax", "mean_variance_norm", "reduce_log_sum_exp", "reduce_l1"])
@pytest.mark.parametrize("dtype", ["f16", "f32"])
def test_operations_that_read_more_than_once(op: str, axes: list[int], dtype: str) -> None:
    model = Model()
    x = model.input("x", dtype, *BIG)
    graph = model.returns(y=model.call(op, x, axes=axes))
    assert by_parts(graph) == 1
    check(graph, feed(*BIG, dtype={"f16": "float16", "f32": "float32"}[dtype]))


@pytest.mark.parametrize("axis", [1, 2])
def test_norms_with_scale_and_bias(axis: int) -> None:
    model = Model()
    x = model.input("x", "f32", *BIG)
    scale, bias = [model.input(name, "f32", *BIG[axis:]) for name in ("scale", "bias")]
    graph = model.returns(
        a=model.call("layer_norm", x, scale, bias, axis=axis),
        b=model.call("rms_norm", x, scale, axis=axis),
        c=model.call("lp_norm", x, axis=axis, p=1),
    )
    assert by_parts(graph) == 1
    check(graph, feed(*BIG), feed(*BIG[axis:]), feed(*BIG[axis:]))


def test_many_results_of_one_reading() -> None:
    model = Model()
    x = model.input("x", "f64", *BIG)
    made = {f"{op}_{keep}": model.call(op, x, axes=[2], keepdims=keep)
            for op in ("reduce_sum", "reduce_max", "reduce_mean", "reduce_l2", "reduce_min")
            for keep in (True, False)}  # fmt: skip
    graph = model.returns(**made)
    assert by_parts(graph) == 1
    check(graph, feed(*BIG, dtype="float64"))


def test_operands_that_are_stretched() -> None:
    model = Model()
    x, row, column, plane, last = [
        model.input(name, "f32", *shape)
        for name, shape in [
            ("x", BIG),
            ("row", (60,)),
            ("column", (70, 1, 1)),
            ("plane", (40, 60)),
            ("last", (1, 40, 1)),
        ]
    ]
    table = model.constant(feed(*BIG), "table")
    y = model.call("*", model.call("+", model.call("+", x, row), column), plane, name="y")
    z = model.call("where", model.call("<", y, last), model.call("-", y, table), y)
    graph = model.returns(z=z, total=model.call("reduce_sum", z, axes=[1]))
    assert by_parts(graph) == 1
    feeds = [feed(*shape) for shape in (BIG, (60,), (70, 1, 1), (40, 60), (1, 40, 1))]
    check(graph, *feeds)
    compare(in_tiny_parts(graph)(*feeds), expected(graph, feeds))


def test_first_axes_are_reduced() -> None:
    """There the parts are columns, not too narrow."""
    model = Model()
    x = model.input("x", "f32", 300, 900)
    y = model.call("exp", model.call("*", x, 0.5))
    graph = model.returns(y=model.call("/", y, model.call("reduce_sum", y, axes=[0])))
    assert by_parts(graph) == 1
    check(graph, feed(300, 900))


def test_what_needs_a_result_and_is_needed_comes_between() -> None:
    """No region on both sides of an operation that takes all elements together."""
    model = Model()
    x = model.input("x", "f32", *BIG)
    a = model.call("exp", x, name="a")
    b = model.call("reduce_sum", a, axes=[2], name="b")
    turned = model.call("transpose", b, perm=[1, 0, 2], name="turned")
    back = model.call("transpose", turned, perm=[1, 0, 2], name="back")
    c = model.call("/", a, back, name="c")
    d = model.call("reduce_max", model.call("abs", c), axes=[1], name="d")
    e = model.call("+", a, 1.0, name="e")
    graph = model.returns(d=d, e=e)
    assert by_parts(graph) == 2
    check(graph, feed(*BIG))


def test_full_reductions_have_no_parts() -> None:
    model = Model()
    x = model.input("x", "f32", *BIG)
    graph = model.returns(y=model.call("reduce_max", model.call("exp", x), axes=[0, 1, 2]))
    assert by_parts(graph) == 0
    check(graph, feed(*BIG))


def test_sizes_that_are_not_known() -> None:
    model = Model(n=(0, 10**9))
    x = model.input("x", "f32", "n", "m")
    y = model.call("softmax", model.call("*", x, 2.0), axes=[1])
    graph = model.returns(y=y, s=model.call("reduce_sum", y, axes=[1], keepdims=False))
    assert by_parts(graph) == 1
    for shape in [(0, 3), (1, 1), (3, 5), (1, 300_000), (300_000, 1), (700, 400)]:
        check(graph, feed(*shape))


def test_small_arrays_are_left_alone() -> None:
    model = Model(n=(1, 8))
    x = model.input("x", "f32", "n", 100)
    graph = model.returns(y=model.call("softmax", model.call("*", x, 2.0), axes=[1]))
    assert by_parts(graph) == 0
    assert "out=" not in source(graph)


def test_one_pass_is_left_alone() -> None:
    model = Model()
    x, y = [model.input(name, "f32", *BIG) for name in "xy"]
    graph = model.returns(a=model.call("reduce_max", x, axes=[1]), b=model.call("+", model.call("*", y, 2.0), 1.0))
    assert by_parts(graph) == 0


def test_what_shares_an_operand_is_read_together() -> None:
    model = Model()
    x = model.input("x", "f32", *BIG)
    graph = model.returns(a=model.call("reduce_max", x, axes=[1]), b=model.call("+", x, 1.0))
    assert by_parts(graph) == 1
    check(graph, feed(*BIG))


@pytest.mark.parametrize("shape", [(700, 1500), (700, 40)], ids=str)
def test_the_size_of_numpys_buffer_is_as_it_was(shape: tuple[int, int]) -> None:
    """It is smaller only while long rows are worked on, even if that fails."""
    model = Model()
    graph = model.returns(y=model.call("softmax", model.input("x", "f32", *shape), axes=[1]))
    made = function(source(graph))
    sizes: list[int] = []

    def softmax(x: np.ndarray, **keywords: Any) -> np.ndarray:
        sizes.append(np.getbufsize())
        if len(sizes) > 1:
            raise MemoryError
        return x

    before = np.getbufsize()
    made.__globals__["_softmax"] = softmax
    if shape[1] == 1500:
        with pytest.raises(MemoryError):
            made(feed(*shape))
        assert sizes == [512, 512]
    else:
        made(feed(*shape))
        assert sizes == [before]
    assert np.getbufsize() == before


def test_the_plain_style_has_no_parts() -> None:
    model = Model()
    x = model.input("x", "f32", *BIG)
    graph = model.returns(y=model.call("softmax", x, axes=[1]))
    text = emit(graph, "plain").payload
    assert "_by_parts" not in text
    assert "return powers / np.sum(powers, axis=axes, keepdims=True)" in text


@pytest.mark.parametrize("seed", range(120))
def test_random_graphs_in_tiny_parts(seed: int) -> None:
    graph, feeds = random_graph(random.Random(seed).choice, steps=14)
    results = in_tiny_parts(graph)(*feeds)
    compare((results,) if len(graph.outputs) == 1 else results, expected(graph, feeds))


# --- dot products


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("shape", [(5000,), (3, 5000), (9, 1024), (700, 40, 3), (40, 2, 90, 3)], ids=str)
def test_sums_of_products(dtype: str, shape: tuple[int, ...]) -> None:
    for axes in (
        [0],
        [len(shape) - 1],
        list(range(len(shape))),
        list({0, len(shape) - 1}),
        list(range(len(shape)))[:2],
    ):
        for keep in (True, False):
            model = Model()
            x, y = [model.input(name, dtype, *shape) for name in "xy"]
            graph = model.returns(
                dot=model.call("reduce_sum", model.call("*", x, y), axes=axes, keepdims=keep),
                squares=model.call("reduce_sum_square", x, axes=axes, keepdims=keep),
                length=model.call("reduce_l2", y, axes=axes, keepdims=keep),
            )
            assert "_dot(x, y" in source(graph)
            feeds = [sample(dtype, shape, seed) for seed in (1, 2)]
            check(graph, *feeds)


def test_a_product_with_another_use_is_written() -> None:
    model = Model()
    x, y = [model.input(name, "f32", 90, 90) for name in "xy"]
    product = model.call("*", x, y, name="product")
    graph = model.returns(dot=model.call("reduce_sum", product, axes=[1]), product=product)
    assert "_dot(" not in source(graph)
    check(graph, sample("f32", (90, 90), 1), sample("f32", (90, 90), 2))


def test_dot_products_are_no_less_exact_than_sums() -> None:
    model = Model()
    x = model.input("x", "f32", 4, 100_000)
    made = function(source(model.returns(y=model.call("reduce_sum_square", x, axes=[1], keepdims=False))))
    feed = np.random.default_rng(0).random((4, 100_000)).astype(np.float32)
    exact = np.sum(feed.astype(np.float64) ** 2, axis=1)
    assert np.abs(made(feed) - exact).max() <= 2 * np.abs(np.sum(feed * feed, axis=1) - exact).max() + 1e-3


def test_sums_of_integer_products_wrap() -> None:
    model = Model()
    x = model.input("x", "i8", 90, 90)
    graph = model.returns(y=model.call("reduce_sum", model.call("*", x, x), axes=[1]))
    assert "_dot(" not in source(graph)
    check(graph, np.full((90, 90), 100, np.int8))
