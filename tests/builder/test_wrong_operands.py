"""Operations, blocks and ONNX operators take any value of Python, or refuse it with a code."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dmlc
from dmlc.builder import operations
from tests.rows import each_row

#: Values that no parameter, or few of them, take.
JUNK: list[Any] = [
    2.5, True, float("nan"), "", "nosuch", b"bytes", {"x": None}, {3}, np.array(["a"]), np.array(2), np.float32(2),
    object(), Path("no/such"), 1j, "\ud800", None, int, 10**30, ..., range(2), (), [None], ["a"], [10**30], [[1]],
]  # fmt: skip


def a_tensor() -> dmlc.Tensor:
    return dmlc.Graph("g").input("x", "f32", (4, 4))


#: Values for the keywords that an operation needs.
NEEDED: dict[str, Any] = {
    "axes": [0], "axis": 0, "k": 1, "depth": 3, "shape": [16], "perm": [1, 0], "sizes": [2, 2], "starts": [0],
    "ends": [1], "pads": [0, 0, 0, 0], "repeats": [1, 1], "length": 3, "dtype": "f32", "value": 0, "to": "i32",
    "min": 0,
}  # fmt: skip
CALLED = [
    *[(f"dmlc.{name}", getattr(operations, name)) for name in operations.__all__],
    *[(f"dmlc.std.{name}", getattr(dmlc.std, name)) for name in dir(dmlc.std) if not name.startswith("_")],
]


def arguments(parameters: list[inspect.Parameter], tested: inspect.Parameter, value: Any) -> Any:
    """Operands and keywords of a call whose ``tested`` parameter has the value, and the others what they need."""
    operands: list[Any] = []
    keywords: dict[str, Any] = {}
    x = a_tensor()
    for each in parameters:
        given = value if each is tested else NEEDED.get(each.name, x) if each.default is each.empty else each.default
        if each.kind is each.VAR_POSITIONAL:
            operands += [given] if each is tested else [x, x]
        elif each.kind is each.POSITIONAL_ONLY:
            operands.append(given)
        elif each is tested or each.default is each.empty:
            keywords[each.name] = given
    return operands, keywords


@each_row(("name", "function"), CALLED, ids=[name for name, _ in CALLED])
def test_an_operation_takes_any_value_or_refuses_it_with_a_code(name: str, function: Callable[..., Any]) -> None:
    parameters = list(inspect.signature(function).parameters.values())
    for parameter in parameters:
        for value in JUNK:
            operands, keywords = arguments(parameters, parameter, value)
            try:
                function(*operands, **keywords)
            except dmlc.DmlcError as error:
                assert not str(error).startswith("error[I"), (parameter.name, value, error)
            except Exception as error:
                raise AssertionError(f"{parameter.name}={value!r}: {type(error).__name__}: {error}") from error


X, W = a_tensor(), dmlc.constant([1.0, 1.0, 1.0, 1.0])


@each_row(
    ("call", "message"),
    [
        (lambda: dmlc.where(c=X > 0, a=X, b=X), "where takes 3 operands (cond, a, b), and c is not one of them"),
        (lambda: dmlc.where(X > 0, X, other=X), "where takes 3 operands (cond, a, b), and other is not one of them"),
        (lambda: dmlc.softmax(y=X), "softmax takes 1 operand (x), and y is not one of them"),
        (
            lambda: dmlc.layer_norm(X, W, bias=W, scale=W),
            "layer_norm takes scale once, and it is given twice",
        ),
        (lambda: dmlc.where(X > 0, X, b=X, cond=X > 0), "where takes cond once, and it is given twice"),
        (lambda: dmlc.where(cond=X > 0, b=X), "where needs a, which is not given"),
        (lambda: dmlc.where(cond=X > 0, a=X), "where needs b, which is not given"),
        (lambda: dmlc.max(X, axis=1), "max takes 2 operands (a, b), 1 given"),
    ],
)
def test_an_operand_of_another_name_is_named(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(dmlc.DmlcError) as caught:
        call()
    (diagnostic,) = caught.value.diagnostics
    assert (diagnostic.code.id, diagnostic.message) == ("E0308", message)
    assert diagnostic.span is not None
    assert diagnostic.span.source.name == __file__


def test_a_file_without_defs_says_so(tmp_path: Path) -> None:
    path = tmp_path / "heads.dml"
    path.write_text("model m(x: f32[4]) -> (y) {\n    y = exp(x)\n    return y\n}\n")
    with pytest.raises(dmlc.DmlcError, match=r"E0212.*heads\.dml has no defs") as caught:
        dmlc.function(path)
    assert "dmlc.compile" in caught.value.diagnostics[0].help
    with pytest.raises(dmlc.DmlcError, match=r"E0212.*has no def f"):
        dmlc.function(path, "f")


ONNX_CALLS: dict[str, Callable[[Any], Any]] = {
    "outputs": lambda value: dmlc.onnx.Split(a_tensor(), outputs=value),
    "word": lambda value: dmlc.onnx.Gelu(a_tensor(), approximate=value),
    "integer": lambda value: dmlc.onnx.Softmax(a_tensor(), axis=value),
    "number": lambda value: dmlc.onnx.Elu(a_tensor(), alpha=value),
    "integers": lambda value: dmlc.onnx.Transpose(a_tensor(), perm=value),
    "operand": lambda value: dmlc.onnx.Relu(value),
    "second operand": lambda value: dmlc.onnx.ReduceSum(a_tensor(), value),
    "sum": lambda value: a_tensor() + value,
    "power": lambda value: a_tensor() ** value,
    "product": lambda value: a_tensor() @ value,
    "index": lambda value: a_tensor()[value],
}


@each_row("name", ONNX_CALLS)
def test_an_onnx_operator_takes_any_value_or_refuses_it_with_a_code(name: str) -> None:
    for value in JUNK:
        try:
            ONNX_CALLS[name](value)
        except dmlc.DmlcError as error:
            assert not str(error).startswith("error[I"), (value, error)
        except Exception as error:
            raise AssertionError(f"{value!r}: {type(error).__name__}: {error}") from error


@each_row("value", [np.array([0.5]), np.array([[2]]), np.array(["a"])])
def test_an_array_is_not_a_number(value: Any) -> None:
    """numpy before 2.4 makes a number of an array that holds one."""
    with pytest.raises(dmlc.DmlcError, match="alpha of Elu must be a number"):
        dmlc.onnx.Elu(a_tensor(), alpha=value)
    assert dmlc.onnx.Elu(a_tensor(), alpha=np.array(0.5)).dtype is dmlc.f32


@each_row(("call", "written"), [
    (lambda: dmlc.layer_norm(X, 4), "write dmlc.mean_variance_norm(x, axes=[-1])"),
    (lambda: dmlc.rms_norm(X, [4]), "write x / dmlc.sqrt(dmlc.reduce_mean(x * x, axes=[-1]) + 1e-5)"),
])  # fmt: skip
def test_sizes_are_no_scale(call: Callable[[], Any], written: str) -> None:
    with pytest.raises(dmlc.DmlcError, match="is a scale, not the sizes") as caught:
        call()
    assert caught.value.diagnostics[0].help == written
