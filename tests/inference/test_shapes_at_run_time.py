"""Shapes and elements that ONNX's text and ONNX Runtime's kernels give differently, or that rounding decides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser

import dmlc
from dmlc.inference import Fact
from dmlc.inference.model_facts import facts_of_model
from tests.rows import each_row
from tools.model_checks import run, session


def one_node(types: str, node: str, constants: str = "", opset: int = 17) -> ModelProto:
    head = f'<ir_version: 8, opset_import: ["": {opset}]>'
    weights = f"<{constants}>" if constants else ""
    model = parser.parse_model(f"{head} g ({types}) => (float y) {weights} {{ y = {node} }}")
    model.graph.output[0].type.tensor_type.ClearField("shape")
    return model


def fact_of(model: ModelProto) -> Fact:
    return facts_of_model(model).facts.of["y"]


def shape_at_run_time(model: ModelProto, **feeds: Any) -> tuple[int, ...]:
    return np.shape(run(session(model), feeds)["y"])


def agree(fact: Fact, shape: tuple[int, ...]) -> bool:
    """True if no number of the fact is another one at run time."""
    return fact.shape is None or [d if isinstance(d, int) else s for d, s in zip(fact.shape, shape, strict=True)] == [
        *shape
    ]


@each_row("scale", [(10, 1.3, 13), (10, 0.7, 7), (10, 0.9, 9), (10, 0.3, 3), (7, 1.7, 11), (3, 1.5, 4)])
@pytest.mark.parametrize("form", ["Upsample", "Resize 10", "Resize 13"])
def test_scaled_sizes_are_rounded_in_f32(form: str, scale: tuple[int, float, int]) -> None:
    """In exact numbers 10 times the f32 nearest to 1.3 is less than 13."""
    size, factor, wanted = scale
    if form == "Upsample" and factor < 1:
        return  # an Upsample does not shrink
    constants = f"float[4] s = {{1, 1, {factor}, 1}}"
    call = "Resize (x, , s)" if form == "Resize 13" else f"{form.split()[0]} (x, s)"
    opset = {"Upsample": 9, "Resize 10": 10, "Resize 13": 13}[form]
    model = one_node(f"float[1, 1, {size}, 2] x", call, constants, opset)
    assert fact_of(model).shape == (1, 1, wanted, 2)
    assert shape_at_run_time(model, x=np.ones((1, 1, size, 2), np.float32)) == (1, 1, wanted, 2)


@each_row("target", ["onnx", "cpu", "directml"])
@each_row("end", [2**31 - 1, 2**63 - 1, 2**31, 5])
@each_row("size", ["5", "N"])
def test_a_backward_slice_to_the_largest_integer(size: str, end: int, target: str) -> None:
    """ONNX Runtime takes it for the front of the axis; any other end beyond the axis leaves nothing."""
    constants = f"int64[1] s = {{-1}}, int64[1] e = {{{end}}}, int64[1] a = {{0}}, int64[1] t = {{-2}}"
    model = one_node(f"float[{size}] x", "Slice (x, s, e, a, t)", constants)
    x = np.arange(5, dtype=np.float32)
    wanted = run(session(model), {"x": x})["y"]
    assert agree(fact_of(model), wanted.shape)
    compiled = dmlc.compile(model, target=target).to_onnx()
    np.testing.assert_array_equal(run(session(compiled), {"x": x})["y"], wanted)


def test_a_known_list_cut_backward_to_the_largest_integer_keeps_no_elements() -> None:
    constants = f"float[3] c = {{1, 2, 3}}, int64[1] s = {{2}}, int64[1] e = {{{2**63 - 1}}}, int64[1] t = {{-1}}"
    model = one_node("float[1] x", "Slice (c, s, e, , t)", constants)
    assert fact_of(model).elements is None
    assert shape_at_run_time(model, x=np.ones(1, np.float32)) == (3,)


@pytest.mark.parametrize("form", [(13, "Squeeze (x, a)"), (11, "Squeeze <axes: ints = []> (x)")])
def test_a_squeeze_of_an_empty_list_of_axes(form: tuple[int, str]) -> None:
    """It drops every size of 1 in ONNX Runtime, and nothing in ONNX's text."""
    opset, call = form
    constants = "int64[0] a = {}" if opset == 13 else ""
    opened, fixed, whole = (one_node(f"float[{s}] x", call, constants, opset) for s in ("N, 1", "2, 1", "2, 3"))
    assert fact_of(opened).shape is None
    assert fact_of(fixed).shape is None
    assert fact_of(whole).shape == (2, 3)
    assert shape_at_run_time(fixed, x=np.ones((2, 1), np.float32)) == (2,)


@each_row("row", [(1, 2), (3, 1), (2, 2)])
@pytest.mark.parametrize("pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("size", ["8", "H"])
def test_same_padding_of_a_pool_with_dilations(size: str, pad: str, row: tuple[int, int]) -> None:
    kernel, dilation = row
    attributes = f'kernel_shape = [{kernel}], dilations = [{dilation}], auto_pad = "{pad}"'
    model = one_node(f"float[1, 1, {size}] x", f"MaxPool <{attributes}> (x)")
    fact = fact_of(model)
    assert agree(fact, shape_at_run_time(model, x=np.ones((1, 1, 8), np.float32)))
    assert fact.shape is not None
    is_known = isinstance(fact.shape[2], int) if size == "8" else str(fact.shape[2]) == "H"
    assert is_known == (kernel == 1 or dilation == 1)


@each_row("row", [(3, 1, 1), (3, 2, 1), (3, 3, 1), (3, 2, 2), (1, 1, 1)])
@pytest.mark.parametrize("pad", ["SAME_UPPER", "SAME_LOWER"])
def test_same_padding_of_a_transposed_convolution(pad: str, row: tuple[int, int, int]) -> None:
    stride, kernel, dilation = row
    attributes = f'strides = [{stride}], dilations = [{dilation}], auto_pad = "{pad}"'
    model = one_node(f"float[1, 1, 4] x, float[1, 1, {kernel}] w", f"ConvTranspose <{attributes}> (x, w)")
    fact = fact_of(model)
    feeds = {"x": np.ones((1, 1, 4), np.float32), "w": np.ones((1, 1, kernel), np.float32)}
    assert agree(fact, shape_at_run_time(model, **feeds))
    assert fact.shape is not None
    assert isinstance(fact.shape[2], int) == (stride <= (kernel - 1) * dilation + 1)


@each_row(
    "call",
    [
        ("Where (c, p, n)", "the condition decides the sign"),
        ("Max (p, n)", "which zero is larger is not stated"),
        ("Min (n, p)", "which zero is smaller is not stated"),
    ],
)
def test_zeros_of_different_signs_are_not_the_same(call: tuple[str, str]) -> None:
    model = one_node("bool[1] c", call[0], "float[1] p = {0}, float[1] n = {-0.0}")
    elements = fact_of(model).elements
    assert elements is None or repr(elements.tolist()) == "[?]"


def test_a_sum_of_one_keeps_the_sign_of_zero() -> None:
    elements = fact_of(one_node("bool[1] c", "Sum (n)", "float[1] n = {-0.0}")).elements
    assert elements is not None
    assert np.signbit(elements.tolist())
