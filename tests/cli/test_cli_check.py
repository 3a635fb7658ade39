"""``dmlc check`` and ``dmlc targets --op``: the report, its forms, its exit codes, and fixes that work when typed."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import dmlc
from dmlc.cli.main import main
from tests.command_line import Run

TEXT = """\
model m(x: f32[N, 4], d: f64[3]) -> (best, more) {
    best = argmax(x, axes=[1])
    more = d + 1.0
    return best, more
}
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_line: Run) -> Run:
    monkeypatch.chdir(tmp_path)
    Path("m.dml").write_text(TEXT)
    save("mean", helper.make_node("ReduceMean", ["x"], ["y"], name="avg"), TensorProto.INT32, [2, 3], [1, 1], 18)
    save("late", helper.make_node("Transpose", ["x"], ["y"], name="turn"), TensorProto.FLOAT, [2, 3], [3, 2], 23)
    save("good", helper.make_node("Exp", ["x"], ["y"]), TensorProto.FLOAT, ["N", 3], ["N", 3], 18)
    return command_line


def save(name: str, node: onnx.NodeProto, dtype: int, shape: list, result: list, opset: int) -> None:
    infos = [helper.make_tensor_value_info(n, dtype, s) for n, s in (("x", shape), ("y", result))]
    graph = helper.make_graph([node], name, infos[:1], infos[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10), f"{name}.onnx")


def test_a_program(run: Run) -> None:
    code, out, err = run("check", "m.dml")
    assert code == 0
    assert out.startswith("m.dml on directml: runs, with 1 of 3 nodes on the CPU and nothing fused\n")
    assert re.search(r"^ +2 +GPU, one at a time +N is dynamic$", out, re.MULTILINE)
    assert "-> ARGMAX" in run("check", "m.dml", "-v")[1]
    assert "dynamic sizes N: --bind fixes them" in run("check", "m.dml", "-v")[1]
    assert "warning[W0601]" in err
    assert "m.dml:3:" in err
    assert run("check", "m.dml", "--strict")[0] == 1
    assert re.search(r"^ +\d +GPU, 1 fused graph$", run("check", "m.dml", "--bind", "N=1")[1], re.MULTILINE)


def test_a_model_that_onnx_runtime_refuses_is_not_fine_for_cpu(run: Run) -> None:
    turn = helper.make_node("SVMRegressor", ["x"], ["y"], domain="ai.onnx.ml", coefficients=[1.0, 1.0], rho=[0.5])
    save("svm", turn, TensorProto.DOUBLE, [2, 2], [2, 1], 17)
    model = onnx.load("svm.onnx")
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    model.opset_import.add(domain="ai.onnx.ml", version=1)
    onnx.save(model, "svm.onnx")
    code, out, err = run("check", "svm.onnx", "--target", "cpu")
    assert code == 1
    assert out == "svm.onnx on cpu: check failed: 1 error\n"
    assert "error[E0554]: ONNX Runtime refuses the model: Could not find an implementation for SVMRegressor" in err
    document = json.loads(run("check", "svm.onnx", "--target", "cpu", "--format", "json")[1])
    assert [d["code"] for d in document["diagnostics"]] == ["E0554"]
    code, out, err = run("check", "good.onnx", "m.dml", "--target", "cpu")
    assert (code, "refuses" in err) == (0, False)


def test_a_model_that_onnx_runtime_refuses_for_its_opset_gets_no_help_about_dtypes(run: Run) -> None:
    turn = helper.make_node("Add", ["x", "x"], ["y"], broadcast=1, axis=1)
    save("old", turn, TensorProto.FLOAT, [2, 2], [2, 2], 6)
    code, _, err = run("check", "old.onnx", "--target", "cpu")
    assert code == 1
    assert "help: the model is of opset 6, and ONNX Runtime has kernels from opset 7 on: export it anew" in err


def test_a_node_of_texts_is_not_to_be_cast(run: Run) -> None:
    nodes = [helper.make_node("Cast", ["x"], ["t"], to=TensorProto.STRING),
             helper.make_node("Cast", ["t"], ["y"], to=TensorProto.FLOAT)]  # fmt: skip
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy")
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 18)])
    onnx.save(model, "texts.onnx")
    err = run("check", "texts.onnx")[2]
    assert err.count("help: give the model numbers in the place of texts") == 1
    assert "2 nodes run on the CPU: " in err
    assert "cast to" not in err


