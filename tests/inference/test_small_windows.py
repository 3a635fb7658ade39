"""Pools whose window is larger than what it slides over: the number of steps is rounded toward 0."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser

import dmlc
from tests.rows import each_row
from tools.model_checks import run, session

#: The window, its steps and the padding at the end.
WINDOWS = [(2, 2, 0), (3, 2, 0), (4, 3, 1), (5, 4, 0), (3, 1, 0), (3, 2, 2)]
SIZES = (1, 2, 3, 4, 5, 8)


def shape_of_pool(op: str, size: int | str, kernel: int, stride: int, pad: int) -> ModelProto:
    attributes = f"kernel_shape = [{kernel}], strides = [{stride}], pads = [0, {pad}]"
    text = f"g (float[1, 2, {size}] x) => (int64[3] s) {{ p = {op} <{attributes}> (x)  s = Shape (p) }}"
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> {text}')


def runs(model: ModelProto, feeds: dict[str, Any]) -> list[int] | None:
    try:
        return list(run(session(model), feeds)["s"])
    except Exception:  # the size would be negative
        return None


@each_row("window", WINDOWS)
@each_row("op", ["MaxPool", "AveragePool", "LpPool"])
def test_shapes_are_those_of_onnx_runtime(op: str, window: tuple[int, int, int]) -> None:
    opened = shape_of_pool(op, "H", *window)
    compiled = {target: dmlc.compile(opened, target=target).to_onnx() for target in ("cpu", "directml")}
    for size in SIZES:
        feeds = {"x": np.ones((1, 2, size), np.float32)}
        wanted = runs(opened, feeds)
        if wanted is None:
            continue
        fixed = dmlc.compile(shape_of_pool(op, size, *window), target="cpu").to_onnx()
        for model in (*compiled.values(), fixed):
            assert runs(model, feeds) == wanted, size


@pytest.mark.parametrize("pads", ["[1, 1]", "[0, 2]"])
def test_a_window_that_fits_any_size_gives_an_expression(pads: str) -> None:
    """The usual pool of a window of 3: its size is that of a convolution beside it."""
    text = f"""<ir_version: 8, opset_import: ["": 17]> g (float[1, 1, H] x) => (float[1, 1, K] y)
    <float[1, 1, 3] w = {{1, 2, 3}}> {{
        p = MaxPool <kernel_shape = [3], strides = [2], pads = {pads}> (x)
        c = Conv <strides = [2], pads = {pads}> (x, w)
        y = Add (p, c)
    }}"""
    program = dmlc.compile(parser.parse_model(text), target="onnx")
    types = {str(node.result.type) for node in program.graph}
    assert all("H" in type for type in types - {"f32[1, 1, 3]"})


def test_a_program_takes_windows_to_fit() -> None:
    text = """model m(x: f32[1, 3, H]) -> (y) {
        w = full(shape=[3, 3, 2], value=1, dtype=f32)
        y = onnx.MaxPool(x, kernel_shape=[2], strides=[2]) + onnx.Conv(x, w, strides=[2])
        return y
    }"""
    program = dmlc.compile(dmlc.Source(text, name="m.dml"), target="onnx")
    assert "H" in str(dict(program.signature.outputs)["y"])
