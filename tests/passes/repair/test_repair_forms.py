"""Forms of Reshape, Slice, GatherND and Resize that DirectML's provider refuses or reads otherwise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import repair_helpers as r
from onnx import ModelProto, parser

import dmlc
from tests.rows import each_row


def model(body: str, opset: int = 17) -> ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {body}')


def reshape(shape: str, numbers: str, allowzero: int, operand: str = "float[2,3,4] x") -> ModelProto:
    return model(
        f"({operand}) => (float[a,b] y) <int64[2] k = {{{numbers}}}> {{ y = Reshape<allowzero = {allowzero}>(x, k) }}"
        if shape == "constant"
        else f"({operand}, int64[2] k) => (float[a,b] y) {{ y = Reshape<allowzero = {allowzero}>(x, k) }}"
    )


DATA = {"x": np.arange(24, dtype=np.float32).reshape(2, 3, 4)}


@each_row("opset", [14, 17, 21])
@each_row(
    ("numbers", "operand"), [("2, -1", "float[2,3,4] x"), ("-1, 12", "float[n,3,4] x"), ("-1, 4", "float[n,m,4] x")]
)
def test_a_shape_with_a_size_to_infer_loses_allowzero(numbers: str, operand: str, opset: int) -> None:
    m = reshape("constant", numbers, 1, operand)
    m.opset_import[0].version = opset
    program = r.repaired(m, "reshape-allowzero", "plain-reshape", DATA)
    (node,) = program.to_onnx().graph.node
    assert not any(a.name == "allowzero" and a.i for a in node.attribute)


def test_an_operand_of_unknown_rank_loses_allowzero() -> None:
    m = reshape("constant", "-1, 4", 1)
    m.graph.input[0].type.tensor_type.ClearField("shape")
    program = r.repaired(m, "reshape-allowzero", "plain-reshape", DATA)
    assert [n.op_type for n in program.to_onnx().graph.node] == ["Reshape"]


@each_row(
    "m",
    [
        reshape("constant", "2, 12", 1),
        reshape("constant", "2, -1", 0),
        reshape("constant", "0, -1", 0),
        reshape("constant", "0, 4", 1, "float[0,3,4] x"),
        reshape("fed", "", 1),
    ],
)
def test_other_reshapes_stay(m: ModelProto) -> None:
    assert not r.refusals(r.left_alone(m, "plain-reshape"))


def slices(axes: str, steps: str, start: str = "constant", rank: int = 2) -> ModelProto:
    names = ("a", "b", *(("c",) if axes else ()), *(("d",) if steps else ()))
    values = {"a": "1, 0", "b": "6, 3", "c": axes, "d": steps}
    constants = [f"int64[2] {name} = {{{values[name]}}}" for name in names if name != "a" or start == "constant"]
    operand = "" if start == "constant" else ", int64[2] a"
    call = f"Slice(x, a, b, {'c' if axes else ''}{', d' if steps else ''})".replace(", )", ")")
    shape = ",".join(["6", "5", "2"][:rank])
    return model(
        f"(float[{shape}] x{operand}) => (float[{','.join('mno'[:rank])}] y) <{', '.join(constants)}> {{ y = {call} }}"
    )


@each_row(("start", "rank"), [("constant", 2), ("constant", 3), ("fed", 2), ("fed", 3)])
def test_steps_get_their_axes(start: str, rank: int) -> None:
    m = slices("", "2, 1", start, rank)
    shape = (6, 5, 2)[:rank]
    data: dict[str, Any] = {"x": np.arange(np.prod(shape), dtype=np.float32).reshape(shape)}
    if start == "fed":
        data["a"] = np.array([1, 1])
    program = r.repaired(m, "slice-steps", "slice-with-axes", data)
    (node,) = [n for n in program.to_onnx().graph.node if n.op_type == "Slice"]
    assert node.input[3] and node.input[4]


@each_row("m", [slices("0, 1", "2, 1"), slices("", ""), slices("1, 0", "2, 2"), slices("1, 0", "", "fed")])
def test_other_slices_stay(m: ModelProto) -> None:
    assert not r.refusals(r.left_alone(m, "slice-with-axes"))


@each_row(("shape", "index"), [([2, 3], [1, 2]), ([4], [3]), ([2, 3, 2], [-1, 0, 1])])
def test_one_number_is_gathered(shape: list[int], index: list[int]) -> None:
    kind = "float" + str(shape).replace(" ", "")
    m = model(f"({kind} x, int64[{len(index)}] i) => (float y) {{ y = GatherND(x, i) }}")
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    program = r.repaired(m, "gather-nd-number", "gather-one-number", {"x": x, "i": np.array(index)})
    assert r.operators(program) == ["Reshape", "GatherND", "Reshape"]
    assert program.run({"x": x, "i": np.array(index)}, backend="cpu")["y"].shape == ()


@each_row(("indices", "result"), [("int64[1,2] i", "a"), ("int64[1] i", "a"), ("int64[2,1] i", "a,b")])
def test_gathered_tensors_stay(indices: str, result: str) -> None:
    m = model(f"(float[2,3] x, {indices}) => (float[{result}] y) {{ y = GatherND(x, i) }}")
    assert not r.refusals(r.left_alone(m, "gather-one-number"))


def resize(
    how: str, numbers: str, mode: str = "linear", coordinates: str = "pytorch_half_pixel", more: str = ""
) -> ModelProto:
    operands = "x, , k" if how == "scales" else "x, , , k"
    kind = "float" if how == "scales" else "int64"
    return model(
        f"(float[1,2,4,6] x) => (float[a,b,c,d] y) <{kind}[4] k = {{{numbers}}}>"
        f' {{ y = Resize<mode = "{mode}", coordinate_transformation_mode = "{coordinates}"{more}>({operands}) }}'
    )


IMAGE = {"x": np.random.default_rng(4).normal(size=(1, 2, 4, 6)).astype(np.float32)}


@each_row("mode", ["linear", "nearest"])
@each_row(
    ("how", "numbers"),
    [("sizes", "1, 2, 1, 6"), ("sizes", "1, 2, 1, 1"), ("sizes", "1, 2, 1, 9"), ("scales", "1.0, 1.0, 0.25, 2.0")],
)
def test_an_axis_resized_to_one_takes_its_first_element(how: str, numbers: str, mode: str) -> None:
    m = resize(how, numbers, mode)
    program = r.repaired(m, "resize-pytorch-pixel", "first-of-resized", IMAGE, rtol=1e-6)
    assert r.operators(program)[0] == "Slice"


@each_row(
    "m",
    [
        resize("sizes", "1, 2, 2, 6"),
        resize("sizes", "1, 2, 8, 12"),
        resize("sizes", "1, 2, 1, 6", coordinates="half_pixel"),
        resize("scales", "1.0, 1.0, 0.5, 2.0"),
    ],
)
def test_other_resizes_stay(m: ModelProto) -> None:
    assert not r.refusals(r.left_alone(m, "first-of-resized"))


def test_an_antialiased_resize_to_one_is_refused() -> None:
    m = resize("sizes", "1, 2, 1, 6", more=", antialias = 1")
    m.opset_import[0].version = 18
    assert r.refusals(r.left_alone(m, "first-of-resized")) == ["E0592"]


@pytest.mark.parametrize("release", ["directml:ort-1.17", "directml:ort-1.20", "directml-only"])
def test_releases(release: str) -> None:
    program = dmlc.compile(reshape("constant", "2, -1", 1), target=release)
    assert not r.refusals(program) and not r.troubles(program)
