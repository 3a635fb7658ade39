"""The same three steps under pytest-benchmark, at sizes that only prove that they work there.

Workers of xdist run each once; ``pytest -n 0 tests/benchmarks`` times them.
"""

from __future__ import annotations

import numpy as np
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import dmlc
from benchmarks.operations import Operation, naive, random, written

OPERATIONS = [Operation("argmax", (0, 2)), Operation("hardmax", (1,)), Operation("sum", (0, 2))]


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
@pytest.mark.parametrize("backend", ["cpu", "numpy"])
def test_run(benchmark: BenchmarkFixture, operation: Operation, backend: str) -> None:
    x = random((4, 6, 8))
    program = dmlc.compile(written(operation, [x.shape]), target=backend)
    (found,) = benchmark(program.run, {"x": x}, backend=backend).values()
    (wanted,) = naive(operation, [x])
    np.testing.assert_allclose(np.squeeze(found), np.squeeze(wanted), rtol=1e-5)


def test_compile(benchmark: BenchmarkFixture) -> None:
    graph = written(OPERATIONS[0], [(4, 6, 8)])
    program = benchmark(lambda: dmlc.compile(graph, target="cpu"))
    assert program.to_onnx().graph.node
