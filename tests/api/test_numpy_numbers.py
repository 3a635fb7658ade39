"""Numbers of NumPy stand for those of Python in every argument, and leave no trace in what is written."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from onnx import parser

import dmlc
from tests.rows import each_row

MODEL = parser.parse_model(
    '<ir_version: 8, opset_import: ["": 17]> g (float[N, 4] x) => (float[N, 4] y) { h = Exp(x) y = Neg(h) }'
)
PROGRAM = dmlc.Source("model g(x: f32[N, 4]) -> (y) {\n    h = exp(x)\n    y = -h\n    return y\n}\n")

#: Options with numbers of NumPy, and the same with those of Python.
OPTIONS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    *[({"bind": {"N": kind(2)}}, {"bind": {"N": 2}}) for kind in (np.int64, np.uint8, np.array)],
    *[({"opset": kind(18)}, {"opset": 18}) for kind in (np.int32, np.array)],
    ({"profiles": {"N": np.int64(2)}}, {"profiles": {"N": 2}}),
    ({"profiles": {"N": np.array([1, 2])}}, {"profiles": {"N": [1, 2]}}),
    ({"shapes": {"x": np.array([2, 4])}}, {"shapes": {"x": (2, 4)}}),
    ({"shapes": {"x": (None, np.int16(4))}}, {"shapes": {"x": (None, 4)}}),
    ({"limits": {"nodes": np.int64(50)}}, {"limits": {"nodes": 50}}),
    ({"ranges": {"x": (np.float32(0), np.float64(1))}}, {"ranges": {"x": (0.0, 1.0)}}),
    ({"ranges": {"x": (np.int64(0), np.inf)}}, {"ranges": {"x": (0, None)}}),
    ({"ranges": {"x": np.array([0.0, 1.0])}}, {"ranges": {"x": [0.0, 1.0]}}),
]


def shown(options: dict[str, Any]) -> str:
    return repr(options)


@each_row("source", [MODEL, PROGRAM], ids=["model", "program"])
@each_row(("given", "plain"), OPTIONS, ids=[shown(given) for given, _ in OPTIONS])
def test_an_option_takes_numbers_of_numpy(source: Any, given: dict[str, Any], plain: dict[str, Any]) -> None:
    program, wanted = (dmlc.compile(source, target="cpu", **options) for options in (given, plain))
    assert program.to_bytes("onnx") == wanted.to_bytes("onnx")
    assert list(program.profiles) == list(wanted.profiles)
    assert json.loads(json.dumps(program.ledger_document())) == wanted.ledger_document()


def test_a_graph_takes_numbers_of_numpy() -> None:
    def made(integer: Any, number: Any) -> dmlc.Program:
        g = dmlc.Graph("g")
        n = g.dim("N", min=integer(2), max=integer(5))
        x = g.input("x", "f32", (n, integer(4)), range=(number(0), number(1)))
        g.output("y", dmlc.softmax(x, axes=(integer(0),)))
        return dmlc.compile(g, target="cpu")

    program, wanted = made(np.int64, np.float32), made(int, float)
    assert program.to_bytes("onnx") == wanted.to_bytes("onnx")
    assert program.to_bytes("dml") == wanted.to_bytes("dml")
    assert program.runner(threads=np.int64(2)).threads == 2


@each_row("wrong", [1.5, 2.0, "2", None, True, [2], np.array([2, 3]), np.float32(2), 1j, 10**30, object()])
@each_row("source", [MODEL, PROGRAM], ids=["model", "program"])
def test_anything_else_is_not_the_size_of_a_dim(source: Any, wrong: Any) -> None:
    for given in ({"bind": {"N": wrong}}, {"profiles": {"N": [1, wrong]}}):
        with pytest.raises(dmlc.DmlcError) as caught:
            dmlc.compile(source, **given)
        assert (caught.value.diagnostics[0].code.id, caught.value.exit_code) == ("E0555", 2)
        assert "N" in caught.value.diagnostics[0].message


def test_no_size_is_more_than_a_model_can_hold() -> None:
    with pytest.raises(dmlc.DmlcError, match="E0332"):
        dmlc.Graph("g").input("x", "f32", (2**63,))
    with pytest.raises(dmlc.DmlcError, match=r"E0332.*at most 2\^63 - 1 elements"):
        dmlc.Graph("g").input("x", "f32", (2**62, 4))
    with pytest.raises(dmlc.DmlcError, match="E0333"):
        dmlc.Graph("g").dim("N", max=2**63)
