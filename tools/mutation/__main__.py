"""Does the suite notice when a guard of a rewrite is dropped? ``python -m tools.mutation [--only fuse_softmax]``.

Works in a copy of the tree in which each guard can be switched off. All tests are imported once; then each mutant is a
fork of that process, which meets the test that killed it before (``killers.json``), then those that ask for its guard,
the ones that ask for few others first, until one fails. Prints that test for each mutant, and with ``--write`` keeps
it. ``harmless.json`` says of guards that only spare work why nothing is wrong without them: those that survive are
counted apart. Exits 1 where another mutant survives. Needs ``fork``.
"""

from __future__ import annotations

import argparse
import builtins
import gc
import json
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

from tools import ROOT
from tools.mutation.mutants import HARMLESS, KILLERS, SWITCH, Mutant, mutants, said, switched

RULES = "dmlc/passes"
#: The tests that see rewrites.
TESTS = "passes,importers,targets,api,exhaustive,fuzz,codegen,verify,directml,cli"
#: Seconds after which a mutant's tests count as hung.
PATIENCE = 300

Numbered = Sequence[tuple[int, Mutant]]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.mutation", description=__doc__)
    parser.add_argument("--only", default="", help="a part of the path of the rules, or several with commas")
    parser.add_argument("--kind", default="", help="refusal, reason, condition, part or direction; several with commas")
    parser.add_argument("--part", default="1/1", help="the K-th of N parts, as K/N")
    parser.add_argument("--tests", default=TESTS, help="folders of tests")
    parser.add_argument("--work", type=Path, help="a folder to keep the copy in, with what each test asks for")
    parser.add_argument("--most", type=int, default=10**6, help="a mutant meets so many tests at most")
    parser.add_argument("--new", action="store_true", help="only mutants without a known killer or reason")
    parser.add_argument("--write", action="store_true", help="keep the killers in killers.json")
    parser.add_argument("--list", action="store_true", help="only say what the mutants are")
    args = parser.parse_args()
    part, parts = map(int, args.part.split("/"))
    with tempfile.TemporaryDirectory() as folder:
        work = (args.work or Path(folder)).resolve()
        if not work.exists() or not any(work.iterdir()):
            _copy(work)
        every = list(enumerate(mutants(work / "plain", RULES)))
        settled = {(path, key) for file in (KILLERS, HARMLESS) for path, known in said(file).items() for key in known}
        chosen = [(n, m) for n, m in every if any(word in m.path for word in args.only.split(","))]
        chosen = [(n, m) for n, m in chosen if m.kind.startswith(tuple(args.kind.split(",")))]
        chosen = [(n, m) for n, m in chosen if not (args.new and (m.path, m.key) in settled)][part - 1 :: parts]
        if args.list:
            print(*(f"{m.place}: {m.kind}: {m.key}" for _, m in chosen), sep="\n")
            return 0
        os.chdir(work / "tree")
        sys.path[:] = [str(work / "tree"), *[p for p in sys.path if p and Path(p).resolve() != ROOT]]
        loop = _Loop(chosen, {(m.path, m.key) for _, m in every}, work / "asked.txt", most=args.most, write=args.write)
        tests = [f"tests/{name}" for name in args.tests.split(",")]
        pytest.main(["-q", "-s", "-n", "0", "-p", "no:cacheprovider", *tests], plugins=[loop])
    return 1 if loop.survivors else 0


def _copy(work: Path) -> None:
    """The rules as they are, and the tree with a switch for each guard."""
    tree, without_caches = work / "tree", shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / RULES, work / "plain" / RULES, ignore=without_caches)
    for name in ("dmlc", "tests", "tools", "examples", "docs", "benchmarks"):
        shutil.copytree(ROOT / name, tree / name, ignore=without_caches)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, tree / name)
    every = list(enumerate(mutants(work / "plain", RULES)))
    for path in {m.path for _, m in every}:
        here = [(n, m) for n, m in every if m.path == path]
        (tree / path).write_text(switched((work / "plain" / path).read_text("utf-8"), here), "utf-8")
    with (tree / "dmlc/__init__.py").open("a", encoding="utf-8") as package:  # for processes that tests start
        package.write(f"\n__import__('builtins').__dict__.setdefault({SWITCH!r}, lambda number: True)\n")


