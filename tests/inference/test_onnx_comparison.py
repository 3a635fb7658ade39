"""Our inference never contradicts ONNX's, and knows as much of most values."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from onnx import ModelProto

from tests.inference.onnx_comparison import Comparison, fixtures, generated, node_tests

SOURCES: dict[str, Callable[[], Iterable[tuple[str, ModelProto]]]] = {
    "node tests": node_tests,
    "fixtures": fixtures,
    "generated": lambda: generated(range(60)),
}


@pytest.mark.parametrize("source", SOURCES)
def test_no_type_contradicts_that_of_onnx(source: str) -> None:
    found = Comparison()
    for name, model in SOURCES[source]():
        found.model(name, model)
    assert found.contradictions == []
    assert found.less.total() <= 0.01 * found.values, dict(found.examples)
    assert found.less.total() <= found.more.total()
