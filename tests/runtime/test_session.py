"""ONNX Runtime sessions: checks, providers, and failures shown at their place in the program."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import dmlc
from dmlc.codegen.artifact import Artifact, Signature
from dmlc.ir import TensorType, symbol
from dmlc.ir.dtype import f32, i64
from dmlc.runtime.session import Session, has_directml

N = symbol("N")


def gather(source: Path, op_type: str = "Gather") -> Artifact:
    """``y = x[i]`` of five floats, whose node was written in line 2 of the source."""
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [5]),
        helper.make_tensor_value_info("i", TensorProto.INT64, ["N"]),
    ]
    node = helper.make_node(op_type, ["x", "i"], ["y"], name="y at 2")
    graph = helper.make_graph([node], "m", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N"])])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    signature = Signature(
        "m", (("x", TensorType(f32, (5,))), ("i", TensorType(i64, (N,)))), (("y", TensorType(f32, (N,))),)
    )
    return Artifact("onnx", model, signature, {"y at 2": f"{source}:2:9"})


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "m.dml"
    path.write_text("model m(x: f32[5], i: i64[N]) -> (y) {\n    y = gather(x, i)\n    return y\n}\n")
    return path


X = np.arange(5, dtype=np.float32)


def test_a_session_runs_again_and_again(source: Path) -> None:
    session = Session(gather(source), "cpu")
    for i in ([0, 1], [4], [1, 1, 1]):
        out = session.run({"i": np.array(i), "x": X})
        assert list(out) == ["y"]
        np.testing.assert_array_equal(out["y"], X[i])
        assert out["y"].dtype == np.float32


def test_feeds_are_checked_by_us(source: Path) -> None:
    with pytest.raises(dmlc.DmlcError, match=r"input i: expected i64\[N\], got i32\[1\]"):
        Session(gather(source), "cpu").run({"x": X, "i": np.array([1], np.int32)})


def test_a_failing_node_is_shown_in_the_program(source: Path) -> None:
    with pytest.raises(dmlc.DmlcError) as caught:
        Session(gather(source), "cpu").run({"x": X, "i": np.array([9])})
    (diagnostic,) = caught.value.diagnostics
    assert diagnostic.code.id == "E0554"
    assert "out of data bounds" in diagnostic.message
    assert str(diagnostic.span) == f"{source}:2:9"
    assert diagnostic.span is not None
    assert diagnostic.span.source.line(2) == "    y = gather(x, i)"
    assert diagnostic.help == "backend='reference' shows what it means"
    assert caught.value.exit_code == 1


def test_a_refused_model_is_shown_in_the_program(source: Path) -> None:
    artifact = gather(source, "NoSuchOperator")
    with pytest.raises(dmlc.DmlcError, match=r"refuses the model.*NoSuchOperator") as caught:
        Session(artifact, "cpu")
    assert caught.value.diagnostics[0].code.id == "E0554"


def test_a_failure_without_a_place(source: Path) -> None:
    artifact = gather(source)
    artifact.locations.clear()
    with pytest.raises(dmlc.DmlcError) as caught:
        Session(artifact, "cpu").run({"x": X, "i": np.array([9])})
    assert caught.value.diagnostics[0].span is None
    help = caught.value.diagnostics[0].help
    assert help == "program.verify() reports whether the model fails as it is"  # the reference may lack its operators


def test_free_dimensions_can_be_fixed(source: Path) -> None:
    session = Session(gather(source), "cpu", dims={"N": 2})
    assert session.run({"x": X, "i": np.array([1, 2])})["y"].shape == (2,)
    with pytest.raises(dmlc.DmlcError, match="E0554"):  # ONNX Runtime itself holds the input to the fixed size
        session.run({"x": X, "i": np.array([1, 2, 3])})


def test_a_session_keeps_its_own_model(source: Path) -> None:
    artifact = gather(source)
    session = Session(artifact, "cpu")
    onnx.ModelProto.Clear(artifact.payload)
    assert session.run({"x": X, "i": np.array([1])})["y"].tolist() == [1]


@pytest.mark.skipif(has_directml(), reason="the provider is there")
def test_a_missing_provider(source: Path) -> None:
    with pytest.raises(dmlc.DmlcError, match="no DirectML execution provider") as caught:
        Session(gather(source), "dml")
    assert caught.value.diagnostics[0].code.id == "E0553"


@pytest.mark.directml
@pytest.mark.skipif(not has_directml(), reason="needs the DirectML execution provider")
def test_directml(source: Path) -> None:
    session = Session(gather(source), "dml")
    np.testing.assert_array_equal(session.run({"x": X, "i": np.array([3, 1])})["y"], [3, 1])
