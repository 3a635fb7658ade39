"""``dmlc.verify`` and ``dmlc.check``: the answers of the commands, from Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, TensorProto, helper

import dmlc
from dmlc.cli.main import main

TEXT = "model m(x: f32[2, N]) -> (y) {\n    y = softmax(x)\n    return y\n}\n"


def a_model(op: str = "Softmax") -> ModelProto:
    x, y = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node(op, ["x"], ["y"], name="node")], "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.dml").write_text(TEXT)
    Path("m.onnx").write_bytes(a_model().SerializeToString())
    Path("wrong.onnx").write_bytes(a_model("LogSoftmax").SerializeToString())


def document(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    main([*words, "--format", "json"])
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


# --- verify


@pytest.mark.parametrize("b", ["m.onnx", "wrong.onnx"])
def test_verify_answers_as_the_command(b: str, capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys, "verify", "m.onnx", b)
    verdict = dmlc.verify("m.onnx", b)
    assert isinstance(verdict, dmlc.Verdict)
    said = json.loads(json.dumps(verdict.to_json()).replace("dmlc.diff(a, b)", f"dmlc diff m.onnx {b}"))
    assert {name: told[name] for name in said} == said
    assert (verdict.answer, verdict.ok) == (told["verdict"], told["ok"])


@pytest.mark.parametrize(
    "b",
    [
        "m.onnx",
        Path("m.onnx"),
        a_model(),
        a_model().SerializeToString(),
        dmlc.Source("model m(x: f32[2, 3]) -> (y) {\n    y = softmax(x)\n    return y\n}\n"),
        None,
    ],
    ids=["str", "path", "model", "bytes", "source", "none"],
)
def test_verify_takes_each_source(b: Any) -> None:
    assert dmlc.verify(a_model(), b, inputs=2).answer == "same"


@pytest.mark.parametrize("target", ["directml", "numpy", "directml-only"])
def test_verify_takes_a_compiled_program(target: str) -> None:
    assert dmlc.verify("m.dml", dmlc.compile("m.dml", target=target), inputs=2).answer == "same"
    other = dmlc.compile("wrong.onnx", target="directml")
    assert dmlc.verify("m.onnx", other, inputs=2).answer == "different"
    assert dmlc.verify(other, inputs=2).answer == "same"


@pytest.mark.parametrize("backend", ["reference", "numpy", "cpu"])
def test_verify_runs_a_compiled_program_on_a_backend(backend: str) -> None:
    assert dmlc.verify("m.dml", dmlc.compile("m.dml"), inputs=2, backend=f"reference:{backend}").answer == "same"


def test_verify_compares_with_expected_outputs_in_a_file() -> None:
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    y = np.exp(x) / np.exp(x).sum(-1, keepdims=True)
    np.savez("case.npz", **{"in::x": x, "out::y": y})
    verdict = dmlc.verify("m.onnx", "case.npz")
    assert verdict.headline().startswith("same on the inputs of case.npz")
    assert dmlc.verify("m.onnx", "case.npz", inputs={"x": x + 1.5 * x}).answer == "different"
    np.savez("inputs.npz", **{"in::x": x})
    with pytest.raises(dmlc.DmlcError, match=r"E0422.*inputs.npz has no array out::NAME"):
        dmlc.verify("m.onnx", "inputs.npz")
    np.savez("outputs.npz", **{"out::y": y})
    with pytest.raises(dmlc.DmlcError, match=r"E0422.*no array in::NAME"):
        dmlc.verify("m.onnx", "outputs.npz")


def test_verify_refuses_a_folder_of_results_without_a_use() -> None:
    with pytest.raises(dmlc.DmlcError, match=r"output_path= is for a B that is a \.dxdispatch\.json file"):
        dmlc.verify("m.onnx", "wrong.onnx", output_path="results")


# --- check


@pytest.mark.parametrize("words", [(), ("--target", "cpu"), ("--target", "numpy"), ("--feature-level", "2.0")])
@pytest.mark.parametrize("source", ["m.dml", "m.onnx"])
def test_check_answers_as_the_command(source: str, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    told = document(capsys, "check", source, *words)
    found = dmlc.check(source, **{words[0].strip("-").replace("-", "_"): words[1]} if words else {})
    assert (found.ok, found.source, found.target) == (told["ok"], source, told["target"])
    assert [d.code.id for d in found.diagnostics] == [each["code"] for each in told["diagnostics"]]
    placed = None if found.placement is None else [(node.name, node.where) for node in found.placement.nodes]
    nodes = told["nodes"]
    assert placed == (None if isinstance(nodes, int) else [(node["name"], node["where"]) for node in nodes])


def test_check_takes_each_source() -> None:
    for source in (Path("m.onnx"), a_model(), a_model().SerializeToString(), dmlc.Source(TEXT, name="m.dml")):
        found = dmlc.check(source)
        assert found.ok and found.placement is not None
        assert [node.op for node in found.placement.nodes] == ["Softmax"]


def test_check_of_a_model_is_about_the_model_as_it_is() -> None:
    model = a_model()
    model.opset_import[0].version = 24
    found = dmlc.check(model)
    assert found.program is not None and found.program.opset < 24
    assert found.placement is not None and found.placement.opset == 24


def test_strict_check_makes_warnings_errors() -> None:
    model = a_model("Det")
    del model.graph.output[0].type.tensor_type.shape.dim[1]
    for info in model.graph.input:
        info.type.tensor_type.shape.dim[1].dim_value = 2
    model.graph.output[0].type.tensor_type.shape.ClearField("dim")
    assert dmlc.check(model).ok
    found = dmlc.check(model, strict=True)
    assert not found.ok and found.diagnostics[0].severity == "error"


def test_check_raises_for_a_program_that_does_not_compile() -> None:
    with pytest.raises(dmlc.DmlcError, match="E0301"):
        dmlc.check(dmlc.Source("model m(x: f32[2]) -> (y) {\n    return reduce_max(x, axes=[4])\n}\n"))
    with pytest.raises(dmlc.DmlcError, match="E0556"):
        dmlc.check("m.dml", feature_level="7.7")
    with pytest.raises(dmlc.DmlcError, match="E0550"):
        dmlc.check("m.dml", target="gpu")
