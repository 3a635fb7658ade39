"""Messages for what users of NumPy write on tensors of the builder: each says what to write instead."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dmlc
from tests.rows import each_row


@pytest.fixture
def x() -> dmlc.Tensor:
    return dmlc.Graph("g").input("x", "f32", (4, 3))


@each_row(
    ("expression", "code", "help"),
    [
        ("dmlc.reshape(x, (4, -1))", "E0308", "dmlc.reshape(x, shape=(4, -1))"),
        ("dmlc.transpose(x, (1, 0))", "E0308", "dmlc.transpose(x, perm=(1, 0))"),
        ("dmlc.cast(x, 'f16')", "E0308", "dmlc.cast(x, to='f16')"),
        ("dmlc.softmax(x, 1)", "E0308", "dmlc.softmax(x, axes=1)"),
        ("dmlc.max(x, axes=1)", "E0308", "dmlc.reduce_max(x, axes=[1])"),
        ("dmlc.concat([x, x], axis=0)", "E0335", "dmlc.concat(x, y, axis=0)"),
        ("dmlc.stack([x, x])", "E0335", "dmlc.stack(x, y)"),
        ("np.exp(x)", "E0350", "dmlc.exp(x)"),
        ("np.maximum(x, 0)", "E0350", "dmlc.max(x, y)"),
        ("np.sum(x)", "E0350", "dmlc.reduce_sum(x, axes=...)"),
        ("x.sum()", "E0203", "dmlc.reduce_sum(x, axes=...)"),
        ("x.mean(axis=1)", "E0203", "dmlc.reduce_mean(x, axes=...)"),
        ("x.reshape(3, 4)", "E0203", "dmlc.reshape(x, shape=...)"),
        ("x.T", "E0203", "dmlc.transpose(x)"),
        ("x.foo", "E0203", "shape, dtype and astype"),
        ("x.astype('bf16')", "E0304", "f32 has its range"),
    ],
)
def test_a_habit_of_numpy_gets_its_spelling_here(x: dmlc.Tensor, expression: str, code: str, help: str) -> None:
    with pytest.raises(dmlc.DmlcError) as info:
        eval(expression, {"dmlc": dmlc, "np": np, "x": x})
    assert info.value.diagnostics[0].code.id == code
    assert help in info.value.diagnostics[0].help


@each_row(
    ("written", "help"),
    [
        (lambda image: image.mean(dim=-1), "write dmlc.reduce_mean(image, axes=[-1], keepdims=False)"),
        (lambda image: dmlc.relu(image).sum(), "write dmlc.reduce_sum(dmlc.relu(image), keepdims=False)"),
        (lambda image: (image + 1).view(3, 4), "write dmlc.reshape(image + 1, shape=[3, 4])"),
        (lambda image: image.permute(1, 0), "write dmlc.transpose(image, perm=[1, 0])"),
        (lambda image: image.half(), 'write image.astype("f16")'),
        (lambda image: image.T, "write dmlc.transpose(image)"),
        (lambda image: np.sum(image, axis=1), "write dmlc.reduce_sum(image, axes=[1], keepdims=False)"),
        (lambda image: np.exp(image), "write dmlc.exp(image)"),
        (lambda image: image.sum(*[1]), "write dmlc.reduce_sum(x, axes=...)"),
    ],
    ids=range(9),
)
def test_the_help_is_made_from_the_source_where_it_is_at_hand(x: dmlc.Tensor, written: Any, help: str) -> None:
    with pytest.raises(dmlc.DmlcError) as info:
        written(x)
    assert info.value.diagnostics[0].help == help


def test_missing_attributes_are_attribute_errors(x: dmlc.Tensor) -> None:
    assert not hasattr(x, "sum")
    with pytest.raises(AttributeError, match="reduce_sum"):
        _ = x.sum
    with pytest.raises(AttributeError, match=r"write dmlc\.reduce_mean"):
        _ = dmlc.mean  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        _ = dmlc.nothing_like_it  # type: ignore[attr-defined]


@each_row(
    "expression",
    ["a * x", "a + x", "a - x", "a / x", "a // x", "a % x", "a ** x", "a < x", "a >= x", "a == x", "a != x", "a @ x"],
)
def test_arrays_before_tensors_make_operations(expression: str) -> None:
    g = dmlc.Graph("g")
    x = g.input("x", "f32", (3, 3))
    a = np.arange(1, 10, dtype=np.float32).reshape(3, 3)
    names: dict[str, Any] = {"a": a, "x": x}
    g.output("y", eval(expression, names))
    data = a + 0.5
    out = dmlc.compile(g, target="cpu").run({"x": data})["y"]
    np.testing.assert_allclose(out, eval(expression, {"a": a, "x": data}), rtol=1e-5)
