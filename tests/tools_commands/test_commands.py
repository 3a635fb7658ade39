"""Each command of ``tools`` starts, and CONTRIBUTING.md lists it."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

import tools

FOLDER = Path(tools.__file__).parent
COMMANDS = sorted(
    [path.parent.name for path in FOLDER.glob("*/__main__.py")]
    + [path.stem for path in FOLDER.glob("*.py") if "__main__" in path.read_text("utf-8")]
)


@pytest.mark.parametrize("command", COMMANDS)
def test_command_starts(command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["", "--help"])
    for name in (f"tools.{command}", f"tools.{command}.__main__"):  # another test may have imported it
        monkeypatch.delitem(sys.modules, name, raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(f"tools.{command}", run_name="__main__", alter_sys=False)
    assert ended.value.code == 0
    assert f"python -m tools.{command}" in capsys.readouterr().out


def test_commands_are_listed() -> None:
    page = (tools.ROOT / "CONTRIBUTING.md").read_text("utf-8")
    assert [command for command in COMMANDS if f"`python -m tools.{command}" not in page] == []
    assert len(COMMANDS) >= 8
