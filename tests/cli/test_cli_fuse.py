"""``--fuse attention`` on the command line, and what ``explain --missed`` prints without it."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from onnx import parser

from tests.command_line import Run

MODEL = """<ir_version: 8, opset_import: ["": 17]>
g (float[2, 4, 5, 8] q, float[2, 4, 7, 8] k, float[2, 4, 7, 8] v, float[2, 1, 5, 7] bias) => (float[2, 5, 32] y)
<float c = {0.3}, int64[3] shape = {2, 5, 32}> {
    t = Transpose<perm = [0, 1, 3, 2]>(k)
    s = MatMul(q, t)
    a = Mul(s, c)
    b = Add(a, bias)
    p = Softmax<axis = -1>(b)
    o = MatMul(p, v)
    r = Transpose<perm = [0, 2, 1, 3]>(o)
    y = Reshape(r, shape)
}"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    onnx.save(parser.parse_model(MODEL), "m.onnx")
    return tmp_path


def test_missed_prints_what_would_be_saved(folder: Path, command_line: Run) -> None:
    code, out, err = command_line("explain", "m.onnx", "--missed")
    assert (code, err) == (0, "")
    assert out.startswith("not rewritten\n  multi-head-attention at ")
    assert ": --fuse attention would make one operator of it and save at least 2 nodes " in " ".join(out.split()) + " "
    assert command_line("explain", "m.onnx", "--missed", "--fuse", "attention")[1] == ("no missed rewrites\n")


@pytest.mark.parametrize("verb", ["compile", "check"])
def test_fused_operator_is_counted(verb: str, folder: Path, command_line: Run) -> None:
    words = ["-o", "out.onnx"] if verb == "compile" else []
    code, out, _ = command_line(verb, "m.onnx", *words, "--fuse", "attention", "--format", "json")
    assert code == 0
    assert "MultiHeadAttention" in json.dumps(json.loads(out))
    code, out, _err = command_line(verb, "m.onnx", *words, "--format", "json")
    assert code == 0 and "MultiHeadAttention" not in out


@pytest.mark.parametrize("target", ["cpu", "onnx", "numpy"])
def test_other_targets_are_refused(target: str, folder: Path, command_line: Run) -> None:
    code, out, err = command_line("explain", "m.onnx", "--fuse", "attention", "--target", target)
    assert (code, out) == (2, "")
    assert f"error[E0556]: target {target} has no operator for attention" in err
