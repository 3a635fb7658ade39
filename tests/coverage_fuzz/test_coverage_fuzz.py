"""A few hundred seeded inputs for each reader that is fuzzed, without atheris; and that a crash is seen as one."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue.bugs import INTERNAL
from dmlc.diagnostics.catalogue.syntax import EMPTY
from tests.rows import each_row
from tools.coverage_fuzz import model as coverage_model
from tools.coverage_fuzz import text as coverage_text
from tools.coverage_fuzz.judge import Crash, judge

SEEDS = {
    "text": coverage_text.seeds(),
    "model": coverage_model.seeds(grown=4),
}
HARNESSES: dict[str, ModuleType] = {
    "text": coverage_text,
    "model": coverage_model,
}


def changed(rng: random.Random) -> Callable[[bytes], bytes]:
    """In the place of libFuzzer's own change: a byte is another one, or gone."""

    def change(data: bytes) -> bytes:
        at = rng.randrange(len(data) + 1)
        return data[:at] + rng.choice((b"", rng.randbytes(1))) + data[at + 1 :]

    return change


@pytest.mark.parametrize("name", HARNESSES)
def test_seeds_are_read(name: str) -> None:
    harness, found = HARNESSES[name], [judge(HARNESSES[name].read, data) for data in SEEDS[name]]
    assert all(isinstance(word, str) for word in found), found
    assert found.count("") > len(found) / 3
    assert max(map(len, SEEDS[name])) <= harness.MAX_LEN


@each_row("part", range(4))
@each_row("name", HARNESSES)
def test_changed_inputs_do_no_harm(name: str, part: int) -> None:
    harness, rng = HARNESSES[name], random.Random(f"{name} {part}")
    pool, words = list(SEEDS[name]), set()
    for _ in range(150):
        data = harness.mutate(rng.choice(pool), harness.MAX_LEN, rng, changed(rng))
        found = judge(harness.read, data)
        assert isinstance(found, str), (data, found)
        words.add(found)
        if found not in ("E0101", "E0430"):
            pool.append(data)
    assert {"", *({"E0431"} if name == "model" else {"E0101"})} <= words


@pytest.mark.parametrize("name", HARNESSES)
def test_the_same_seed_changes_the_same(name: str) -> None:
    harness, data = HARNESSES[name], SEEDS[name][0]
    twice = [
        [harness.mutate(data, harness.MAX_LEN, rng, changed(rng)) for _ in range(50)]
        for rng in (random.Random(5), random.Random(5))
    ]
    assert twice[0] == twice[1]
    assert len(set(twice[0])) > 20


def raises(error: BaseException) -> Callable[[bytes], str]:
    def read(data: bytes) -> str:
        raise error

    return read


def test_what_a_crash_is() -> None:
    assert judge(lambda data: "", b"") == ""
    assert judge(raises(fail(EMPTY, "the program is empty")), b"") == "E0113"
    for error in (ValueError("x"), RecursionError(), MemoryError(), AssertionError(), KeyError("y")):
        found = judge(raises(error), b"")
        assert isinstance(found, Crash)
        assert found.kind == type(error).__name__
    bug = judge(raises(fail(INTERNAL, "broken graph", exit_code=3)), b"")
    assert isinstance(bug, Crash)
    assert bug.kind == "I09"


def test_it_says_that_atheris_is_missing(tmp_path: Path) -> None:
    (tmp_path / "atheris.py").write_text("raise ImportError('none here')\n")
    program = f"import sys, runpy; sys.path.insert(0, {str(tmp_path)!r}); sys.argv[1:] = ['text', '--corpus', 'x']; "
    program += "runpy.run_module('tools.coverage_fuzz', run_name='__main__')"
    root = Path(__file__).parents[2]
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=root, check=False)
    assert ran.returncode == 2
    assert "pip install dmlc[fuzz]" in ran.stderr
    assert "Traceback" not in ran.stderr