class _Loop:
    """A plugin that runs the tests of each mutant in a fork, instead of all tests once."""

    def __init__(self, chosen: Numbered, keys: set[tuple[str, str]], record: Path, *, most: int, write: bool) -> None:
        self.chosen, self.keys, self.record, self.most, self.write = chosen, keys, record, most, write
        self.survivors = self.harmless = 0
        self.off = -1
        self.asked: set[int] = set()
        setattr(builtins, SWITCH, self._is_there)

    def _is_there(self, number: int) -> bool:
        self.asked.add(number)
        return number != self.off

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        ran = self._recorded(list(items.values()))
        ran = {name: row for name, row in ran.items() if name in items}
        failing = [name for name in items if name not in ran]
        gc.freeze()  # a fork does not copy what its collector would touch
        print(f"{len(ran)} tests pass, {len(failing)} fail: {failing[:5]}; {len(self.chosen)} mutants", flush=True)
        killers, harmless = said(KILLERS), said(HARMLESS)
        for number, mutant in self.chosen:
            start, before = time.perf_counter(), killers.get(mutant.path, {}).get(mutant.key, "")
            reason = harmless.get(mutant.path, {}).get(mutant.key, "")
            names = sorted((n for n, (_, asked) in ran.items() if number in asked), key=lambda n: len(ran[n][1]))
            names = [before] * (before in ran) + [name for name in names if name != before]
            killer = _in_child(partial(self._first_failure, number, [items[n] for n in names[: self.most]]), PATIENCE)
            self.survivors += not killer and not reason
            self.harmless += bool(reason) and not killer
            took = f"{time.perf_counter() - start:.1f} s, {len(names)} tests"
            verdict = killer or (f"harmless: {reason}" if reason else "SURVIVES")
            print(f"{mutant.place}: {mutant.kind}: {mutant.key}\n    {verdict} ({took})", flush=True)
            if self.write:
                self._keep(mutant, killer)
        killed = len(self.chosen) - self.survivors - self.harmless
        print(f"{len(self.chosen)} mutants, {killed} killed, {self.harmless} harmless, {self.survivors} survive")
        return True

    def _keep(self, mutant: Mutant, killer: str) -> None:
        """Into the file as it is by now, which another run may write too; without guards that are no more."""
        killers = {
            path: {key: test for key, test in known.items() if (path, key) in self.keys}
            for path, known in said(KILLERS).items()
        }
        known = killers.setdefault(mutant.path, {})
        known.pop(mutant.key, "")
        known.update({mutant.key: killer} if "::" in killer else {})
        killers = {path: known for path, known in killers.items() if known}
        KILLERS.write_text(json.dumps(killers, indent=0, sort_keys=True, ensure_ascii=False) + "\n", "utf-8")

    def _recorded(self, items: Sequence[pytest.Item]) -> dict[str, tuple[float, list[int]]]:
        """For each test that passes its seconds, and the guards that it asks for; those not known yet are run."""
        self.record.touch()
        known = {line.split("\t")[0] for line in self.record.read_text("utf-8").splitlines()}
        _in_child(partial(self._run, [item for item in items if item.nodeid not in known]), 3600)
        rows = [line.split("\t") for line in self.record.read_text("utf-8").splitlines()]
        return {name: (float(seconds), json.loads(asked)) for name, seconds, asked in rows if asked != "fails"}

    def _run(self, items: Sequence[pytest.Item]) -> str:
        with self.record.open("a", encoding="utf-8") as out:
            for item in items:
                self.asked.clear()
                start = time.perf_counter()
                asked = sorted(self.asked) if _passes(item) else "fails"
                out.write(f"{item.nodeid}\t{time.perf_counter() - start:.3f}\t{asked}\n")
                out.flush()
        return ""

    def _first_failure(self, number: int, items: Sequence[pytest.Item]) -> str:
        self.off = number
        return next((item.nodeid for item in items if not _passes(item)), "")


def _passes(item: pytest.Item) -> bool:
    return not any(report.failed for report in runtestprotocol(item, log=False, nextitem=None))


def _in_child(work: Callable[[], str], patience: int) -> str:
    """The result of the work, done in a process of its own; its output is dropped."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        signal.alarm(patience)
        try:
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(work().encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "does not come to an end" if os.WTERMSIG(status) == signal.SIGALRM else f"signal {os.WTERMSIG(status)}"
    return said


if __name__ == "__main__":
    sys.exit(main())
