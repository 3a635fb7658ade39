"""Transfers in ``dmlc check`` and in the summary of ``dmlc compile``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dmlc.cli.main import main

CROSSES = """\
model m(x: f32[N, 4, 4]) -> (y) {
    a = relu(x)
    b = onnx.Det(a)
    return exp(b)
}
"""
STAYS = "model m(x: f32[N, 4]) -> (y) {\n    return softmax(x)\n}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("crosses.dml").write_text(CROSSES)
    Path("stays.dml").write_text(STAYS)


def dmlc(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[str, str]:
    capsys.readouterr()
    assert main(list(argv)) == 0
    out, err = capsys.readouterr()
    return out, err


def test_check_prints_each_copy(capsys: pytest.CaptureFixture[str]) -> None:
    out, _ = dmlc(capsys, "check", "crosses.dml", "-v")
    assert "; 2 CPU/GPU copies of about 68 * N;" in " ".join(out.split())
    lines = [f"  CPU/GPU copy: {' '.join(copy.split())}" for copy in out.split("\n  CPU/GPU copy: ")[1:]]
    assert lines[0].startswith(
        "  CPU/GPU copy: a (f32[N, 4, 4], 64 * N), GPU to CPU, a/Relu to b/Det; run Det b/Det on "
    )
    assert len(lines) == 2
    out, _ = dmlc(capsys, "check", "stays.dml", "-v")
    assert "; 0 CPU/GPU copies;" in " ".join(out.split())
    assert "CPU/GPU copy: " not in out


def test_check_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(dmlc(capsys, "check", "crosses.dml", "--format", "json")[0])["transfers"]
    assert (found["count"], found["bytes"], found["possible"]) == (2, "68 * N", 0)
    first, second = found["edges"]
    assert first.pop("cure").startswith("run Det")
    assert first == {
        "value": "a",
        "type": "f32[N, 4, 4]",
        "from": "a/Relu",
        "to": "b/Det",
        "readers": ["b/Det"],
        "from_device": "gpu",
        "to_device": "cpu",
        "bytes": "64 * N",
        "open_dims": ["N"],
    }
    assert (second["from_device"], second["to_device"], second["bytes"]) == ("cpu", "gpu", "4 * N")
    fixed = json.loads(dmlc(capsys, "check", "crosses.dml", "--bind", "N=2", "--format", "json")[0])["transfers"]
    assert (fixed["bytes"], fixed["edges"][0]["bytes"], fixed["edges"][0]["open_dims"]) == (136, 128, [])
    none = json.loads(dmlc(capsys, "check", "stays.dml", "--format", "json")[0])["transfers"]
    assert none == {"count": 0, "bytes": 0, "possible": 0, "edges": []}


def test_compile_prints_how_many(capsys: pytest.CaptureFixture[str]) -> None:
    assert ", 2 CPU/GPU copies, " in dmlc(capsys, "compile", "crosses.dml")[1]
    assert "CPU/GPU" not in dmlc(capsys, "compile", "stays.dml")[1]
    found = json.loads(dmlc(capsys, "compile", "crosses.dml", "--format", "json")[0])
    assert found["transfers"]["count"] == 2
    for target in ("cpu", "onnx", "numpy"):  # no provider whose placement is known
        assert "CPU/GPU" not in dmlc(capsys, "compile", "stays.dml", "--target", target)[1]
