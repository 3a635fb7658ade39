"""Commands in the helps of code pages work when pasted."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

import dmlc.diagnostics.catalogue  # noqa: F401  fills CODES
from dmlc.diagnostics import CODES, Code
from tests.command_line import Run
from tests.rows import each_row

#: A program for each code: its page's, and one for a code whose page has a model.
PROGRAMS = [
    *((code, code.example) for code in CODES.values() if code.program),
    (CODES["W0601"], "model m(x: f64[3]) -> (y) {\n    return exp(x)\n}\n"),
]
#: A command in a help, up to the next sentence.
_COMMAND = re.compile(r"(?:does: |see: )dmlc (.+?)(?:;|$)")


def commands_of(err: str) -> list[str]:
    helps = [line for line in err.splitlines() if line.lstrip().startswith("= help: ")]
    return list(dict.fromkeys(command for line in helps for command in _COMMAND.findall(line)))


def test_commands_in_helps_of_pages_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command_line: Run) -> None:
    monkeypatch.chdir(tmp_path)
    tried: set[str] = set()

    @each_row(("code", "program"), PROGRAMS)
    def work(code: Code, program: str) -> None:
        Path("p.dml").write_text(program)
        for command in commands_of(command_line("check", "p.dml", "--strict")[2]):
            tried.add(command.split()[0])
            exit_code, _, err = command_line(*shlex.split(command))
            assert exit_code == 0, f"dmlc {command}: {err}"
            if command.startswith("compile "):
                assert f"[{code.id}]" not in err, f"dmlc {command} leaves {code.id}: {err}"

    work()
    assert tried == {"compile", "explain"}, tried
