"""A broken model is refused with a coded error, or compiles; nothing else ever comes out."""

import random
from pathlib import Path

import pytest
from onnx import ModelProto, TensorProto, helper

import dmlc
from dmlc.diagnostics import DmlcError
from tests.rows import each_row
from tools.fuzz.broken_models import base_models, broken_bytes, broken_fields

pytestmark = pytest.mark.hostile
TARGETS = ("directml", "cpu", "onnx")


def code_of(model: ModelProto | Path, target: str) -> str:
    try:
        program = dmlc.compile(model, target=target)
        program.to_onnx()
        assert program.diagnostics is not None
    except DmlcError as error:
        return error.diagnostics[0].code.id
    return ""


@each_row("number", range(len(base_models())))
@each_row("target", TARGETS)
def test_the_models_are_sound_before_they_are_broken(number: int, target: str) -> None:
    assert code_of(base_models()[number], target) == ""


@pytest.mark.emits_invalid("what is broken may stay so: the load phase of the command line refuses it")
@each_row("number", range(len(base_models())))
def test_fields_that_are_wrong(number: int) -> None:
    rng, base = random.Random(number), base_models()[number]
    codes = [code_of(broken_fields(base, rng), rng.choice(TARGETS)) for _ in range(20)]
    assert {"", "E0431"} <= set(codes)


@pytest.mark.emits_invalid("what is broken may stay so: the load phase of the command line refuses it")
@pytest.mark.parametrize("number", range(len(base_models())))
def test_bytes_that_are_wrong(number: int, tmp_path: Path) -> None:
    rng, data = random.Random(number), base_models()[number].SerializeToString()
    path = tmp_path / "broken.onnx"
    codes = []
    for _ in range(30):
        path.write_bytes(broken_bytes(data, rng))
        codes.append(code_of(path, rng.choice(TARGETS)))
    assert "E0430" in codes


def one_node(op: str, inputs: list[str], shape: list[object], **attributes: object) -> ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node(op, inputs, ["y"], **attributes)], "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (one_node("Relu", [""], [2]), "first input"),
        (one_node("Relu", ["x"], [-3]), "size -3"),
    ],
)
def test_what_is_wrong_is_told(model: ModelProto, text: str) -> None:
    with pytest.raises(DmlcError) as caught:
        dmlc.compile(model).to_onnx()
    (found,) = caught.value.diagnostics
    assert found.code.id == "E0431"
    assert text in found.message
