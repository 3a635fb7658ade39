"""``check`` of a model is short: the answer, where the nodes run, what comes next, one block for each warning.

The commands in its helps are pages of codes, and compilations with the default options, which ``test_next_commands``
runs for some.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from models.fixture_parameters import WHOLE_MODELS

from dmlc.cli.main import main
from dmlc.diagnostics import CODES

MOST_LINES, MOST_COLUMNS = 25, 100


@pytest.mark.parametrize("path", WHOLE_MODELS)
def test_check_has_few_lines(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(path.parent)
    assert main(["check", path.name]) in (0, 1)
    out, err = capsys.readouterr()
    assert len((out + err).splitlines()) <= MOST_LINES
    first, *lines = out.splitlines()
    assert first.startswith(f"{path.name} on directml: ")
    wide = [line for line in lines if len(line) > MOST_COLUMNS and path.name not in line]
    assert wide == []
    stem = re.escape(path.stem)
    for command in re.findall(r"= help: (?:.*(?:this does|see): )?dmlc (.*)", err):
        code = re.fullmatch(r"explain (\w+)", command)
        is_page = code is not None and code[1] in CODES
        assert is_page or re.fullmatch(rf"compile {stem}\.onnx -o {stem}\.(dml|fixed)\.onnx", command), command
