"""Python's syntax and functions on tensors of the builder: operations where there are some, else errors with codes."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dmlc
from dmlc.diagnostics import DmlcError
from tests.rows import each_row

Use = Callable[[Any, Any], Any]


def tensors() -> tuple[dmlc.Graph, Any, Any]:
    g = dmlc.Graph("m")
    return g, g.input("x", "f32", ("N", 4)), g.input("i", "i32", (3, 4))


@each_row(
    ("use", "words"),
    [
        (lambda x, i: i << 1, r"E0203.*has no <<.*a shift is written a \* 2 \*\* n"),
        (lambda x, i: 1 << i, r"E0203.*has no <<.*a shift is written a \* 2 \*\* n"),
        (lambda x, i: i >> 1, r"E0203.*has no >>.*a shift is written a // 2 \*\* n"),
        (lambda x, i: 1 >> i, r"E0203.*has no >>.*a shift is written a // 2 \*\* n"),
        (lambda x, i: math.exp(x), r"E0350.*not a number.*dmlc\.exp\(x\)"),
        (lambda x, i: float(x), r"E0350.*not a number"),
        (lambda x, i: int(i), r"E0350.*not a number"),
        (lambda x, i: complex(x), r"E0350.*not a number"),
        (lambda x, i: math.trunc(x), r"E0350.*not a number"),
        (lambda x, i: operator.index(i), r"E0350.*not a number"),
        (lambda x, i: range(i), r"E0350.*not a number"),
        (lambda x, i: round(x, 2), r"E0350.*dmlc\.round\(x \* 100\) / 100"),
        (lambda x, i: len(x), r"E0350.*the length is N.*dmlc\.size\(x, axis=0\)"),
        (lambda x, i: len(x[0, 0]), r"E0350.*a scalar has no length"),
        (lambda x, i: list(x), r"E0350.*not iterable.*rows are x\[i\]"),
        (lambda x, i: sum(i), r"E0350.*not iterable"),
        (lambda x, i: 3 in i, r"E0350.*dmlc\.reduce_any\(x == value\)"),
        (lambda x, i: operator.setitem(i, 0, 1), r"E0350.*not changed in place.*dmlc\.where"),
    ],
)
def test_what_a_tensor_cannot_do_is_refused_with_what_to_write(use: Use, words: str) -> None:
    _, x, i = tensors()
    with pytest.raises(DmlcError, match=f"(?s){words}") as caught:
        use(x, i)
    assert isinstance(caught.value, TypeError)  # as Python has it, for those who ask whether an object can
    span = caught.value.diagnostics[0].labels[0].span
    assert span is not None
    assert span.source.name.endswith("test_python_protocols.py")


@each_row(
    ("use", "expected"),
    [
        (lambda x, i: divmod(i, 3), lambda x, i: divmod(i, 3)),
        (lambda x, i: divmod(7, i), lambda x, i: divmod(np.int32(7), i)),
        (lambda x, i: round(x), lambda x, i: np.round(x)),
        (lambda x, i: round(i), lambda x, i: i),
        (lambda x, i: math.floor(x), lambda x, i: np.floor(x)),
        (lambda x, i: math.ceil(x), lambda x, i: np.ceil(x)),
        (lambda x, i: +x, lambda x, i: x),
        (lambda x, i: x * len(i), lambda x, i: x * np.float32(3)),
        (lambda x, i: i * 2**3, lambda x, i: i << 3),
        (lambda x, i: i // 2**1, lambda x, i: i >> 1),
    ],
)
def test_what_python_writes_as_functions_is_an_operation(use: Use, expected: Use) -> None:
    g, x, i = tensors()
    made = use(x, i)
    for name, value in zip("ab", made if isinstance(made, tuple) else (made,), strict=False):
        g.output(name, value)
    g.output("x0", x + 0)
    g.output("i0", i + 0)
    feeds = {
        "x": np.float32([[0.5, 1.5, -0.5, 2.5], [-1.25, 3.75, 0, 7]]),
        "i": np.int32([[1, 2, 3, -4], [5, 6, -7, 8], [9, -1, 2, 4]]),
    }
    found = dmlc.compile(g, target="onnx").run(feeds, "reference")
    wanted = expected(feeds["x"], feeds["i"])
    for name, value in zip("ab", wanted if isinstance(wanted, tuple) else (wanted,), strict=False):
        np.testing.assert_array_equal(found[name], value)


def test_functions_of_numpy_are_blamed_on_the_line_that_calls_them() -> None:
    _, x, _ = tensors()
    with pytest.raises(DmlcError, match="E0350") as caught:
        np.sum(x)
    span = caught.value.diagnostics[0].labels[0].span
    assert span is not None
    assert span.source.name.endswith("test_python_protocols.py")


def test_a_misspelt_operator_of_onnx_is_a_coded_error() -> None:
    _, _, i = tensors()
    with pytest.raises(DmlcError, match=r'E0504.*bitShift.*did you mean "BitShift"'):
        dmlc.onnx.bitShift(i, 1)


def test_a_dim_is_no_data_of_a_constant() -> None:
    with pytest.raises(DmlcError, match=r"E0330.*dmlc\.cast"):
        dmlc.constant(dmlc.Graph("m").dim("N"))  # type: ignore[arg-type]


def test_a_word_that_is_no_dtype_gets_the_dtypes() -> None:
    _, x, _ = tensors()
    with pytest.raises(DmlcError, match=r"E0304.*it may be f16, f32"):
        x.astype("string")


@pytest.mark.parametrize(
    ("use", "help"),
    [
        (lambda x: dmlc.reduce_sum(x, axes=0, keepdims=0), "write False"),
        (lambda x: dmlc.transpose(x, perm=(0, 1, 2)), "name each axis once"),
        (lambda x: dmlc.reshape(x, shape=(2, 5)), "-1 means the remaining elements: [2, -1]"),
        (lambda x: dmlc.reshape(x, shape=(5, 7)), "sizes whose product is that number fit"),
    ],
)
def test_a_help_says_what_works(use: Callable[[Any], Any], help: str) -> None:
    with pytest.raises(DmlcError) as caught:
        use(dmlc.Graph("m").input("x", "f32", (3, 4)))
    assert caught.value.diagnostics[0].help == help
