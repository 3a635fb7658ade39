"""The progress line says how much is done: the pass of a compilation, the input of a verification."""

from __future__ import annotations

from pathlib import Path

import pytest

from dmlc.cli.main import main
from dmlc.cli.progress import Progress

PROGRAM = "model m(x: f32[N, 8]) -> (y) {\n    return softmax(exp(x) * 2 + 1, axes=[1])\n}\n"


@pytest.fixture
def lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The progress lines of commands as if each step took seconds."""
    found: list[str] = []

    def called(self: Progress, step: str) -> None:
        begin(self, step)
        found.append(self.line())

    def done(self: Progress, part: str) -> None:
        set_part(self, part)
        found.append(self.line())

    begin, set_part = Progress.__call__, Progress._done_part
    monkeypatch.setattr(Progress, "__call__", called)
    monkeypatch.setattr(Progress, "_done_part", done)
    monkeypatch.setattr("dmlc.cli.console.is_terminal", lambda stream: True)
    monkeypatch.chdir(tmp_path)
    Path("m.dml").write_text(PROGRAM)
    return found


def test_a_compilation_counts_its_passes_and_inputs(lines: list[str]) -> None:
    assert main(["compile", "m.dml", "--verify", "3"]) == 0
    passes = [line for line in lines if ", pass " in line]
    assert [line.split(", ")[1] for line in passes] == [f"pass {i}" for i in range(1, len(passes) + 1)]
    assert len(passes) > 3
    inputs = [line for line in lines if ", input " in line]
    count = len(inputs)
    assert [line.partition("s, ")[2] for line in inputs[:2]] == [f"verifying, input {i} of {count}" for i in (1, 2)]
    assert [line.partition("s, ")[2] for line in lines if "writing" in line] == ["writing"]


def test_a_verification_counts_its_inputs(lines: list[str]) -> None:
    assert main(["verify", "m.dml", "--inputs", "3"]) == 0
    assert [line.partition("s, ")[2] for line in lines] == [f"input {i} of 3" for i in (1, 2, 3)]


def test_nothing_is_shown_without_a_terminal(lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dmlc.cli.console.is_terminal", lambda stream: False)
    assert main(["verify", "m.dml", "--inputs", "3"]) == 0
    assert lines == []
