"""``dmlc doctor --probe``: rows of nodes that ran, a file without names, and who takes the rows before tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import dmlc
from dmlc.api.chosen_target import chosen_target
from dmlc.debugging import probe as probing
from dmlc.diagnostics import DmlcError
from dmlc.placement.probed import Probe, ProbedNode
from dmlc.runtime.hosts import WORKER
from dmlc.runtime.runnable import RunFailed
from dmlc.targets import load_target
from tests import kit
from tests.command_line import Run
from tests.rows import each_row

MODEL = kit.onnx("""
    secret (float[2, 3] private, int64[2] n) => (float[3, 2] hidden, float[2, 3] t) {
        a = Relu (private) b = Relu (a) hidden = Transpose <perm = [1, 0]> (b)
        shape = Constant <value_ints: ints = [2, 3]> () t = Reshape (a, shape)
    }
""")


def rows(model: Any = MODEL, backend: str = "cpu") -> dict[str, ProbedNode]:
    nodes, left = probing.nodes_of_source(model)
    assert left == 0
    found, skipped = probing.probe(nodes, backend, load_target("directml"))
    assert skipped == 0
    return {row.operator: row for row in found.nodes}


def test_each_node_runs_once_alone() -> None:
    found = rows()
    assert set(found) == {"Relu", "Transpose", "Reshape"}
    assert all(row.state == "runs" and row.right and row.microseconds for row in found.values())
    assert found["Transpose"].key == ("Transpose", 13, "perm=[1, 0]", ("float[2, 3]",))
    assert found["Reshape"].types == ("float[2, 3]", "int64[2] = [2, 3]")


def test_nodes_of_open_sizes_are_counted() -> None:
    nodes, left = probing.nodes_of_source(kit.onnx("g (float[N] x) => (float[N] y) { y = Relu (x) }"))
    assert (nodes, left) == ({}, 1)


@pytest.mark.parametrize(
    ("late", "ended", "state"), [(True, True, "late"), (False, True, "crashed"), (False, False, "refused")]
)
def test_a_node_that_fails_has_a_row(monkeypatch: pytest.MonkeyPatch, late: bool, ended: bool, state: str) -> None:
    class Model:
        def __init__(self, *_: Any, **__: Any) -> None:
            assert WORKER.limit == 30
            raise RunFailed("it fails", ended=ended, late=late)

    monkeypatch.setattr(probing, "OrtModel", Model)
    assert {row.state for row in rows().values()} == {state}
    assert WORKER.limit == 120


def test_a_node_of_other_numbers_is_not_right(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probing, "_references", lambda *_: iter([{"y0": np.full((2, 3), 7, np.float32)}]))
    assert rows()["Relu"].right is False


@each_row(
    "text",
    [
        "g (float[2, 3] x, float[3] b) => (float[2, 3] y) { y = Add (x, b) }",
        "g (float[2, 3] x) => (int64[1, 3] y) { y = ArgMax (x) }",
        "g (float[2, 3] x) => (float[2, 3] y) { y = Exp (x) }",
        "g (float[2, 3] x, int64[2] b) => (float[2, 3] y) { y = Gather (x, b) }",
        "g (float[2, 3] x) => (float[2, 3] y) { y = Softmax (x) }",
    ],
)
def test_the_cpu_provider_agrees_with_its_table(text: str) -> None:
    """A sample of what ``dmlc doctor --probe --backend cpu`` does with all rows."""
    model = kit.onnx(text, opset=21)
    inputs = [np.arange(6, dtype=np.float32).reshape(2, 3), np.array([1, 0, 1])[: 2 + ("[3] b" in text)]]
    found = list(probing.in_each_type(model, inputs[: len(model.graph.input)], chosen_target("cpu", None)))
    assert len(found) > 2 and {takes for _, takes in found} >= {True}
    for single, takes in found:
        row = probing.probed(single, "cpu")
        assert takes in (None, row.state == "runs" and row.right is not False), row


# --- who takes the rows


def probe_of(*rows: ProbedNode, provider: str = "dml") -> Probe:
    return Probe(provider=provider, device="a card", onnxruntime="1.99", dmlc="0", nodes=rows)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    found = rows()
    made = [
        msgspec.structs.replace(found["Relu"], state="crashed"),
        msgspec.structs.replace(found["Transpose"], right=False),
        msgspec.structs.replace(found["Reshape"], state="cpu"),
    ]
    path = tmp_path / "card.probe.json"
    path.write_bytes(msgspec.json.encode(probe_of(*made)))
    return path


def test_check_and_compile_take_rows_before_tables(file: Path, tmp_path: Path, command_line: Run) -> None:
    import onnx

    report = dmlc.compile(MODEL, target="directml", probed=file, only_rules=(), opset=17).placement()
    said = {node.op: (node.where, [f.effect for f in node.findings]) for node in report.nodes}
    assert said["Relu"][1] == ["fails"] and said["Transpose"][1] == ["wrong"] and said["Reshape"][0] == "cpu"
    assert {"measured on a card: ONNX Runtime ended its process"} <= {f.limit for _, f in report.findings}
    onnx.save(MODEL, tmp_path / "m.onnx")
    code, out, _ = command_line("check", str(tmp_path / "m.onnx"), "--probed", str(file))
    assert code == 1 and "measured on a card: other numbers than the reference" in out
    assert command_line("check", str(tmp_path / "m.onnx"))[0] == 0


def test_a_file_of_another_provider_or_of_nothing(file: Path, tmp_path: Path) -> None:
    with pytest.raises(DmlcError, match="probed has rows of dml, and target cpu runs elsewhere"):
        dmlc.compile(MODEL, target="cpu", probed=file)
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(DmlcError, match="has no rows of a probe"):
        dmlc.compile(MODEL, probed=tmp_path / "x.json")
    (tmp_path / "x.json").write_text(file.read_text("utf-8").replace('"schema":1', '"schema":2'))
    with pytest.raises(DmlcError, match="has schema 2, not 1"):
        dmlc.compile(MODEL, probed=tmp_path / "x.json")


@each_row("words", [("--force",), ("--backend", "cpu"), ("-o", "rows.json")])
def test_options_of_the_probe_need_it(words: tuple[str, ...], command_line: Run) -> None:
    code, _, err = command_line("doctor", *words)
    assert code == 2 and "options of --probe" in err


def test_the_command_writes_rows_without_names(command_line: Run, tmp_path: Path) -> None:
    import onnx

    onnx.save(MODEL, tmp_path / "m.onnx")
    out = tmp_path / "rows.json"
    words = ("doctor", "--probe", str(tmp_path / "m.onnx"), "--backend", "cpu", "-o", str(out))
    code, said, _ = command_line(*words)
    assert code == 0 and "  3 runs, right\n" in said
    text = out.read_text("utf-8")
    assert not any(name in text for name in ("secret", "private", "hidden", str(tmp_path)))
    assert json.loads(command_line(*words, "--format", "json")[1])["states"] == {"runs, right": 3}
