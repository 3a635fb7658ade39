"""The cache of the grammar's tables: reused, rebuilt when it is unusable, and never needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from text_helpers import source

from dmlc import text
from dmlc.text.syntax import grammar


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A cache that does not exist yet; no parser is loaded."""
    file = tmp_path / "dml.tables"
    monkeypatch.setattr(grammar, "cache_file", lambda: str(file))
    grammar.parser_of.cache_clear()
    yield file
    grammar.parser_of.cache_clear()


def parses() -> bool:
    """Parse with a parser that is loaded anew."""
    grammar.parser_of.cache_clear()
    return len(text.parse(source("model m(x: f32[4]) -> (y) {\n    return -x\n}\n")).items) == 1


def test_tables_are_beside_the_compiled_module() -> None:
    assert Path(grammar.cache_file()).parent == Path(grammar.__cached__).parent


def test_tables_are_written_once(file: Path) -> None:
    assert parses()
    first = file.read_bytes(), file.stat().st_mtime_ns
    assert parses()
    assert (file.read_bytes(), file.stat().st_mtime_ns) == first


def test_an_unusable_cache_is_written_again(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert parses()
    whole = file.read_bytes()
    for content in (b"", b"no pickle", whole[: len(whole) // 2], b"0" * 64 + whole[64:]):
        file.write_bytes(content)
        assert parses()
        assert len(file.read_bytes()) > 1000
    changed = grammar.grammar() + "// more\n"
    monkeypatch.setattr(grammar, "grammar", lambda: changed)
    assert parses()
    assert file.read_bytes()[:64] != whole[:64]


def test_a_cache_that_cannot_be_written_is_not_needed(file: Path) -> None:
    file.mkdir()
    assert parses()
