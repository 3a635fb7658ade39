"""Results that hold locations are equal if they say the same: made twice, copied or pickled."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np
import pytest
from onnx import ModelProto, parser

import dmlc
from dmlc.diagnostics import Source, Span
from tests.rows import each_row

TEXT = """model m(x: f16[N, 8], q: f32[3]) -> (y, z) {
    s = reduce_sum(x * x, axes=[1])
    z = reduce_sum(s, axes=[0])
    unused = q + 1
    y = argmax(softmax(x, axes=[1]), axes=[1])
    return y, z
}
"""


def written() -> dmlc.Program:
    return dmlc.compile(dmlc.Source(TEXT, name="heads.dml"))


def built() -> dmlc.Program:
    g = dmlc.Graph("built")
    x = g.input("x", "f16", ("N", 8))
    g.output("z", dmlc.reduce_sum(dmlc.reduce_sum(x * x, axes=[1]), axes=[0]))
    return dmlc.compile(g)


def fixed() -> dmlc.FixedText:
    text = "model m(x: f32[4]) -> (y) {\n    y = softmx(x)\n    return y\n}\n"
    return dmlc.fix(dmlc.Source(text, name="f.dml"), unsafe=True)


def reduced() -> dmlc.Repro:
    model = parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (float[4] x) => (float[4] y) { h = Exp(x)  y = Neg(h) }'
    )

    def is_right(part: ModelProto, inputs: Any, expected: Any) -> bool:
        return all(node.op_type != "Exp" for node in part.graph.node)

    return dmlc.repro(model, check=is_right)


MADE: dict[str, Callable[[], Any]] = {
    "ledger": lambda: written().ledger,
    "diagnostics": lambda: written().diagnostics,
    "advice": lambda: written().advice,
    "ledger of a graph": lambda: built().ledger,
    "fix": fixed,
}


@each_row("make", MADE.values(), ids=list(MADE))
def test_results_are_equal_if_they_say_the_same(make: Callable[[], Any]) -> None:
    one = make()
    assert one
    for other in (make(), pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):
        assert one == other
        assert other == one
        assert hash(one) == hash(other)
    assert "object at" not in repr(one)


def test_remarks_of_equal_compilations_are_equal() -> None:
    one, other = written().remarks, written().remarks
    assert one
    assert one == other
    assert set(one) == set(other)
    assert all(remark != "a remark" for remark in one)
    changed = [msgspec.structs.replace(remark, reason=lambda: "another reason") for remark in one]
    assert not set(changed) & set(one)


def test_a_span_is_its_range_of_its_text() -> None:
    def span(name: str = "a.dml", text: str = "x\ny\n", column: int = 2) -> Span:
        return Span(Source(name, text), 1, 1, 1, column)

    assert span() == span()
    assert len({span(), span()}) == 1
    assert span() != span(name="b.dml")
    assert span() != span(text="x\nz\n")
    assert span() != span(column=3)
    assert span() != "a.dml:1:1"
    assert repr(span()) == "<Span a.dml:1:1 to 1:2>"
    assert Source.python("a.py") == Source.python("a.py") != Source("a.py", "")


def test_calls_of_one_line_stay_apart_and_equal_their_copies() -> None:
    program = built()
    spans = max([entry.spans for entry in program.ledger], key=len)
    assert len(spans) > 1
    assert len(set(spans)) == len(spans)
    copies = pickle.loads(pickle.dumps(spans))
    assert copies == spans


def test_copies_of_calls_of_one_line_stay_apart() -> None:
    spans = max([entry.spans for entry in built().ledger], key=len)
    assert len(spans) > 1
    assert set(pickle.loads(pickle.dumps(spans))) == set(spans)


@each_row("copied", [copy.deepcopy, copy.copy, lambda value: pickle.loads(pickle.dumps(value))])
def test_a_repro_with_arrays_equals_its_copy(copied: Callable[[Any], Any]) -> None:
    repro = reduced()
    assert repro == copied(repro)
    other = copied(repro)
    name = next(iter(other.inputs))
    assert repro != replace(other, inputs={name: other.inputs[name] + np.float32(1)})
    assert repro != replace(other, inputs={})
    blank = {name: np.full(3, np.nan, np.float32)}
    assert replace(repro, inputs=blank) == copied(replace(repro, inputs=blank))


def test_a_repro_is_not_another_kind_of_result() -> None:
    assert reduced() != fixed()
    with pytest.raises(TypeError, match="unhashable"):
        hash(reduced())
