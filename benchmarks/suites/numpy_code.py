"""The generated NumPy code: selections, chains of elementwise work and reductions, and top-k."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import dmlc
from benchmarks.measure import Deferred, FunctionRun, Runner, contest, copying, reading
from benchmarks.nets import Net
from benchmarks.operations import Operation, naive, random, written
from benchmarks.peers import runners
from benchmarks.records import OURS, Case, Settings
from benchmarks.sessions import SessionRun
from benchmarks.suites.selections import label

Shape = tuple[int, ...]

_FEATURES, _MATRIX, _HEADS = (8, 64, 128, 128), (4096, 1024), (16, 12, 197, 197)
_CASES: tuple[tuple[str, Shape, Shape, str], ...] = (
    ("argmax", _FEATURES, (2, 3), "contiguous"),
    ("argmax", _FEATURES, (0, 1, 2, 3), "contiguous"),
    ("argmax", _MATRIX, (1,), "contiguous"),
    ("argmax", _FEATURES, (0, 2), "strided"),
    ("argmax", _FEATURES, (1, 3), "strided"),
    ("argmax", (64, 3, 224, 224), (1,), "strided"),
    ("argmax", (64, 3, 224, 224), (0, 2), "strided"),
    ("argmax", (32, 1024, 1024), (1,), "strided"),
    ("argmax", _MATRIX, (0,), "strided"),
    ("hardmax", _FEATURES, (2, 3), "hardmax"),
    ("hardmax", _FEATURES, (0, 2), "hardmax"),
    ("softmax", _HEADS, (3,), "chain"),
    ("softmax", _MATRIX, (1,), "chain"),
    ("softmax", _FEATURES, (1,), "chain"),
    ("logsumexp", _MATRIX, (1,), "chain"),
    ("layernorm", _MATRIX, (1,), "chain"),
    ("variance", _MATRIX, (1,), "chain"),
    ("several", _FEATURES, (2, 3), "chain"),
    ("l2", _FEATURES, (2, 3), "vecdot"),
    ("dot", _MATRIX, (1,), "vecdot"),
    ("sum", _FEATURES, (0, 2), "plain"),
    ("max", _FEATURES, (1, 3), "plain"),
)
_TOP_K: tuple[tuple[Shape, int], ...] = (
    ((32, 32000), 5),
    ((32, 32000), 50),
    ((1024, 4096), 10),
    ((4096, 4096), 1),
    ((1, 1000000), 100),
    ((65536, 64), 8),
)
_QUICK: tuple[tuple[str, Shape, Shape, str], ...] = (
    ("argmax", (4, 6, 8), (0, 2), "strided"),
    ("hardmax", (4, 6), (1,), "hardmax"),
    ("softmax", (4, 6), (1,), "chain"),
    ("dot", (4, 6), (1,), "vecdot"),
)
_CLOSE = 1e-4


def loaded(program: dmlc.Program, threads: int = 1) -> Callable[..., Any]:
    """The function of the generated module, which may use so many threads."""
    text = program.to_numpy("fast")
    namespace: dict[str, Any] = {"__name__": "generated"}
    exec(compile(text, "<generated>", "exec"), namespace)
    namespace["THREADS"] = threads
    name = next(item.name for item in ast.parse(text).body if isinstance(item, ast.FunctionDef))
    function: Callable[..., Any] = namespace[name]
    return function


def numpy_code(settings: Settings) -> Iterator[Case]:
    for name, shape, axes, tag in _QUICK if settings.quick else _CASES:
        operation = Operation(name, axes)
        arrays = [random(shape, seed) for seed in range(2 if name == "dot" else 1)]
        rivals: dict[str, Runner | Deferred] = {
            OURS: Deferred(_ours, written(operation, [shape] * len(arrays)), arrays, settings.threads),
            "naive": FunctionRun(_expression(operation), *arrays),
            **runners(operation, arrays, settings),
        }
        case = Case("numpy", f"{name} of {label(shape, axes)}", settings.threads, (tag,))
        bound = copying(arrays[0]) if name in ("softmax", "layernorm", "hardmax") else reading(*arrays)
        tolerance = None if operation.exact else _CLOSE
        yield contest(case, settings, rivals, naive(operation, arrays), tolerance=tolerance, bound=bound)
    for shape, k in [((4, 64), 3)] if settings.quick else _TOP_K:
        yield _top_k(shape, k, settings)


def _ours(graph: dmlc.Graph, arrays: Sequence[np.ndarray], threads: int) -> FunctionRun:
    return FunctionRun(loaded(dmlc.compile(graph, target="numpy"), threads), *arrays)


def _expression(operation: Operation) -> Callable[..., list[np.ndarray]]:
    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        return naive(operation, arrays)

    return run


def _top_k(shape: Shape, k: int, settings: Settings) -> Case:
    x = random(shape, 7)
    graph = dmlc.Graph("model")
    found = dmlc.top_k(graph.input("x", dtype="f32", shape=shape), k=k, axis=1)
    graph.output("values", found.values)
    graph.output("indices", dmlc.cast(found.indices, to="i64"))
    net = Net()
    ends = net.many("TopK", net.input("x", shape), net.ints([k]), results=2, axis=1)
    rivals: dict[str, Runner | Deferred] = {
        OURS: Deferred(_ours, graph, [x], settings.threads),
        "stable argsort": FunctionRun(_sorted(k), x),
        "TopK": SessionRun(net.model(*ends), {"x": x}, settings.threads),
    }
    tag = "long rows" if shape[1] >= 4096 or settings.quick else "short rows"
    case = Case("numpy", f"top {k} of {'x'.join(map(str, shape))}", settings.threads, ("top_k", tag))
    return contest(case, settings, rivals, _sorted(k)(x), bound=reading(x))


def _sorted(k: int) -> Callable[[np.ndarray], Sequence[np.ndarray]]:
    def run(x: np.ndarray) -> Sequence[np.ndarray]:
        index = np.argsort(-x, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(x, index, axis=1), index

    return run
