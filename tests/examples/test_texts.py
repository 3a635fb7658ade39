"""The examples as programs that dmlc writes: read and written again, they are the same text."""

from __future__ import annotations

from pathlib import Path

import pytest

import dmlc

ROOT = Path(__file__).parents[2]
PROGRAMS = sorted((ROOT / "examples").rglob("*.dml"))


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.relative_to(ROOT / "examples").as_posix())
def test_the_text_of_a_program_that_is_read_is_that_text(path: Path, tmp_path: Path) -> None:
    once, twice = tmp_path / "once" / "m.dml", tmp_path / "twice" / "m.dml"
    for source, out in ((path, once), (once, twice)):
        out.parent.mkdir()
        dmlc.compile(source).save(out)
    assert twice.read_text("utf-8") == once.read_text("utf-8")
