"""Our inference never contradicts ONNX's, and knows as much of nearly all values."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from onnx import ModelProto

from tools.onnx_comparison import Comparison, fixtures, generated, node_tests

SOURCES: dict[str, Callable[[], Iterable[tuple[str, ModelProto]]]] = {
    "node tests": node_tests,
    "fixtures": fixtures,
    "generated": lambda: generated(range(50)),
}
#: Values of node tests, by operator, of which ONNX knows more. It believes the declared shapes of the items of a fed
#: sequence or optional, which no runtime checks. It types a Split that cannot run, in a branch that is not taken. It
#: takes a Loop that never runs for one that does.
LESS = {"SequenceAt": 8, "Identity": 4, "Add": 2, "Shape": 1, "OptionalGetElement": 1, "Split": 2, "Loop": 1}


@pytest.mark.parametrize("source", SOURCES)
def test_no_type_contradicts_that_of_onnx(source: str) -> None:
    found = Comparison()
    for name, model in SOURCES[source]():
        found.model(name, model)
    assert found.contradictions == []
    allowed = LESS if source == "node tests" else {}
    assert {op: n for op, n in found.less.items() if n > allowed.get(op, 0)} == {}, dict(found.examples)
    assert found.less.total() <= found.more.total()