@pytest.mark.parametrize("words", [["run", "m.dml", "--backend"], ["bench", "m.dml", "--provider"]])
def test_the_name_of_a_target_is_not_that_of_its_backend(words: list[str], run: Run) -> None:
    code, _, err = run(*words, "directml", "--random", "1")
    assert code == 2
    assert err.rstrip().endswith("did you mean dml?")


def test_a_target_is_not_called_as_its_device(run: Run) -> None:
    assert 'did you mean "directml"?' in run("check", "m.dml", "--target", "gpu")[2]


def test_a_model_that_loads_only_when_it_is_compiled_is_said_so(run: Run) -> None:
    model = onnx.load("good.onnx")
    model.graph.output[0].type.tensor_type.elem_type = TensorProto.DOUBLE
    onnx.save(model, "declared.onnx")
    code, _, err = run("check", "declared.onnx", "--target", "cpu")
    assert code == 0
    reason = "its result y is declared tensor(double) and is tensor(float)"
    note = (
        f"note: ONNX Runtime refuses the model as it is, and loads what dmlc compile makes of it: node Exp y: {reason}"
    )
    assert note in err
    document = json.loads(run("check", "declared.onnx", "--target", "cpu", "--format", "json")[1])
    assert "refuses the model as it is" in document["notes"][0]


def test_a_model_is_looked_at_as_it_is_and_the_fix_works_when_typed(run: Run) -> None:
    code, out, err = run("check", "mean.onnx")
    assert code == 1
    assert out.startswith("mean.onnx on directml: does not load, because of 1 node\n")
    assert "error[E0591]: mean.onnx: ReduceMean avg" in err
    assert "source: measured" in run("check", "mean.onnx", "-v")[2]
    (command,) = re.findall(r"this does: (dmlc compile .*?)(?:;|$)", err, re.MULTILINE)
    words = shlex.split(command)
    assert main(words[1:]) == 0
    fixed = words[words.index("-o") + 1]
    assert run("check", fixed)[0] == 0
    x = np.array([[-1, -2, -2], [5, 5, 6]], np.int32)
    y = dmlc.compile(fixed, target="cpu").run({"x": x})["y"]
    assert y.tolist() == [[1]]  # 11 / 6, toward zero


def test_a_node_that_is_lost_at_a_newer_opset(run: Run) -> None:
    code, out, _ = run("check", "late.onnx")
    assert (code, "opsets 7 to 22, not 23" in out) == (0, True)
    code, _, err = run("check", "late.onnx", "--strict")
    assert code == 1
    (command,) = re.findall(r"this does: (dmlc compile .*?)(?:;|$)", err, re.MULTILINE)
    assert main(shlex.split(command)[1:]) == 0
    assert run("check", "late.fixed.onnx", "--strict")[0] == 0


def test_warnings_are_one_for_each_reason(run: Run) -> None:
    """In text, GitHub's form and SARIF; JSON has each node too."""
    nodes = [helper.make_node("Transpose", [a], [b], name=f"turn {b}") for a, b in ("xa", "ab", "bc", "cd")]
    nodes.append(helper.make_node("Det", ["d"], ["y"], name="last"))
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in (("x", [2, 2]), ("y", [])))
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 23)])
    model.ir_version = 10
    onnx.save(model, "many.onnx")
    code, out, err = run("check", "many.onnx")
    assert code == 0
    assert out.startswith("many.onnx on directml: runs, with 5 of 5 nodes on the CPU\n")
    assert err.splitlines() == [
        "warning[W0601]: many.onnx: 4 nodes run on the CPU: DirectML's provider has kernels for opsets 7 to 22, not 23",
        "  4 Transpose: turn a, turn b, turn c, ... (-v lists them)",
        "  = help: dmlc compile many.onnx -o many.dml.onnx",
        "warning[W0601]: many.onnx: Det last runs on the CPU: DirectML's provider has no kernel for Det",
        "  = help: write it out in other operators",
    ]
    verbose = run("check", "many.onnx", "-v")[2].splitlines()
    assert "  Transpose turn d" in verbose
    assert any(line.startswith("  = note: source: ") for line in verbose)
    found = json.loads(run("check", "many.onnx", "--format", "json")[1])
    assert len(found["diagnostics"]) == 5
    assert [group["nodes"] for group in found["warnings"]] == [
        {"Transpose": ["turn a", "turn b", "turn c", "turn d"]},
        {"Det": ["last"]},
    ]
    assert len(run("check", "many.onnx", "--format", "github")[1].splitlines()) == 2
    results = json.loads(run("check", "many.onnx", "--format", "sarif")[1])["runs"][0]["results"]
    names = [[place["name"] for place in result["locations"][0]["logicalLocations"]] for result in results]
    assert names == [["turn a", "turn b", "turn c", "turn d"], ["last"]]


