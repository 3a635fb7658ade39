"""The benchmark command works: suites run, tables and files are written. No time is judged here."""

from __future__ import annotations

import json
import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from benchmarks.bars import BARS, mean
from benchmarks.cli import main
from benchmarks.measure import FunctionRun, contest, same
from benchmarks.peers import PINNED, installed
from benchmarks.plots import growth_lines
from benchmarks.records import OURS, Case, Settings
from benchmarks.registry import ON_DEVICE, SUITES
from benchmarks.report import markdown, verdicts
from benchmarks.suites.graphs import model, text
from benchmarks.suites.pattern_list import PATTERNS
from benchmarks.suites.selections import LARGE

ROOT = Path(__file__).parents[2]


def test_every_suite_runs_and_prints_its_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--quick", "--rounds", "1", "--svg", str(tmp_path / "plots")]
    for kind in ("json", "markdown"):
        arguments += [f"--{kind}", str(tmp_path / kind)]
    assert main(arguments) == 0
    out = capsys.readouterr().out
    assert out == (tmp_path / "markdown").read_text("utf-8")
    assert "| figure | target | threads | measured |" in out and "reached" in out and "quick sizes" in out
    found = json.loads((tmp_path / "json").read_text("utf-8"))
    assert {case["suite"] for case in found["cases"]} == set(SUITES) - set(ON_DEVICE)
    for case in found["cases"]:
        assert f"| {case['name']} |" in out
        assert OURS in case["seconds"] and not case["wrong"] and not case["notes"], case
    assert {bar["id"] for bar in found["bars"]} == {bar.id for bar in BARS if bar.suite not in ON_DEVICE}
    files = {path.name for path in (tmp_path / "plots").iterdir()}
    assert {"argmax_1.svg", "patterns_1.svg", "numpy_1.svg", "compile_chain.svg"} <= files
    for path in (tmp_path / "plots").iterdir():
        assert ElementTree.parse(path).getroot().tag.endswith("svg")


def test_the_lists_are_those_that_the_bars_are_about() -> None:
    assert len(LARGE) == 23 and len(PATTERNS) == 68
    assert len({pattern.name for pattern in PATTERNS}) == 68
    assert len({bar.id for bar in BARS}) == len(BARS)
    assert {bar.suite for bar in BARS} == set(SUITES)


def test_the_peers_are_pinned_as_in_the_extra() -> None:
    extra = next(line for line in (ROOT / "pyproject.toml").read_text("utf-8").splitlines() if line.startswith("bench"))
    assert all(f'"{name}=={version}"' in extra for name, version in PINNED.items())
    assert extra.count("==") == len(PINNED) + 1  # onnx-shape-inference goes with onnxscript


def test_a_peer_that_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PINNED, "no-such-peer", "1.0")
    assert installed(["no-such-peer"]) == ({}, ["no-such-peer is missing: pip install no-such-peer==1.0"])
    monkeypatch.setitem(PINNED, "numpy", "0.1")
    versions, said = installed(["numpy"])
    assert versions == {"numpy": np.__version__} and "the bars were set with 0.1" in said[0]


def test_unknown_names_are_refused() -> None:
    for arguments in (["--suite", "argmin"], ["--peers", "tensorflow"]):
        with pytest.raises(SystemExit):
            main(arguments)


def case(suite: str, name: str, tags: tuple[str, ...], seconds: dict[str, float], bound: str | None = None) -> Case:
    return Case(suite, name, 1, tags, bound, seconds)


def test_bars_take_the_cases_that_they_are_about() -> None:
    cases = [
        case(
            "argmax", "a", ("large",), {OURS: 1, "transpose+argmax": 8, "topk": 4, "blocked": 1.2, "read": 0.5}, "read"
        ),
        case(
            "argmax", "b", ("large",), {OURS: 1, "transpose+argmax": 2, "topk": 3, "blocked": 0.8, "read": 0.5}, "read"
        ),
        case("argmax", "c", ("small",), {OURS: 1, "transpose+argmax": 100, "jax": 0.01}),
    ]
    found = {v.bar.id: v for v in verdicts(cases)}
    assert found["argmax-naive"].figure == pytest.approx(4) and found["argmax-naive"].reached is False
    assert found["argmax-single"].figure == pytest.approx(math.sqrt(4 * 2))
    assert found["argmax-worst"].figure == pytest.approx(2)
    assert found["argmax-torch"].figure is None and found["argmax-torch"].reached is None
    assert "hardmax-onehot" not in found
    assert "not measured" in markdown(cases, {}, [])


def test_a_wrong_result_of_ours_reaches_no_bar() -> None:
    cases = [case("hardmax", str(n), (), {OURS: 1, "argmax+onehot": 10}) for n in range(3)]
    assert {v.bar.id: v.reached for v in verdicts(cases)}["hardmax-onehot"] is True
    cases.append(Case("hardmax", "broken", 1, wrong=(OURS,)))
    assert {v.bar.id: v.reached for v in verdicts(cases)}["hardmax-onehot"] is False
    assert "1 cases without a right result" in markdown(cases, {}, [])
    assert "dmlc gives other results" in markdown(cases, {}, [])


def test_a_contest_leaves_out_what_is_wrong_or_fails() -> None:
    x = np.array([1.0, 3.0, 2.0], np.float32)

    def fails(x: np.ndarray) -> np.ndarray:
        raise RuntimeError("no kernel")

    runs = {OURS: FunctionRun(np.max, x), "wrong": FunctionRun(np.min, x), "fails": FunctionRun(fails, x)}
    found = contest(case("argmax", "x", (), {}), Settings(1, 1, True, ()), runs, [np.max(x)])
    assert set(found.seconds) == {OURS} and found.wrong == ("wrong",)
    assert found.notes == ("fails failed: RuntimeError: no kernel",)


def test_results_are_compared_by_number_and_by_shape() -> None:
    a = np.arange(6, dtype=np.float32).reshape(2, 3)
    assert same([a], [a.reshape(2, 1, 3)], None)
    assert not same([a], [a.reshape(3, 2)], None)
    assert not same([a + np.float32(1e-5)], [a], None) and same([a + np.float32(1e-5)], [a], 1e-4)
    assert not same([a * 2], [a], 1e-4)
    assert mean([1, None, 4]) == pytest.approx(2) and mean([None]) is None


def test_generated_models_and_programs_have_their_size() -> None:
    for form in ("chain", "dag"):
        assert 300 <= len(model(form, 300).graph.node) < 310
    assert model("chain", 50) == model("chain", 50)
    assert text(40).count("\n") == 40


def test_growth_is_drawn_over_nodes() -> None:
    cases = [Case("compile", str(n), 1, ("chain",), None, {OURS: n * 1e-5}, {"nodes": n}) for n in (1000, 10_000)]
    svg = growth_lines("title", cases)
    assert svg is not None and ">10,000<" in svg and "nodes of the model" in svg and svg.count("<polyline") == 1
    assert growth_lines("title", cases[:1]) is None
