"""Opaque nodes of constants that compute: the results are those of ONNX Runtime, and near misses stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper

import dmlc
from tests.rows import each_row

RNG = np.random.default_rng(0)
NONE = np.zeros(0, np.float32)


def floats(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def i64(*numbers: int) -> Any:
    return np.array(numbers, np.int64)


def made(op: str, *constants: Any, opset: int = 18, **attributes: Any) -> onnx.ModelProto:
    """The node of constants, whose first element is added to an input."""
    names = [f"c{i}" for i in range(len(constants))]
    nodes = [helper.make_node(op, names, ["v"], "made", **attributes), helper.make_node("Add", ["x", "v"], ["y"])]
    weights = [numpy_helper.from_array(np.asarray(c), name) for c, name in zip(constants, names, strict=True)]
    kind = helper.np_dtype_to_tensor_dtype(np.asarray(constants[0]).dtype)
    x = helper.make_tensor_value_info("x", kind, [])
    y = helper.make_tensor_value_info("y", kind, None)
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def resize(x: Any, *, sizes: Any = None, scales: Any = None, opset: int = 18, **attributes: Any) -> onnx.ModelProto:
    if sizes is not None:
        return made("Resize", x, NONE, NONE, i64(*sizes), opset=opset, **attributes)
    return made("Resize", x, NONE, np.array(scales, np.float32), opset=opset, **attributes)


def operators(model: onnx.ModelProto, **options: Any) -> list[str]:
    return [node.op_type for node in dmlc.compile(model, target="onnx", **options).to_onnx().graph.node]


def check(model: onnx.ModelProto, tolerance: float) -> None:
    x = np.zeros((), helper.tensor_dtype_to_np_dtype(model.graph.input[0].type.tensor_type.elem_type))
    want = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(
        None, {"x": x}
    )
    got = dmlc.compile(model, target="onnx").run({"x": x})["y"]
    assert got.shape == want[0].shape
    np.testing.assert_allclose(got, want[0], rtol=tolerance, atol=tolerance)


IMAGE, MASK = floats(1, 2, 6, 7), floats(1, 1, 8, 8)
#: Results that every target gives: elements that are moved, and integers.
EXACT = {
    "EyeLike": made("EyeLike", floats(3, 4), k=1),
    "Einsum of integers": made("Einsum", i64(1, 2, 3), i64(4, 5), equation="i,j->ij"),
    "nearest, an eighth": resize(MASK, sizes=(1, 1, 1, 1), mode="nearest", nearest_mode="floor"),
    "nearest, a half": resize(
        MASK, sizes=(1, 1, 4, 4), coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    ),
    "nearest, thrice": resize(IMAGE, scales=(1, 1, 3, 3), coordinate_transformation_mode="asymmetric"),
    "nearest, to the corners": resize(IMAGE, sizes=(1, 2, 11, 3), coordinate_transformation_mode="align_corners"),
    "nearest, one element": resize(IMAGE, sizes=(1, 2, 1, 7), coordinate_transformation_mode="pytorch_half_pixel"),
    "nearest, one of corners": resize(IMAGE, sizes=(1, 2, 1, 7), coordinate_transformation_mode="align_corners"),
    "nearest, ceil": resize(IMAGE, scales=(1, 1, 1.5, 0.5), nearest_mode="ceil"),
    "nearest, the higher": resize(IMAGE, scales=(1, 1, 0.5, 2), nearest_mode="round_prefer_ceil"),
    "nearest, some axes": resize(IMAGE, sizes=(3, 14), axes=[2, 3]),
    "nearest, a part of many": resize(
        floats(1, 1, 256, 128), scales=(1, 1, 0.5, 0.5), coordinate_transformation_mode="asymmetric"
    ),
    "nearest, at opset 10": made("Resize", IMAGE, np.array([1, 1, 0.5, 2.5], np.float32), opset=10),
    "nearest, enlarged at opset 9": made("Upsample", IMAGE, np.array([1, 1, 1.25, 2], np.float32), opset=9),
    "nearest, enlarged at opset 8": made("Upsample", IMAGE, scales=[1.0, 1.0, 2.5, 3.0], opset=8),
    "nearest, integers": resize(np.int32([[[1, 2, 3]]]), sizes=(1, 1, 6)),
}
#: Sums and functions of floats, which targets round differently.
ROUNDED = {
    "Conv": made("Conv", IMAGE, floats(3, 2, 3, 2), floats(3), pads=[1, 0, 2, 1], strides=[2, 1]),
    "Conv of groups": made("Conv", floats(2, 4, 9), floats(6, 2, 3), group=2, dilations=[3]),
    "Conv without pads": made("Conv", IMAGE, floats(3, 2, 3, 2), auto_pad="VALID"),
    "Conv of one element": made("Conv", IMAGE, floats(5, 2, 1, 1)),
    "Einsum": made("Einsum", floats(3, 4), floats(4, 5, 2), equation="i j, j d e -> i e d"),
    "Einsum of a diagonal": made("Einsum", floats(3, 3), equation="ii->i"),
    "Pow of an integer": made("Pow", np.abs(floats(2, 3)), i64(2, -1, 3)),
    "linear": resize(IMAGE, sizes=(1, 2, 9, 4), mode="linear"),
    "linear, to the corners": resize(
        IMAGE, sizes=(1, 2, 9, 4), mode="linear", coordinate_transformation_mode="align_corners"
    ),
    "linear, at opset 10": made("Resize", IMAGE, np.array([1, 1, 0.6, 2.5], np.float32), opset=10, mode="linear"),
    "linear, enlarged at opset 9": made(
        "Upsample", IMAGE, np.array([1, 1, 1.4, 2], np.float32), opset=9, mode="linear"
    ),
    "cubic": resize(IMAGE, sizes=(1, 2, 9, 4), mode="cubic"),
    "cubic, inside": resize(IMAGE, scales=(1, 1, 0.6, 2.5), mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5),
}


@each_row("name", EXACT)
def test_moved_elements_are_computed(name: str) -> None:
    assert operators(EXACT[name], exact=True) == ["Add"]
    check(EXACT[name], 0)


@each_row("name", ROUNDED)
def test_sums_of_floats_are_computed_where_rounding_may_differ(name: str) -> None:
    model = ROUNDED[name]
    assert operators(model) == ["Add"]
    stays = "Resize" if model.graph.node[0].op_type == "Upsample" else model.graph.node[0].op_type
    assert operators(model, exact=True) == [stays, "Add"]
    # a few roundings of f32, of sums of at most 12 products
    check(model, 5e-6)


NEAR = {
    "pads that the operator computes": made("Conv", IMAGE, floats(3, 2, 3, 3), auto_pad="SAME_UPPER"),
    "a window that is larger": made("Conv", floats(1, 1, 2), floats(1, 1, 3)),
    "axes without letters": made("Einsum", floats(2, 3), floats(3, 4), equation="...j,jk->...k"),
    "a power of integers": made("Pow", i64(2, 3), np.float32(0.5)),
    "weights of many elements": resize(IMAGE, sizes=(1, 2, 3, 3), mode="linear", antialias=1),
    "sizes that follow from others": resize(IMAGE, sizes=(1, 2, 3, 3), keep_aspect_ratio_policy="not_larger"),
    "part of the image": made(
        "Resize",
        IMAGE,
        np.array([0, 0, 0, 0, 1, 1, 0.5, 0.5], np.float32),
        NONE,
        i64(1, 2, 3, 3),
        coordinate_transformation_mode="tf_crop_and_resize",
    ),
    "a position that rounding decides": resize(
        floats(1, 1, 9), sizes=(1, 1, 3), coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    ),
    "a position near to one": resize(
        floats(1, 1, 9), scales=(1, 1, 2.0005), coordinate_transformation_mode="asymmetric", nearest_mode="floor"
    ),
    "scales that change no size": resize(
        floats(1, 1, 3), scales=(1, 1, 1.25), coordinate_transformation_mode="asymmetric"
    ),
    "more elements than they are worth": resize(floats(1, 1, 64, 64), scales=(1, 1, 2, 2)),
    "a long axis": resize(floats(1, 1, 4097), sizes=(1, 1, 1)),
    "too many products of an axis": resize(floats(1, 1, 4096, 32), sizes=(1, 1, 1024, 32), mode="linear"),
    "too many products of windows": made("Conv", floats(1, 16, 64, 64), floats(32, 16, 7, 7), strides=[1, 1]),
    "too many products of letters": made("Einsum", floats(512, 300), floats(300, 512), equation="ij,jk->ik"),
}


@each_row("name", NEAR)
def test_near_misses_stay(name: str) -> None:
    model = NEAR[name]
    assert model.graph.node[0].op_type in operators(model)


def test_integers_between_elements_stay() -> None:
    model = resize(np.int32([[[1, 2, 3]]]), sizes=(1, 1, 5), mode="linear")
    assert operators(model) == ["Resize", "Add"]


@pytest.mark.parametrize("opset", [11, 13, 18])
def test_resizes_of_every_form_are_as_the_runtime_computes_them(opset: int) -> None:
    rng = np.random.default_rng(opset)
    modes = ("asymmetric", "half_pixel", "pytorch_half_pixel", "align_corners")
    folded = 0
    for number in range(48):
        sizes = (1, 2, *(int(n) for n in rng.integers(1, 20, 2)))
        kind = ("nearest", "nearest", "linear", "cubic")[number % 4]
        form: dict[str, Any] = {"mode": kind, "coordinate_transformation_mode": modes[number // 4 % 4]}
        if kind == "nearest":
            form["nearest_mode"] = ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")[number // 16]
        model = resize(floats(1, 2, *(int(n) for n in rng.integers(2, 17, 2))), sizes=sizes, opset=opset, **form)
        if operators(model) == ["Add"]:
            folded += 1
            check(model, 0 if kind == "nearest" else 2e-5)  # sums of 16 products, with weights of f32
    assert folded > 24