def test_the_next_commands_of_check_work_when_typed(run: Run) -> None:
    """The first takes the node off the CPU; the second fixes the dynamic size too."""
    save("turn", helper.make_node("Transpose", ["x"], ["y"], name="t"), TensorProto.FLOAT, ["N", 3], [3, "N"], 23)
    found = json.loads(run("check", "turn.onnx", "--format", "json")[1])
    assert found["requires"]["opset"] == 23
    first, second = found["next"]
    assert first["effect"] == "1 node, all on the GPU"
    assert second["effect"] == "1 fused graph of 1 node, nothing on the CPU"
    for step, graphs in ((first, 0), (second, 1)):
        made = json.loads(run(*shlex.split(step["command"])[1:], "--format", "json")[1])
        assert (made["after"]["on_cpu"], made["after"]["fused_graphs"]) == (0, graphs)
    out = run("check", "turn.onnx", "--bind", "N=2")[1]
    assert "--bind N=2\n" in out
    assert out.count("dmlc compile") == 1
    assert "next:" not in run("check", "good.onnx", "--bind", "N=2")[1]


def test_a_size_that_tf2onnx_named_is_fixed_by_that_name(run: Run) -> None:
    shape: list[str | int] = ["unk__5", 3]
    save("tf", helper.make_node("Exp", ["x"], ["y"]), TensorProto.FLOAT, shape, shape, 18)
    out = run("check", "tf.onnx")[1]
    assert "unk__5 is dynamic\n" in out
    assert "--bind unk__5=1\n            1 fused graph of 1 node, nothing on the CPU\n" in out


def test_the_next_command_promises_that_i64_fits_the_device(run: Run) -> None:
    save("mask", helper.make_node("Mul", ["x", "x"], ["y"], name="t"), TensorProto.INT64, [2, 3], [2, 3], 21)
    for options, ends in (((), "-32768..32767"), (("--input", "x=x.npy"), "-2..3")):
        np.save("x.npy", np.arange(-2, 4).reshape(2, 3))
        (step,) = json.loads(run("check", "mask.onnx", "--target", "webgpu", *options, "--format", "json")[1])["next"]
        assert f"--range x={ends}" in step["command"] and step["effect"] == "nothing on the CPU"
        made = json.loads(run(*shlex.split(step["command"])[1:], "--format", "json")[1])
        assert made["after"]["on_cpu"] == 0 and made["next"] == []


