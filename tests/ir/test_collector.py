"""The garbage collector waits while much is made, and is as it was afterwards."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable

import pytest

import dmlc
from dmlc.ir.collector import collector_paused


def test_it_waits_inside_and_goes_on_after() -> None:
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
    with pytest.raises(KeyError), collector_paused():
        raise KeyError
    assert gc.isenabled()


def test_it_stays_off_where_the_program_has_turned_it_off() -> None:
    gc.disable()
    with collector_paused():
        pass
    is_off = not gc.isenabled()
    gc.enable()
    assert is_off


# --- in processes of their own: the objects of the suite are millions, and frozen


def what_the_program_froze_stays_frozen() -> None:
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        with collector_paused():
            pass
        assert gc.get_freeze_count() == before
    finally:
        gc.unfreeze()


def a_pause_does_not_walk_over_all_objects() -> None:
    """To count those that are frozen takes as long as there are many: only after a collection, which took longer."""
    with collector_paused():
        pass
    counted: list[int] = []
    count = gc.get_freeze_count
    gc.get_freeze_count = lambda: counted.append(count()) or counted[-1]  # type: ignore[func-returns-value]
    for _ in range(50):
        with collector_paused():
            pass
    assert counted
    assert not any(counted)


def nothing_stays_frozen_and_garbage_is_still_found() -> None:
    class Ring:
        pass

    with collector_paused():
        ring = Ring()
        ring.itself = ring  # type: ignore[attr-defined]
        del ring
    assert gc.get_freeze_count() == 0
    assert gc.collect() > 0


def compiling_leaves_it_on_also_where_it_fails() -> None:
    graph = dmlc.Graph("g")
    graph.output("y", -graph.input("x", "f32", 3))
    dmlc.compile(graph).to_onnx()
    assert gc.isenabled()
    with pytest.raises(dmlc.DmlcError):
        dmlc.compile(dmlc.Graph("empty"))
    assert gc.isenabled()


def garbage_does_not_pile_up_pause_by_pause() -> None:
    gc.collect()
    before = len(gc.get_objects())
    for _ in range(12):
        with collector_paused(begins=True):
            for _ in range(50_000):
                ring: list[object] = []
                ring.append(ring)
    assert len(gc.get_objects()) - before < 12 * 50_000 / 2


def work_on_a_graph_that_is_there_collects_nothing() -> None:
    collections: list[int] = []
    collect = gc.collect
    gc.collect = lambda: collections.append(1) or collect()  # type: ignore[assignment, func-returns-value]
    for begins in (True, False, False, True):
        before = len(collections)
        with collector_paused(begins=begins):
            kept = [[] for _ in range(400_000)]  # type: ignore[var-annotated]
        assert begins or len(collections) == before
    assert collections and kept


CASES = [
    what_the_program_froze_stays_frozen,
    a_pause_does_not_walk_over_all_objects,
    nothing_stays_frozen_and_garbage_is_still_found,
    compiling_leaves_it_on_also_where_it_fails,
    garbage_does_not_pile_up_pause_by_pause,
    work_on_a_graph_that_is_there_collects_nothing,
]
#: One process forks for each of its cases; without forks each case has a process.
PROCESSES = [CASES] if hasattr(os, "fork") else [[case] for case in CASES]


@pytest.mark.parametrize("cases", PROCESSES)
def test_alone(cases: list[Callable[[], None]]) -> None:
    done = subprocess.run(
        [sys.executable, __file__, *[case.__name__ for case in cases]], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [case.__name__ for case in cases]


def run_in_forks(names: list[str]) -> int:
    """Run each case in a fork of this process, which prints its name when it ends well; count the others."""
    failed = 0
    for name in names:
        if len(names) > 1 and (child := os.fork()):
            failed += os.waitpid(child, 0)[1] != 0
            continue
        globals()[name]()
        print(name, flush=True)
        sys.exit(0)
    return failed


if __name__ == "__main__":
    sys.exit(run_in_forks(sys.argv[1:]))
