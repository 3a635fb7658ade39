"""Lowerings by their times: what is taken, what the file holds, and where no times are taken. Times are made up, but in
one test."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

import dmlc
from dmlc.api import tuning
from dmlc.diagnostics import DmlcError
from tests.command_line import Run

TEXT = "model secret_name(x: f32[{0}]) -> (y) {{\n    y = {1}(x, axes=[0])\n    return y\n}}\n"
#: The seconds of a model with these operators.
Clock = Callable[[set[str]], float]


class Machine:
    """A device of made-up times; ``wrong`` models give other numbers."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, backend: str = "cpu") -> None:
        self.clock: Clock = lambda found: 2.0 - ("ReduceMax" in found)
        self.noise, self.races = 1.0, 0
        self.wrong: Callable[[set[str]], bool] = lambda _: False
        machine = self

        class Model:
            def __init__(self, model: ModelProto, **settings: Any) -> None:
                assert settings["backend"] == backend
                self.operators = {node.op_type for node in model.graph.node}

            def run(self, feeds: Mapping[str, Any]) -> dict[str, Any]:
                return {"y0": np.ones(3) * machine.wrong(self.operators)}

            @staticmethod
            def race(models: Sequence[Model], feeds: Mapping[str, Any], most: float) -> tuple[list[float], float]:
                machine.races += 1
                return [machine.clock(model.operators) for model in models], machine.noise

        monkeypatch.setattr(tuning, "OrtModel", Model)
        here = tuning.Times(provider=backend, device="a card", onnxruntime="1.99")
        monkeypatch.setattr(tuning, "_this_device", lambda _: here)


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    return Machine(monkeypatch)


def compiled(operation: str = "argmax", shape: str = "4, 6", **options: Any) -> dmlc.Program:
    return dmlc.compile(dmlc.Source(TEXT.format(shape, operation)), **{"target": "cpu", "tune": True, **options})


def fired(program: dmlc.Program) -> list[str]:
    return [entry.rule for entry in program.ledger]


def test_the_fastest_is_taken_whatever_it_is_estimated_at(machine: Machine) -> None:
    assert "blocked-argmax" not in fired(compiled(tune=False))
    program = compiled()
    assert fired(program)[0] == "blocked-argmax"
    (said, *_) = [remark.reason() for remark in program.remarks if remark.chosen]
    assert said.startswith("blocked-argmax 1 s (estimated ") and "rather than unchanged 2 s (estimated " in said
    assert program.tuner is not None
    assert program.tuner.summary() == "1 lowered operation timed on a card, ONNX Runtime 1.99"


@pytest.mark.parametrize(("seconds", "noise", "taken"), [(1.9, 1.01, True), (1.96, 1.01, False), (1.7, 1.2, False)])
def test_a_lowering_is_taken_if_it_wins_by_more_than_the_noise(
    machine: Machine, seconds: float, noise: float, taken: bool
) -> None:
    machine.clock, machine.noise = (lambda found: seconds if "ReduceMax" in found else 2.0), noise
    assert ("blocked-argmax" in fired(compiled())) is taken


def test_a_lowering_of_other_numbers_is_not_taken(machine: Machine) -> None:
    machine.wrong = lambda found: "ReduceMax" in found
    assert fired(compiled()) == []
    machine.wrong = lambda _: False
    assert fired(compiled(skip_rules=["blocked-argmax"])) == []
    assert fired(compiled("softmax", "64, 64")).count("softmax-in-parts") == 1
    assert "softmax-in-parts" not in fired(compiled("softmax", "64, 64", exact=True))


def test_the_file_gives_the_same_model_without_a_device(machine: Machine, tmp_path: Path) -> None:
    file = tmp_path / "m.tuning.json"
    made = compiled(tuning=file)
    text = file.read_text("utf-8")
    assert "secret_name" not in text and str(tmp_path) not in text
    (row, *_) = json.loads(text)["rows"]
    assert row["operator"] == "argmax" and row["types"] == ["f32[4, 6]"]
    assert row["microseconds"] == {"unchanged": 2e6, "blocked-argmax": 1e6}
    taken = machine.races
    again = compiled(tuning=file, tune=False)
    assert again.to_bytes("onnx") == made.to_bytes("onnx")
    compiled(tuning=file)
    assert machine.races == taken
    assert file.read_text("utf-8") == text
    document = json.loads(text)
    skipped = tmp_path / "less.json"
    compiled(tuning=skipped, skip_rules=["inner-first-argmax", "blocked-argmax"])
    assert not skipped.exists()  # one lowering is no choice
    file.write_text(json.dumps({**document, "device": "another"}), "utf-8")
    compiled(tuning=file)
    assert machine.races > taken
    assert file.read_text("utf-8") == text