def test_the_next_commands_write_where_something_can_be_written(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("kept").mkdir()
    save("kept/turn", helper.make_node("Transpose", ["x"], ["y"], name="t"), TensorProto.FLOAT, ["N", 3], [3, "N"], 23)
    assert " -o kept/turn.dml.onnx" in run("check", "kept/turn.onnx")[1]
    monkeypatch.setattr("os.access", lambda path, _: str(path) != "kept")
    assert re.findall(r" -o (\S+)", run("check", "kept/turn.onnx")[1]) == ["turn.dml.onnx", "turn.dml.onnx"]


def test_json(run: Run) -> None:
    code, out, _ = run("check", "good.onnx", "--bind", "N=2", "--format", "json")
    found = json.loads(out)
    assert (code, found["ok"], found["partitions"], found["dispatches"], found["bytes"]) == (0, True, 1, 1, 48)
    (node,) = found["nodes"]
    assert node["directml"] == ["ELEMENT_WISE_EXP"]
    assert (node["where"], node["first_feature_level"]) == ("provider", "5.0")
    found = json.loads(run("check", "mean.onnx", "--format", "json")[1])
    assert (found["ok"], found["diagnostics"][0]["code"]) == (False, "E0591")
    assert found["nodes"][0]["findings"][0]["effect"] == "fails"


def test_sarif(run: Run) -> None:
    code, out, err = run("check", "m.dml", "--format", "sarif")
    assert (code, err) == (0, "")
    document = json.loads(out)
    assert document["version"] == "2.1.0"
    (result,) = document["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("W0601", "warning")
    place = result["locations"][0]["physicalLocation"]
    region = {"startLine": 3, "startColumn": 12, "endLine": 3, "endColumn": 19}
    assert (place["artifactLocation"]["uri"], place["region"]) == ("m.dml", region)
    (rule,) = document["runs"][0]["tool"]["driver"]["rules"]
    assert rule["id"] == "W0601"


def test_a_node_of_a_used_file_is_shown_in_that_file(run: Run) -> None:
    Path("blocks.dml").write_text("def more(d) {\n    return d + 1.0\n}\n")
    Path("user.dml").write_text('use more from "blocks.dml"\n\nmodel m(d: f64[3]) -> (y) {\n    return more(d)\n}\n')
    (found,) = json.loads(run("check", "user.dml", "--format", "json")[1])["diagnostics"]
    (label,) = found["labels"]
    assert (found["code"], Path(label["file"]).name, label["line"], label["column"]) == ("W0601", "blocks.dml", 2, 12)
    assert "return d + 1.0" in run("check", "user.dml")[2]


def test_github(run: Run) -> None:
    code, out, _ = run("check", "mean.onnx", "--format", "github")
    assert code == 1
    assert out.startswith("::error file=mean.onnx,title=E0591::ReduceMean avg")
    Path("bad.dml").write_text("model\n")
    code, out, _ = run("check", "bad.dml", "--format", "github")
    assert code == 1
    assert out.startswith("::error file=bad.dml,line=1,")


def test_feature_levels(run: Run) -> None:
    Path("h.dml").write_text("model h(x: f32[2, 3]) -> (y) {\n    y = softmax(x)\n    return y\n}\n")
    assert run("check", "h.dml", "--feature-level", "5.1")[0] == 0
    code, out, _ = run("check", "h.dml", "--feature-level", "5.0")
    assert (code, "ACTIVATION_SOFTMAX1 exists from feature level 5.1 on" in out) == (1, True)
    code, _, err = run("check", "h.dml", "--feature-level", "3.0")
    assert (code, "error[E0557]" in err) == (1, True)
    code, _, err = run("check", "h.dml", "--feature-level", "7.5")
    assert (code, "error[E0556]" in err) == (2, True)
    code, _, err = run("check", "h.dml", "--target", "directx")
    assert (code, "error[E0550]" in err) == (2, True)


def test_an_older_onnxruntime(run: Run) -> None:
    assert run("check", "good.onnx", "--target", "directml:ort-1.17")[0] == 0
    assert run("compile", "m.dml", "--target", "directml:ort-1.17", "-o", "m.onnx")[0] == 0
    assert onnx.load("m.onnx").opset_import[0].version == 18


def test_targets_lists_and_prints_rows(run: Run) -> None:
    out = run("targets")[1]
    assert "directml:ort-1.17" in out
    out = run("targets", "directml", "--op", "argmax")[1]
    assert "ArgMax: opsets 7 to 28; becomes ARGMAX" in out
    assert "4.1 on  InputTensor" in out
    found = json.loads(run("targets", "directml", "--op", "top_k1", "--feature-level", "3.1", "--format", "json")[1])
    (table,) = found["directml"]
    assert [level["level"] for level in table["levels"]] == ["3.1"]
    assert run("targets", "directml", "--op", "argmaxx")[0] == 2
    assert run("targets", "numpy", "--op", "argmax")[0] == 2


def test_warnings_of_compile(run: Run) -> None:
    program = dmlc.compile("m.dml")
    assert [d.code.id for d in program.diagnostics] == ["W0601"]
    with pytest.raises(dmlc.DmlcError) as caught:
        dmlc.compile("m.dml", strict=True)
    assert caught.value.diagnostics[0].code.id == "W0601"
    assert dmlc.compile("m.dml", target="cpu").diagnostics == ()
    advice = json.loads(dmlc.model_facts(program.to_onnx())[0]["session"])
    assert (advice["schema"], advice["free_dimensions"]) == (1, ["N"])


def test_compile_shows_a_node_where_check_does(run: Run) -> None:
    """With its line, not the file alone."""
    (found,) = json.loads(run("check", "m.dml", "--format", "json")[1])["diagnostics"]
    for verb in (("compile", "m.dml", "--dry-run"), ("compile", "m.dml", "--dry-run", "--strict")):
        document = json.loads(run(*verb, "--format", "json")[1])
        assert [d["labels"] for d in document["diagnostics"]] == [found["labels"]]
        assert "m.dml:3:12" in run(*verb)[2]
    (diagnostic,) = dmlc.compile("m.dml").diagnostics
    assert diagnostic.span is not None and (diagnostic.span.line, diagnostic.span.column) == (3, 12)


def test_compile_refuses_what_would_fail(run: Run) -> None:
    save("rank", helper.make_node("Neg", ["x"], ["y"], name="deep"), TensorProto.FLOAT, [1] * 9, [1] * 9, 18)
    code, _, err = run("compile", "rank.onnx", "-o", "out.onnx")
    assert (code, err.startswith("error[E05")) == (1, True)
    assert not Path("out.onnx").exists()
