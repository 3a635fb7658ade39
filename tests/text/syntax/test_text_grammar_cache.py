"""The cache of the grammar's tables: private, rebuilt when it is unusable, and never needed."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from text_helpers import source

from dmlc import text
from dmlc.text.syntax import grammar

PROGRAM = "model m(x: f32[4]) -> (y) {\n    y = -x\n    return y\n}\n"
posix = pytest.mark.skipif(os.name == "nt", reason="owners and modes of POSIX")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty folder for caches; no parser is loaded yet."""
    folder = tmp_path.resolve() / "caches"
    folder.mkdir(mode=0o700)
    monkeypatch.setenv("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", str(folder))
    grammar.parser_of.cache_clear()
    yield folder
    grammar.parser_of.cache_clear()


def parses() -> bool:
    """Parse with a parser that is loaded anew."""
    grammar.parser_of.cache_clear()
    return len(text.parse(source(PROGRAM)).items) == 1


def file_in(home: Path) -> Path:
    (file,) = (home / "dmlc").iterdir()
    return file


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


class Bomb:
    """A pickle of it makes a folder when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Callable[[str], None], tuple[str]]:
        return os.mkdir, (str(self.path),)


@posix
@pytest.mark.parametrize("mask", [0o022, 0o002, 0o000, 0o077])
def test_only_the_user_can_write_the_cache(home: Path, mask: int) -> None:
    before = os.umask(mask)
    try:
        assert parses()
    finally:
        os.umask(before)
    assert mode(home / "dmlc") & ~0o700 == 0
    assert mode(file_in(home)) & ~0o600 == 0
    assert grammar.cache_file() == file_in(home)


def test_a_second_process_loads_the_tables(home: Path) -> None:
    assert parses()
    file = file_in(home)
    first = file.read_bytes()
    os.utime(file, (1, 1))
    assert parses()
    assert (file.read_bytes(), file.stat().st_mtime) == (first, 1)


@pytest.mark.parametrize("content", [b"", b"no pickle", b"\x80\x05", "half"])
def test_an_unusable_cache_is_written_again(home: Path, content: bytes | str) -> None:
    assert parses()
    file = file_in(home)
    whole = file.read_bytes()
    file.write_bytes(content if isinstance(content, bytes) else whole[: len(whole) // 2])
    assert parses()
    assert len(file.read_bytes()) > 1000
    os.utime(file, (1, 1))
    assert parses()
    assert file.stat().st_mtime == 1


@pytest.mark.parametrize("what", ["grammar", "lark", "dmlc"])
def test_grammar_lark_and_dmlc_have_caches_of_their_own(home: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    first = grammar.cache_file()
    changed = grammar.grammar() + "// more\n"
    if what == "grammar":
        monkeypatch.setattr(grammar, "grammar", lambda: changed)
    else:
        monkeypatch.setattr(f"{what}.__version__", "0.0.0")
    assert first is not None
    assert grammar.cache_file() not in (first, None)


# --- what another user could have written


def _link(path: Path) -> None:
    other = path.with_name("elsewhere")
    path.rename(other)
    path.symlink_to(other)


UNSAFE: dict[str, Callable[[Path], None]] = {
    "folder is a link": lambda file: _link(file.parent),
    "folder writable by the group": lambda file: file.parent.chmod(0o770),
    "folder writable by all": lambda file: file.parent.chmod(0o707),
    "file is a link": _link,
    "file writable by the group": lambda file: file.chmod(0o660),
    "file writable by all": lambda file: file.chmod(0o606),
    "folder in one that all can write": lambda file: file.parent.parent.chmod(0o777),
    "folder in one that the group can write": lambda file: file.parent.parent.chmod(0o770),
}


@posix
@pytest.mark.parametrize("spoil", UNSAFE.values(), ids=UNSAFE)
def test_what_others_could_have_written_is_not_loaded(home: Path, spoil: Callable[[Path], None]) -> None:
    assert parses()
    file, trap = file_in(home), home / "sprung"
    file.write_bytes(b"\n" + pickle.dumps(Bomb(trap)))
    spoil(file)
    assert grammar.cache_file() is None
    assert parses()
    assert not trap.exists()


def test_a_cache_is_loaded_with_pickle(home: Path) -> None:
    """The test above can fail: nothing else keeps the code in a cache from being run."""
    assert parses()
    trap = home / "sprung"
    file_in(home).write_bytes(b"\n" + pickle.dumps(Bomb(trap)))
    assert parses()
    assert trap.exists()


@posix
def test_files_of_another_user_are_not_loaded(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert parses()
    user = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: user + 1)
    assert grammar.cache_file() is None
    assert parses()


@posix
def test_a_sticky_folder_above_is_safe(home: Path) -> None:
    home.chmod(0o1777)
    assert grammar.cache_file() is not None


# --- no cache


def test_a_cache_that_cannot_be_written_is_not_needed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "dmlc").write_bytes(b"")
    assert grammar.cache_file() is None
    assert parses()


def test_a_user_without_a_home_needs_no_cache(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setenv("LOCALAPPDATA" if os.name == "nt" else "XDG_CACHE_HOME", "relative")
    monkeypatch.setattr(Path, "home", nowhere)
    assert grammar.cache_file() is None
    assert parses()


def test_processes_that_start_together_share_the_cache(home: Path, tmp_path: Path) -> None:
    program = tmp_path / "m.dml"
    program.write_text(PROGRAM)
    command = [sys.executable, "-m", "dmlc", "fmt", "--check", str(program)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) for _ in range(4)]
    for process in started:
        out, _ = process.communicate()
        assert (process.returncode, out) == (0, b"")
    file = file_in(home)
    os.utime(file, (1, 1))
    assert parses()
    assert file.stat().st_mtime == 1
