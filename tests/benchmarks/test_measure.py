"""Races: their order, when they end, and what they say of themselves. No time is judged here."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from benchmarks.measure import contest
from benchmarks.nets import Net
from benchmarks.records import OURS, Case, Settings
from benchmarks.sessions import SessionRun
from dmlc.workers import sessions
from dmlc.workers.sessions import race


class Clock:
    """Seconds that only runs let pass."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(sessions.time, "perf_counter", lambda: self.now)

    def run(self, *seconds: float) -> Run:
        return Run(self, seconds)


class Run:
    """Takes these seconds, the last one again and again."""

    def __init__(self, clock: Clock, seconds: tuple[float, ...]) -> None:
        self.clock, self.seconds, self.calls = clock, seconds, 0

    def __call__(self) -> None:
        self.clock.now += self.seconds[min(self.calls, len(self.seconds) - 1)]
        self.calls += 1


def test_quiet_rounds_end_as_soon_as_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    a, b = clock.run(0.03), clock.run(0.04)
    assert race({"a": a, "b": b}, 15) == ({"a": pytest.approx(0.03), "b": pytest.approx(0.04)}, pytest.approx(1))
    assert a.calls == b.calls == 3 + 15
    assert race({"a": a}, 1)[0] == {"a": pytest.approx(0.03)} and a.calls == 18 + 3 + 1


def test_rounds_go_on_until_the_least_time_was_met_again(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    lucky = clock.run(*[0.05] * 13, 0.03, *[0.05] * 14, 0.03, 0.03, 0.05)
    seconds, noise = race({"lucky": lucky}, 15)
    assert seconds == {"lucky": pytest.approx(0.03)} and noise == pytest.approx(1) and lucky.calls == 30
    never = clock.run(*[0.05] * 13, 0.03, 0.05)
    seconds, noise = race({"never": never}, 15)
    assert noise == pytest.approx(0.05 / 0.03) and clock.now < 20
    assert never.calls == pytest.approx(5 / 0.05, rel=0.1)


def test_short_runs_are_warmed_and_the_order_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, seen = Clock(monkeypatch), []

    def run(name: str, seconds: float) -> None:
        seen.append(name)
        clock.now += seconds

    race({"a": lambda: run("a", 0.001), "b": lambda: run("b", 0.5)}, 2)
    assert "".join(seen[6:12]) == "aabbaa"


def test_one_thread_may_be_a_library_s_own() -> None:
    """JAX computes on a thread that it starts: the time of the one that waits is next to nothing."""

    def elsewhere() -> None:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: sum(range(200_000))).result()

    seconds, _ = race({"here": lambda: sum(range(200_000)), "elsewhere": elsewhere}, 1, threads=1)
    assert seconds["elsewhere"] > seconds["here"] / 2


def test_no_runs_are_no_race() -> None:
    assert race({}, 1) == ({}, 1.0)


def test_sessions_share_their_memory_and_keep_their_results() -> None:
    net = Net()
    model = net.model(net.op("Exp", net.op("Neg", net.input("x", (64, 64)))))
    x, y = np.zeros((64, 64), np.float32), np.ones((64, 64), np.float32)
    first, second = SessionRun(model, {"x": x}, 1), SessionRun(model, {"x": y}, 1)
    for _ in range(2):
        np.testing.assert_allclose(first.results()[0], 1)
        np.testing.assert_allclose(second.results()[0], np.exp(-1), rtol=1e-6)


def test_a_model_that_is_ours_by_other_names_takes_our_time() -> None:
    def exp_of(name: str, op: str = "Exp") -> SessionRun:
        net = Net()
        return SessionRun(net.model(net.op(op, net.op("Abs", net.input(name, (8, 8))))), {name: x}, 1)

    x = np.ones((8, 8), np.float32)
    runs = {OURS: exp_of("x"), "twin": exp_of("y"), "other": exp_of("x", "Sqrt")}
    assert runs[OURS].form == runs["twin"].form != runs["other"].form
    case = contest(Case("reduce", "exp", 1), Settings(1, 1, True, ()), runs, None)
    assert case.seconds["twin"] == case.seconds[OURS] and "other" in case.seconds
