"""W0604, f16 intermediates that may overflow, and W0605, operands that may have no element."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import TensorProto, helper

import dmlc
from dmlc.diagnostics import Diagnostic, DmlcError, Source
from tests.rows import each_row


def compiled(body: str, inputs: str = "x: f16[4, 100]", dims: str = "", **options: Any) -> dmlc.Program:
    lines = "".join(f"    {line}\n" for line in body.split("; "))
    return dmlc.compile(Source("t.dml", f"{dims}model t({inputs}) -> (y) {{\n{lines}    return y\n}}\n"), **options)


def warnings(*arguments: str, **options: Any) -> list[Diagnostic]:
    return [d for d in compiled(*arguments, **options).diagnostics if d.code.id in ("W0604", "W0605")]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("y = reduce_mean(x * x, axes=[1])", "the square of x may overflow f16 before its reduce_mean"),
        ("y = reduce_mean(x ** 2, axes=[1])", "the square of x may overflow f16 before its reduce_mean"),
        ("y = reduce_mean(x ** 3, axes=[1])", "x ** 3 may overflow f16 before its reduce_mean"),
        ("z = x + 1.0; y = reduce_mean(x * z, axes=[1])", "the product of x and z may overflow f16"),
        ("d = x - reduce_mean(x, axes=[1]); y = reduce_mean(d * d, axes=[1])", "the square of d may overflow f16"),
        ("y = reduce_sum(x * x, axes=[1]) / 100.0", "the sum of squares of x may overflow f16 before what follows"),
    ],
)
def test_what_may_overflow(body: str, message: str) -> None:
    (found,) = warnings(body)
    assert found.code.id == "W0604"
    assert found.message.startswith(message)
    assert found.help == "--accumulate f32 computes it in f32"
    assert found.span is not None and found.span.line == body.count(";") + 2
    assert not warnings(body, accumulate="f32")
    assert warnings(body, exact=True)[0].help == "without --exact, --accumulate f32 computes it in f32"
    with pytest.raises(DmlcError, match="W0604"):
        compiled(body, strict=True)


@each_row(
    ("body", "inputs"),
    [
        ("y = reduce_mean((x as f16) * (x as f16), axes=[0])", "x: u8[9]"),
        ("z = x as f16; y = reduce_mean(z ** 2, axes=[0])", "x: i8[9]"),
        ("z = clip(x, min=-255, max=255); y = reduce_mean(z * z, axes=[0])", "x: f16[9]"),
        ("z = sigmoid(x) * 100.0; y = reduce_mean(z * z, axes=[0])", "x: f16[9]"),
        ("y = reduce_mean(x * sin(x), axes=[0])", "x: f16[9]"),
        ("y = reduce_mean(x * (b as f16), axes=[0])", "x: f16[9], b: bool[9]"),
        ("z = softmax(x, axes=[0]); d = z - reduce_mean(z, axes=[0]); y = reduce_mean(d * d, axes=[0])", "x: f16[9]"),
        ("y = reduce_sum_square(tanh(x), axes=[0]) / 9.0", "x: f16[9]"),
        ("y = reduce_mean(x * x, axes=[0])", "x: f32[9]"),
        ("y = x * x", "x: f16[9]"),
        ("y = reduce_l2(x, axes=[0])", "x: f16[9]"),
        ("y = reduce_sum_square(x, axes=[0])", "x: f16[9]"),
    ],
)
def test_what_is_known_not_to(body: str, inputs: str) -> None:
    assert not warnings(body, inputs)


def test_a_near_miss() -> None:
    assert not warnings("z = clip(x, max=255.75, min=0); y = reduce_mean(z * z, axes=[1])")
    assert warnings("z = clip(x, max=256, min=0); y = reduce_mean(z * z, axes=[1])")


@pytest.mark.parametrize("target", ["cpu", "onnx", "numpy"])
def test_only_where_f16_is_native(target: str) -> None:
    assert not warnings("y = reduce_mean(x * x, axes=[1])", target=target)


def test_one_warning_for_one_product() -> None:
    body = "s = x * x; a = reduce_mean(s, axes=[1]); b = reduce_mean(s, axes=[0]); y = a + b"
    assert len(warnings(body)) == 1


# --- sizes that may be 0

DIM = "dim N in 0..8\n"


@each_row(
    ("body", "inputs"),
    [
        ("y = reduce_sum(x, axes=[0])", "x: f32[N, 3]"),
        ("y = reduce_max(x, axes=[0, 1], keepdims=false)", "x: f32[N, 3]"),
        ("y = reduce_prod(reshape(x, shape=[3 * N]), axes=[0])", "x: f32[N, 3]"),
        ("y = reduce_mean(concat(x, x, axis=0), axes=[0])", "x: f32[N, 3]"),
        ("y = matmul(transpose(x, perm=[1, 0]), x)", "x: f32[N, 3]"),
        ("y = concat(x, z, axis=0)", "x: f32[N, 3], z: f32[2, 3]"),
        ("y = pad(x, pads=[1, 0, 0, 0])", "x: f32[N, 3]"),
        ("y = scatter_elements(z, i, u)", "x: f32[N], z: f32[2], i: i64[N], u: f32[N]"),
    ],
)
def test_what_may_get_nothing(body: str, inputs: str) -> None:
    (found,) = warnings(body, inputs, DIM)
    assert found.code.id == "W0605"
    assert found.message.endswith("leaves its result unwritten on DirectML where N is 0")
    assert found.help == "declare N from 1 on, or fix the size: --bind N=..."
    assert found.span is not None and found.span.line == 3
    assert not warnings(body, inputs, DIM, bind={"N": 4})
    assert not warnings(body, inputs, "dim N in 1..8\n")
    assert not warnings(body, inputs)
    assert not warnings(body, inputs, DIM, target="cpu")
    with pytest.raises(DmlcError, match="W0605"):
        compiled(body, inputs, DIM, strict=True)


@each_row(
    "body",
    [
        "reduce_sum(x, axes=[1])",
        "argmax(x, axes=[1])",
        "hardmax(x, axes=[1])",
        "exp(x)",
        "softmax(x, axes=[0])",
        "concat(x, x, axis=0)",
        "pad(x, pads=[0, 1, 0, 0])",
        "x[1:]",
    ],
)
def test_a_result_that_is_empty_too(body: str) -> None:
    assert not warnings(f"y = {body}", "x: f32[N, 3]", DIM)


def test_sizes_of_an_imported_model_are_not_declared() -> None:
    node = helper.make_node("ReduceMax", ["x"], ["y"], keepdims=0)
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", ["N"]), ("y", []))]
    graph = helper.make_graph([node], "g", infos[:1], infos[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    assert not dmlc.compile(model).diagnostics
