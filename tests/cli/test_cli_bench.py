"""``dmlc bench``: what it prints, and what it says where the report was wrong."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlc.cli.bench_view import BenchAnswer, bench_answer, benchmark_text, timed_node
from dmlc.cli.main import main
from dmlc.placement.node import NodePlacement
from dmlc.runtime.bench import NodeTime, WholeTime
from dmlc.runtime.session import has_directml
from dmlc.targets.dispatch import dispatch_cost
from tests.command_line import Run

TEXT = """\
model head(x: f32[N, 4]) -> (best, total) {
    return argmax(x, axes=[1]), reduce_sum(exp(x), axes=[1])
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("head.dml").write_text(TEXT)
    np.save("x.npy", np.arange(12, dtype=np.float32).reshape(3, 4))


@pytest.fixture
def bench(command_line: Run) -> Run:
    """Runs ``dmlc bench``; gives exit code, stdout, stderr."""
    return partial(command_line, "bench")


def test_a_line_for_every_node_and_the_whole_model(bench: Run) -> None:
    code, out, err = bench("head.dml", "--provider", "cpu", "--input", "x=x.npy", "--rounds", "3")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("dmlc ")
    assert "medians of 3 rounds" in lines[0]
    assert "sizes: N=3" in lines
    assert any(line.startswith("report: ") and "fused graph" in line for line in lines)
    rows = [line.split() for line in lines if " DirectML  " in line]
    assert {row[1] for row in rows} >= {"ArgMax", "Exp", "ReduceSum"}
    assert all(row[3] == "CPU" for row in rows)
    assert "whole model, fused: " in out
    assert f"at {dispatch_cost().dispatch_us:g} us" in out
    assert "us a dispatch" in out
    assert lines[-1] == "placement: predicted for DirectML; CPU was asked for"


def test_json(bench: Run) -> None:
    code, out, _ = bench("head.dml", "--provider", "cpu", "--random", "1", "--bind", "N=5", "--format", "json")
    found: dict[str, Any] = json.loads(out)
    assert (code, found["schema"], found["command"], found["provider"], found["sizes"]) == (0, 1, "bench", "cpu", {})
    assert all(node["provider"] == "CPUExecutionProvider" and node["agrees"] for node in found["nodes"])
    assert {node["predicted"] for node in found["nodes"]} == {"provider"}
    assert all(node["microseconds"] >= 0 and node["alone_microseconds"] >= 0 for node in found["nodes"])
    assert found["model"]["dispatches"] == sum(node["dispatches"] for node in found["nodes"])
    assert found["model"]["dispatch_us"] == dispatch_cost().dispatch_us
    assert found["whole"]["microseconds"] > 0


def test_a_model_and_a_target_without_a_report(bench: Run) -> None:
    assert main(["compile", "head.dml", "-o", "head.onnx", "-q"]) == 0
    code, out, _ = bench("head.onnx", "--provider", "cpu", "--random", "1", "--target", "cpu", "--rounds", "1")
    assert code == 0
    assert "placement:" not in out
    assert "dispatch.json" not in out
    assert "ArgMax" in out


def test_wrong_usage(bench: Run) -> None:
    assert bench("head.dml", "--random", "1", "--rounds", "0")[0] == 2
    assert bench("head.dml", "--random", "-1")[0] == 2
    assert bench("nowhere.dml", "--provider", "cpu", "--random", "1")[0] == 2
    code, _, err = bench("head.dml", "--provider", "cpu")
    assert code == 1
    assert "E0423" in err


@pytest.mark.skipif(has_directml(), reason="the provider is there")
def test_a_missing_provider_says_what_to_install(bench: Run) -> None:
    code, out, err = bench("head.dml", "--provider", "dml", "--random", "1")
    assert (code, out) == (1, "")
    assert "error[E0553]" in err
    assert "`dmlc doctor` shows how to install it" in err
    code, out, _ = bench("head.dml", "--provider", "dml", "--random", "1", "--format", "json")
    assert json.loads(out)["diagnostics"][0]["code"] == "E0553"


def measured() -> BenchAnswer:
    """As on a machine where one of two nodes ran elsewhere than the report said."""
    said = [
        NodePlacement("sum", "ReduceSum", "provider", "", dispatches=2, bytes=200_000),
        NodePlacement("cast", "Cast", "provider", "", dispatches=1, bytes=0),
        NodePlacement("shape", "Shape", "folded", "", dispatches=0, bytes=0),
    ]
    ran = [
        NodeTime("sum", "ReduceSum", "DmlExecutionProvider", 30.0),
        NodeTime("cast", "Cast", "CPUExecutionProvider", 4.0),
        NodeTime("shape", "Shape", "CPUExecutionProvider", 1.0),
    ]
    pairs = zip(said, ran, strict=True)
    rows = [timed_node(s.name, s.op, s, r, 24.0, inside=False, compares=True) for s, r in pairs]
    own = (NodeTime("Memcpy_0", "MemcpyToHost", "DmlExecutionProvider", 9.0),)
    return bench_answer("dml", "dml", "here", 5, {}, rows, own, WholeTime(71.0, 10.0, True), 1)


def test_a_node_that_ran_elsewhere_is_marked() -> None:
    text = benchmark_text(measured())
    marked = [line.split()[0] for line in text.splitlines() if "<- not as predicted" in line]
    assert marked == ["cast"]
    assert "placement: 1 node not where the report says" in text
    assert "Memcpy_0" in text
    assert [node.agrees for node in measured().rows] == [True, False, True]


def test_what_a_dispatch_took() -> None:
    found = measured()
    assert [line.split()[-2:] for line in benchmark_text(found).splitlines() if " ReduceSum " in line] == [
        ["24.0", "12.0"]
    ]
    bytes_us = 200_000 / dispatch_cost().bytes_per_us
    assert found.whole.work == 61.0
    assert found.model.implied == pytest.approx((61.0 - bytes_us) / 3)
    assert found.model.predicted == pytest.approx(3 * dispatch_cost().dispatch_us + bytes_us)


@pytest.mark.skipif(has_directml(), reason="the provider is there")
@pytest.mark.filterwarnings("ignore:Specified provider:UserWarning")
def test_a_provider_that_takes_nothing(bench: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """ONNX Runtime passes over a provider that it does not have, so here every node lands on the CPU."""
    providers = ["DmlExecutionProvider", "CPUExecutionProvider"]
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: providers)
    code, out, _ = bench("head.dml", "--provider", "dml", "--input", "x=x.npy", "--rounds", "2")
    assert code == 0
    marked = [line for line in out.splitlines() if line.endswith("<- not as predicted")]
    assert len(marked) == len([line for line in out.splitlines() if " DirectML  " in line]) > 2
    assert f"placement: {len(marked)} nodes not where the report says" in out
    assert "with copies from and to the host" in out
