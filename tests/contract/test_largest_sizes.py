"""Tensors that no runtime can hold are refused with a code, wherever their sizes come from."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import parser

import dmlc
from tests.rows import each_row

HALF = 2**62
GROW = {
    "concat": "concat(x, x, axis=0)",
    "pad": "pad(x, pads=[4611686018427387904, 0])",
    "tile": "tile(x, repeats=[2])",
    "expand": "reshape(x, shape=[1, N]) + full(shape=[3, 1], value=1, dtype=f32)",
}


def compiled(size: int | str, call: str, **options: Any) -> dmlc.Program:
    text = f"model m(x: f32[{size}]) -> (y) {{\n    y = {call.replace('N', str(size))}\n    return y\n}}\n"
    return dmlc.compile(dmlc.Source(text, name="m.dml"), **options)


@each_row("call", GROW.values(), ids=list(GROW))
def test_a_result_of_a_program(call: str) -> None:
    with pytest.raises(dmlc.DmlcError, match=r"E0332.*at most 2\^63 - 1 elements \(m\.dml:2:"):
        compiled(HALF, call)


@each_row("target", ["cpu", "onnx", "numpy"])
@each_row("call", GROW.values(), ids=list(GROW))
def test_a_bound_program(target: str, call: str) -> None:
    with pytest.raises(dmlc.DmlcError, match=rf"E0555.*N={HALF} makes a tensor of more than"):
        compiled("N", call, bind={"N": HALF}, target=target)
    assert compiled("N", call, bind={"N": 5}, target=target).opset


def _concat(size: int | str) -> Any:
    text = f"g (float[{size}] x) => (float[z] y) {{ t = Concat <axis = 0> (x, x)  y = Neg (t) }}"
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}')


def test_a_value_of_a_model() -> None:
    with pytest.raises(dmlc.DmlcError, match=rf"E0431.*a size of {2 * HALF}, above"):
        dmlc.compile(_concat(HALF), target="onnx")
    with pytest.raises(dmlc.DmlcError, match=rf"E0555.*does not take N={HALF}: a value has a size of"):
        dmlc.compile(_concat("N"), target="onnx", bind={"N": HALF})


def test_the_largest_are_taken() -> None:
    assert compiled(2**63 - 1, "relu(x)").opset
    assert compiled(HALF - 1, "concat(x, x, axis=0)").opset