def test_sizes_are_the_ends_of_the_bounds(machine: Machine) -> None:
    program = compiled(shape="4, N", tune=True)
    assert machine.races == 0 and fired(program) == []
    assert "blocked-argmax" in fired(compiled(shape="4, N", bind={"N": 6}))
    bounded = "dim N in 2..6\n" + TEXT.format("4, N", "argmax")
    races = machine.races
    assert "blocked-argmax" in fired(dmlc.compile(dmlc.Source(bounded), target="cpu", tune=True))
    assert machine.races == races + 2


@pytest.mark.parametrize("seconds", [1, 100])
def test_what_takes_too_long_is_left(machine: Machine, monkeypatch: pytest.MonkeyPatch, seconds: int) -> None:
    now = iter(range(0, 1000, 50))
    monkeypatch.setattr(tuning.time, "monotonic", lambda: float(next(now)))
    program = compiled("hardmax", tune_seconds=seconds)
    assert program.tuner is not None
    assert ("without times" in program.tuner.summary()) is (seconds == 1)


def test_seconds_are_for_timing() -> None:
    with pytest.raises(DmlcError, match="tune_seconds is the time that tune takes") as caught:
        compiled(tune=False, tune_seconds=5)
    assert caught.value.diagnostics[0].help == "add tune=True"


def test_an_interrupt_keeps_what_is_known(machine: Machine, tmp_path: Path) -> None:
    def interrupted(found: set[str]) -> float:
        if machine.races > 1:
            raise KeyboardInterrupt
        return 2.0 - ("ReduceMax" in found)

    machine.clock = interrupted
    text = TEXT.replace("y = {1}", "z = argmax(x, axes=[1])\n    y = z[0, 0] + {1}").format("4, 6", "argmax")
    program = dmlc.compile(dmlc.Source(text), target="cpu", tune=True, tuning=tmp_path / "t.json")
    assert fired(program).count("blocked-argmax") == 1
    assert len(json.loads((tmp_path / "t.json").read_text("utf-8"))["rows"]) == 1
    assert program.tuner is not None and program.tuner.summary().endswith("; interrupted")


def test_a_signal_ends_the_process_and_keeps_what_is_known(machine: Machine, tmp_path: Path) -> None:
    class Ended(KeyboardInterrupt):
        pass

    def ended(found: set[str]) -> float:
        if machine.races > 1:
            raise Ended
        return 1.0

    machine.clock = ended
    text = TEXT.replace("y = {1}", "z = argmax(x, axes=[1])\n    y = z[0, 0] + {1}").format("4, 6", "argmax")
    with pytest.raises(Ended):
        dmlc.compile(dmlc.Source(text), target="cpu", tune=True, tuning=tmp_path / "t.json")
    assert len(json.loads((tmp_path / "t.json").read_text("utf-8"))["rows"]) == 1


