"""Every example of the four DirectML pages, through every path.

The numbers are those printed on the pages of DML_ARGMAX_OPERATOR_DESC, DML_ARGMIN_OPERATOR_DESC,
DML_TOP_K1_OPERATOR_DESC and DML_ACTIVATION_HARDMAX1_OPERATOR_DESC. Paths: source as text or through the
builder; run by the NumPy reference, by the generated NumPy code, and by ONNX Runtime.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import dmlc
from tests.rows import each_row

SQUARE = np.array([[1, 2, 3], [3, 0, 4], [2, 5, 2]], np.float32)
ROWS = np.array([[0, 1, 10, 11], [3, 2, 9, 8], [4, 5, 6, 7]], np.float32).reshape(1, 1, 3, 4)
TIES = np.array([[1, 2, 2, 3], [3, 4, 5, 5], [6, 6, 6, 6]], np.float32).reshape(1, 1, 3, 4)
CUBE = np.array([[[12, 0], [-101, 11]], [[3, 234], [0, -101]]], np.float32)


@dataclass(frozen=True)
class Example:
    """``words`` are the attributes as text; the builder gets the same values."""

    name: str
    op: str
    x: np.ndarray
    attributes: dict[str, Any]
    expected: tuple[np.ndarray, ...] = field(repr=False)


def u32(values: Any, *shape: int) -> np.ndarray:
    return np.array(values, np.uint32).reshape(shape)


def f32(values: Any, *shape: int) -> np.ndarray:
    return np.array(values, np.float32).reshape(shape)


def arg(name: str, op: str, x: np.ndarray, axes: list[int], expected: np.ndarray, direction: str) -> Example:
    return Example(name, op, x, {"axes": axes, "axis_direction": direction}, (expected,))


def top_k(name: str, x: np.ndarray, axis: int, k: int, order: str, values: Any, index: Any, *shape: int) -> Example:
    attributes = {"k": k, "axis": axis, "axis_direction": order}
    return Example(name, "top_k", x, attributes, (f32(values, *shape), u32(index, *shape)))


LINE = np.array([3, 2, 1, 2, 3], np.float32)
VALLEY = np.array([1, 2, 3, 2, 1], np.float32)

EXAMPLES = [
    arg("argmax columns", "argmax", SQUARE, [0], u32([1, 2, 1], 1, 3), "increasing"),
    arg("argmax rows", "argmax", SQUARE, [1], u32([2, 2, 1], 3, 1), "increasing"),
    arg("argmax all axes", "argmax", SQUARE, [0, 1], u32([7], 1, 1), "increasing"),
    arg("argmax first tie", "argmax", LINE, [0], u32([0], 1), "increasing"),
    arg("argmax last tie", "argmax", LINE, [0], u32([4], 1), "decreasing"),
    arg("argmin columns", "argmin", SQUARE, [0], u32([0, 1, 2], 1, 3), "increasing"),
    arg("argmin rows", "argmin", SQUARE, [1], u32([0, 1, 0], 3, 1), "increasing"),
    arg("argmin all axes", "argmin", SQUARE, [0, 1], u32([4], 1, 1), "increasing"),
    arg("argmin first tie", "argmin", VALLEY, [0], u32([0], 1), "increasing"),
    arg("argmin last tie", "argmin", VALLEY, [0], u32([4], 1), "decreasing"),
    top_k("top_k 1", ROWS, 3, 2, "decreasing", [11, 10, 9, 8, 7, 6], [3, 2, 2, 3, 3, 2], 1, 1, 3, 2),
    top_k("top_k 2", ROWS, 2, 2, "decreasing", [4, 5, 10, 11, 3, 2, 9, 8], [2, 2, 0, 0, 1, 1, 1, 1], 1, 1, 2, 4),
    top_k("top_k 3", TIES, 3, 3, "decreasing", [3, 2, 2, 5, 5, 4, 6, 6, 6], [3, 1, 2, 2, 3, 1, 0, 1, 2], 1, 1, 3, 3),
    top_k("top_k 4", TIES, 3, 3, "increasing", [1, 2, 2, 3, 4, 5, 6, 6, 6], [0, 1, 2, 0, 1, 2, 0, 1, 2], 1, 1, 3, 3),
    Example("hardmax 1", "hardmax", CUBE, {"axes": [1]}, (f32([1, 0, 0, 1, 1, 1, 0, 0], 2, 2, 2),)),
    Example("hardmax 2", "hardmax", CUBE, {"axes": [0]}, (f32([1, 0, 0, 1, 0, 1, 1, 0], 2, 2, 2),)),
    Example("hardmax 3", "hardmax", CUBE, {"axes": [0, 2]}, (f32([0, 0, 0, 1, 0, 1, 0, 0], 2, 2, 2),)),
]


def from_text(example: Example, folder: Path) -> dmlc.Program:
    names = [f"y{i}" for i in range(len(example.expected))]
    shape = ", ".join(map(str, example.x.shape))
    words = ", ".join(f"{k}={v}" for k, v in example.attributes.items())
    source = folder / "page.dml"
    source.write_text(
        f"model page(x: f32[{shape}]) -> ({', '.join(names)}) {{\n"
        f"    {', '.join(names)} = {example.op}(x, {words})\n"
        f"    return {', '.join(names)}\n}}\n"
    )
    return dmlc.compile(source)


def from_builder(example: Example, folder: Path) -> dmlc.Program:
    graph = dmlc.Graph("page")
    x = graph.input("x", dtype="float32", shape=example.x.shape)
    results = getattr(dmlc, example.op)(x, **example.attributes)
    for i, value in enumerate(results if len(example.expected) > 1 else [results]):
        graph.output(f"y{i}", value)
    return dmlc.compile(graph)


@each_row("backend", ["reference", "numpy", "cpu"])
@each_row("source", [from_text, from_builder])
@each_row("example", EXAMPLES, ids=lambda e: e.name)
def test_example_of_the_page(example: Example, source: Any, backend: str, tmp_path: Path) -> None:
    results = source(example, tmp_path).run({"x": example.x}, backend=backend)
    assert list(results) == [f"y{i}" for i in range(len(example.expected))]
    for got, expected in zip(results.values(), example.expected, strict=True):
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)
