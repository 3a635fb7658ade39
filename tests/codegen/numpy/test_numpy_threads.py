"""``THREADS`` of the fast style: the same bytes from several threads, and no warnings of theirs."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import numpy as np
import pytest
from numpy_models import Model, function, source

from dmlc.ir import Graph


def selection(op: str, *axes: int) -> Graph:
    model = Model()
    x = model.input("x", "f32", 24, 40, 64, 33)
    return model.returns(y=model.call(op, x, axes=list(axes)))


def top_k() -> Graph:
    model = Model()
    values, indices = model.node("top_k", model.input("x", "f32", 600, 2000), k=9, axis=1).results
    return model.returns(values=values, indices=indices)


GRAPHS = {
    "argmax": selection("argmax", 1, 3),
    "argmin": selection("argmin", 2),
    "hardmax": selection("hardmax", 1, 2),
    "first axes": selection("argmax", 0, 2),
    "top_k": top_k(),
}


def results(graph: Graph, threads: int, x: np.ndarray) -> tuple[Any, set[str]]:
    """The code's result, and the threads that worked on it."""
    made = function(source(graph, "fast"), graph.name)
    made.__globals__["THREADS"] = threads
    workers: set[str] = set()
    each = made.__globals__["_each"]

    def noted(work: Any, items: list[Any]) -> list[Any]:
        def one(item: Any) -> Any:
            workers.add(threading.current_thread().name)
            return work(item)

        return list(each(one, items))

    made.__globals__["_each"] = noted
    out = made(x)
    return (out if isinstance(out, tuple) else (out,)), workers


@pytest.mark.parametrize("name", GRAPHS)
def test_the_same_bytes(name: str) -> None:
    graph = GRAPHS[name]
    x = np.random.default_rng(0).integers(-40, 40, graph.inputs[0].shape).astype(np.float32)
    alone, workers = results(graph, 1, x)
    assert workers == {"MainThread"}
    shared, workers = results(graph, 3, x)
    assert ("MainThread" in workers) == (name == "first axes")
    for a, b in zip(alone, shared, strict=True):
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes()


def test_threads_warn_about_nothing() -> None:
    x = np.zeros((600, 2000), np.float32)
    x[::7], x[::5, 3] = np.inf, np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (values, _), _ = results(GRAPHS["top_k"], 2, x)
    assert np.isinf(values[7]).all()


def test_the_setting_stands_where_it_has_a_use() -> None:
    assert "\nTHREADS = 1  # worker threads" in source(GRAPHS["top_k"], "fast")
    assert "THREADS" not in source(GRAPHS["top_k"], "plain")
    small = Model()
    graph = small.returns(y=small.call("hardmax", small.input("x", "f32", 4, 5), axes=[1]))
    assert "THREADS" not in source(graph, "fast")


def test_an_input_of_that_name() -> None:
    model = Model()
    graph = model.returns(y=model.call("argmax", model.input("THREADS", "f32", 24, 40, 64, 33), axes=[1, 3]))
    made = function(source(graph, "fast"), graph.name)
    x = np.ones((24, 40, 64, 33), np.float32)
    assert not made(x).any()
    made.__globals__["THREADS_2"] = 2
    assert not made(x).any()