def test_another_target_gets_the_lowerings_of_its_own_device(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    Machine(monkeypatch, "dml")
    file = tmp_path / "t.json"
    program = compiled("softmax", "64, 64", target="directml", tuning=file)
    assert "softmax-in-parts" in fired(program)
    assert json.loads(file.read_text("utf-8"))["provider"] == "dml"
    assert fired(compiled("softmax", "64, 64", target="directml", tune=False, tuning=file)) == fired(program)
    assert "softmax-in-parts" not in fired(compiled("softmax", "64, 64", target="directml", tune=False))
    with pytest.raises(DmlcError, match="has times of dml, and target cpu runs on cpu"):
        compiled(tuning=file, tune=False)


@pytest.mark.parametrize("target", ["numpy", "onnx"])
def test_targets_without_a_provider(target: str) -> None:
    with pytest.raises(DmlcError, match=f"target {target} names no execution provider"):
        compiled(target=target)


def test_without_the_device_nothing_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    if "DmlExecutionProvider" not in __import__("onnxruntime").get_available_providers():
        with pytest.raises(DmlcError) as caught:
            compiled(target="directml")
        (problem,) = caught.value.diagnostics
        assert problem.code.id == "E0553" and "--tuning FILE" in (problem.help or "")
    monkeypatch.setattr(tuning, "device_name", lambda _: "")
    monkeypatch.setattr(tuning, "on_software", lambda: True)
    with pytest.raises(DmlcError, match="whose times say nothing"):
        tuning._this_device("webgpu")


def test_a_file_of_something_else(tmp_path: Path) -> None:
    for content in ("{}", "nothing", '{"schema": 1, "provider": "cpu", "device": "", "onnxruntime": "", "rows": [1]}'):
        (tmp_path / "t.json").write_text(content)
        with pytest.raises(DmlcError, match="has no times of lowerings"):
            compiled(tune=False, tuning=tmp_path / "t.json")
    for schema in (2, '"1"'):
        (tmp_path / "t.json").write_text(f'{{"schema": {schema}}}')
        with pytest.raises(DmlcError, match="not 1: another dmlc wrote it"):
            compiled(tune=False, tuning=tmp_path / "t.json")
    with pytest.raises(DmlcError, match="cannot open"):
        compiled(tune=False, tuning=tmp_path / "missing.json")


def test_the_command_line_times_on_the_cpu_provider(command_line: Run, tmp_path: Path) -> None:
    source, out = tmp_path / "m.dml", tmp_path / "m.onnx"
    source.write_text(TEXT.format("512, 300", "argmax"))
    code, _, err = command_line("compile", str(source), "--target", "cpu", "--tune", "-o", str(out))
    assert code == 0 and "note: 1 lowered operation timed on " in err
    file = tmp_path / "m.tuning.json"
    (row, *_) = json.loads(file.read_text("utf-8"))["rows"]
    assert set(row["microseconds"]) == {"unchanged", "blocked-argmax"} and row["noise"] >= 1.03
    _, page, _ = command_line("explain", str(source), "--target", "cpu", "--tuning", str(file))
    assert "lowerings, with their times: times taken on " in page and " (estimated " in page


def test_candidates_of_the_directml_provider(monkeypatch: pytest.MonkeyPatch) -> None:
    """Casts around a sum of f16, forms of top_k, and attention, which needs no ``fuse`` and does not follow it."""
    machine = Machine(monkeypatch, "dml")
    machine.wrong = lambda _: False

    def fired_where(faster: str, text: str, **options: Any) -> list[str]:
        machine.clock = lambda found: 2.0 - (faster in found)
        return fired(dmlc.compile(dmlc.Source(text), target="directml", tune=True, **options))

    of_halves = "model m(x: f16[64, 64]) -> (y) {\n    y = reduce_sum(x, axes=[0])\n    return y\n}\n"
    assert "reduce-in-f32" in fired_where("Cast", of_halves)
    assert "reduce-in-f32" not in fired_where("nothing", of_halves)
    best = "model m(x: f32[64, 64]) -> (v, i) {{\n    v, i = top_k(x, k=2, axis={})\n    return v, i\n}}\n"
    for faster, axis, rules in (("ArgMax", 1, ["by-search"]), ("Transpose", 0, ["of-last"]), ("TopK", 0, [])):
        assert [f"top-k-{name}" for name in rules] == [
            rule for rule in fired_where(faster, best.format(axis)) if rule.startswith("top-k")
        ]
    attention = (
        "model m(q: f32[1, 2, 8, 16], k: f32[1, 2, 16, 8], v: f32[1, 2, 8, 16]) -> (y) {\n"
        "    y = matmul(softmax(matmul(q, k) * 0.25, axes=[3]), v)\n    return y\n}\n"
    )
    for options in ({}, {"fuse": ["attention"]}):
        assert "multi-head-attention" in fired_where("MultiHeadAttention", attention, **options)
        assert "multi-head-attention" not in fired_where("nothing", attention, **options)
    assert "multi-head-attention" not in fired_where("MultiHeadAttention", attention, exact=True)
