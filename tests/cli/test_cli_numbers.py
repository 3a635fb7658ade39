"""``--f64 f32`` and ``--accumulate f32`` at the command line, and the warnings that name them."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.command_line import Run

WIDE = "model m(x: f64[3]) -> (y) {\n    y = exp(x) * 2.0\n    return y\n}\n"
HALF = "model m(x: f16[2, 64]) -> (y) {\n    y = reduce_mean(x * x, axes=[1]) / 1000.0\n    return y\n}\n"
OPEN = "dim N in 0..8\nmodel m(x: f32[N, 4]) -> (y) {\n    y = reduce_sum(x, axes=[0])\n    return y\n}\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_line: Run) -> Run:
    monkeypatch.chdir(tmp_path)
    for name, text in (("wide", WIDE), ("half", HALF), ("open", OPEN)):
        Path(f"{name}.dml").write_text(text)
    infos = [helper.make_tensor_value_info(n, TensorProto.DOUBLE, [3]) for n in "xy"]
    graph = helper.make_graph([helper.make_node("Exp", ["x"], ["y"], name="e")], "g", infos[:1], infos[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10), "wide.onnx")
    return command_line


def test_compile_f64(run: Run) -> None:
    code, _, err = run("compile", "wide.dml")
    assert code == 0
    assert "warning[W0601]" in err and "--f64 f32 computes it in f32" in err
    code, _, err = run("compile", "wide.dml", "--f64", "f32", "--strict", "--verify", "4", "--ledger", "l.json")
    assert code == 0
    assert "warning" not in err
    graph = onnx.load("wide.onnx").graph
    assert [n.op_type for n in graph.node] == ["Cast", "Exp", "Mul", "Cast"]
    assert {v.type.tensor_type.elem_type for v in (*graph.input, *graph.output)} == {TensorProto.DOUBLE}
    (row, *_) = json.loads(Path("l.json").read_text())["rewrites"]
    assert (row["rule"], row["class"]) == ("narrow-f64", "asked for")


def test_check_f64(run: Run) -> None:
    code, out, err = run("check", "wide.dml", "--strict")
    assert code == 1
    (command,) = set(re.findall(r"this does: ([^;\n]*)", err))
    assert command == "dmlc compile wide.dml -o wide.onnx --f64 f32"
    assert run(*shlex.split(command)[1:], "--strict")[0] == 0
    code, out, err = run("check", "wide.dml", "--f64", "f32", "--strict")
    assert (code, err) == (0, "")
    assert re.match(r"wide.dml on directml: runs, all \d nodes on the GPU in 1 fused graph\n", out)


def test_check_f64_of_a_model(run: Run) -> None:
    code, _, err = run("check", "wide.onnx", "--strict")
    assert code == 1
    (command,) = re.findall(r"this does: ([^;\n]*)", err)
    assert "--f64 f32" in command
    assert run(*shlex.split(command)[1:], "--strict")[0] == 0
    assert run("check", "wide.fixed.onnx", "--strict")[0] == 0
    # With the flag the report is that of what compiling makes.
    assert run("check", "wide.onnx", "--f64", "f32", "--strict")[0] == 0


def test_run_and_explain(run: Run) -> None:
    x = np.array([1 + 2.0**-40, 0, 1])
    np.save("x.npy", x)
    argv = ("--input", "x=x.npy", "--backend", "cpu", "-o", "y.npz")
    assert run("run", "wide.dml", "--f64", "f32", *argv)[0] == 0
    narrow = np.load("y.npz")["y"]
    assert run("run", "wide.dml", *argv)[0] == 0
    assert narrow.dtype == np.float64
    assert np.abs(narrow - np.load("y.npz")["y"]).max() > 1e-9
    np.testing.assert_allclose(narrow, 2 * np.exp(x), rtol=1e-6)
    code, out, _ = run("explain", "wide.dml", "--f64", "f32", "-v")
    assert code == 0
    assert "1 narrow-f64 (asked for): " in out
    assert "every f64 computation is done in f32, as was asked for: 2 nodes" in out


def test_accumulate(run: Run) -> None:
    code, _, err = run("compile", "half.dml")
    assert code == 0
    assert "warning[W0604]: the square of x may overflow f16 before its reduce_mean" in err
    assert "half.dml:2:" in err and "--accumulate f32" in err
    assert run("compile", "half.dml", "--strict")[0] == 1
    code, _, err = run("compile", "half.dml", "--accumulate", "f32", "--strict", "--verify", "4")
    assert (code, "warning" in err) == (0, False)
    np.save("x.npy", np.full((2, 64), 500, np.float16))
    assert (
        run("run", "half.dml", "--accumulate", "f32", "--input", "x=x.npy", "--backend", "cpu", "-o", "y.npz")[0] == 0
    )
    assert np.load("y.npz")["y"].tolist() == [[250], [250]]
    code, out, _ = run("explain", "half.dml", "--accumulate", "f32", "-v")
    assert "1 accumulate-f32 (rounding may change): " in out
    assert "mul, reduce_mean, div of f16 in f32" in out


def test_check_tells_of_numbers_and_sizes(run: Run) -> None:
    code, out, err = run("check", "half.dml")
    assert (code, "warning[W0604]" in err) == (0, True)
    code, out, err = run("check", "half.dml", "--strict")
    assert (code, "error[W0604]" in err, "warning" in err) == (1, True, False)
    assert out.startswith("half.dml on directml: check failed: 1 error\n")
    assert run("check", "half.dml", "--accumulate", "f32", "--strict")[0] == 0
    code, _, err = run("check", "open.dml")
    assert code == 0
    assert "warning[W0605]: reduce_sum of f32[N, 4] leaves its result unwritten on DirectML where N is 0" in err
    assert run("check", "open.dml", "--strict")[0] == 1
    assert run("check", "open.dml", "--strict", "--bind", "N=3")[0] == 0
    found = json.loads(run("check", "half.dml", "--format", "sarif")[1])
    assert [r["ruleId"] for r in found["runs"][0]["results"]] == ["W0604"]


@pytest.mark.parametrize("argv", [["--f64", "f16"], ["--accumulate", "f64"], ["--accumulate", "f32", "--exact"]])
def test_wrong_usage(run: Run, argv: list[str]) -> None:
    assert run("compile", "half.dml", *argv)[0] == 2


def test_pages(run: Run) -> None:
    for code in ("W0603", "W0604", "W0605"):
        assert run("explain", code)[0] == 0
