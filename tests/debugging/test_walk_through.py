"""The walk-through of ``docs/wrong_node.md`` runs, and prints what the page shows but for numbers."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from dmlc.cli.main import main

pytestmark = pytest.mark.usefixtures("sessions_here")

PAGE = Path(__file__).parents[2] / "docs" / "wrong_node.md"
_NUMBER = re.compile(r"-?\d[\d.]*(e[+-]\d+)?")


def masked(line: str) -> str:
    """A line without its measured numbers; those of nodes, runs of the search and places stay."""
    if line.startswith(("first difference", "  inputs:", "WRITTEN", "different", "FOUND", "bug.zip", "kernel.zip")):
        return _NUMBER.sub("#", line)
    return line


def test_walk_through(
    tmp_path: Path, python: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text(encoding="utf-8").partition("## A walk-through")[2].partition("\n## ")[0]
    blocks = re.findall(r'^```(\w*)(?: title="(\S+)")?\n(.*?)^```$', text, re.MULTILINE | re.DOTALL)
    snippets = []
    for language, name, block in blocks:
        if name:
            Path(name).write_text(block)
        elif language == "python":
            snippets.append(block)
    for _, _, block in (found for found in blocks if not found[0]):
        for part in re.split(r"^\$ dmlc ", block, flags=re.MULTILINE)[1:]:
            command, *shown = part.splitlines()
            words = [word.replace("python ", f"{python} ") for word in shlex.split(command)]
            capsys.readouterr()
            main(words)
            printed = [masked(line) for line in capsys.readouterr().out.splitlines()]
            wanted = [masked(line) for line in shown if line != "..."]
            assert [line for line in printed if line in wanted] == wanted, printed
            if words[0] == "compile":
                for snippet in snippets:
                    exec(compile(snippet, "walk_through.py", "exec"), {})
