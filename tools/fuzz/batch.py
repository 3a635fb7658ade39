"""Runs of cases with seeds that follow each other, in processes that may crash; what fails is made smaller."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeAlias

from onnx import ModelProto, printer

from tools import environment
from tools.fuzz import judge, onnx_judge, onnx_models, programs, structure_judge, structure_models
from tools.fuzz.judge import Failure
from tools.fuzz.reduce import reduced, reduced_model
from tools.fuzz.structure_grower import StructureModel

#: One model of varied structure in so many is verified by the package as well.
VERIFIED = 20
#: A failure, and a function that makes its case smaller and returns its text.
Finding: TypeAlias = tuple[Failure, Callable[[], str]]
Phase: TypeAlias = Callable[[str], None]


def _of_program(seed: int, inputs: int, counts: Counter[str], phase: Phase) -> Iterator[Finding]:
    program = programs.generate(seed)
    for failure in judge.failures(program.text(), seed, inputs=inputs):

        def fails(candidate: programs.FuzzProgram, failure: Failure = failure) -> bool:
            return failure.is_like(judge.judge(candidate.text(), failure.options, inputs=2 * inputs, seed=seed))

        yield failure, lambda fails=fails: reduced(program, fails).text()  # type: ignore[misc]


def _of_model(seed: int, inputs: int, counts: Counter[str], phase: Phase) -> Iterator[Finding]:
    model = onnx_models.generate(seed)
    for failure in onnx_judge.failures(model, seed, inputs=inputs):

        def fails(candidate: ModelProto, failure: Failure = failure) -> bool:
            return failure.is_like(onnx_judge.judge(candidate, failure.options, inputs=inputs, seed=seed))

        yield failure, lambda fails=fails: printer.to_text(reduced_model(model, fails))  # type: ignore[misc]


def _of_structure(seed: int, inputs: int, counts: Counter[str], phase: Phase) -> Iterator[Finding]:
    case = structure_models.generate(seed)
    options = structure_judge.choices(seed, case.model)
    counts.update(f"trait: {trait}" for trait in set(case.traits))
    found = structure_judge.judge(case, options, seed, counts, phase)
    if found is None and counts["compared"] and seed % VERIFIED == 0 and not case.external:
        counts["verified"] += 1
        found = structure_judge.verified(case, options, seed)
    if found is not None:
        yield found, partial(_smaller_structure, case, found, seed)


def _smaller_structure(case: StructureModel, failure: Failure, seed: int) -> str:
    check = structure_judge.verified if failure.kind == "verify" else structure_judge.judge

    def fails(model: ModelProto) -> bool:
        try:
            return failure.is_like(check(replace(case, model=model), failure.options, seed))
        except Exception:  # the rest is not a model that runs
            return False

    return replace(case, model=reduced_model(case.model, fails)).text()


KINDS = {"programs": _of_program, "models": _of_model, "structure": _of_structure}


def worker(kind: str, start: int, stop: int, inputs: int, *, smaller: bool) -> None:
    """Judge the cases of the seeds; write a line of JSON before what may crash and after each case."""
    for seed in range(start, stop):
        phase = partial(_write_phase, seed)
        phase("generate")
        counts, failures = Counter[str](), []
        for failure, text in KINDS[kind](seed, inputs, counts, phase):
            line = {"seed": seed, "options": failure.options, "kind": failure.kind, "failure": failure.text}
            _write({**line, "phase": "smaller"})
            failures.append({**line, "text": text() if smaller else ""})
        _write({"seed": seed, "counts": counts, "failures": failures})


def _write_phase(seed: int, phase: str) -> None:
    _write({"seed": seed, "phase": phase})


def _write(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


@dataclass
class Found:
    """Findings of a run of cases."""

    cases: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)


def run_isolated(
    kind: str, start: int, stop: int, *, inputs: int = 3, smaller: bool = True, end: float = float("inf")
) -> Found:
    """Judge the cases of the seeds in another process, which continues after a case that crashes it."""
    out, seed = Found(), start
    while seed < stop and time.monotonic() < end:
        command = [sys.executable, "-m", __name__, kind, *map(str, (seed, stop, inputs, int(smaller)))]
        seed = _run_worker(out, command, seed, end)
    return out


def _run_worker(out: Found, command: list[str], start: int, end: float) -> int:
    """The seed to go on with."""
    last: dict[str, Any] = {"seed": start, "phase": "start"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment()
    ) as child:
        assert child.stdout is not None
        for text in child.stdout:
            last = json.loads(text)
            if "phase" not in last:
                out.cases += 1
                out.counts.update(last["counts"])
                out.failures += last["failures"]
                if time.monotonic() > end:
                    child.terminate()
                    return int(last["seed"]) + 1
    if "phase" in last:
        out.cases += 1
        if last["phase"] == "smaller":
            out.failures.append({**last, "text": ""})
        elif last["phase"] in ("generate", "original") and child.returncode < 0:
            out.counts["dropped: ONNX Runtime crashes on the original"] += 1
        else:
            failure = f"the process ended with {child.returncode} in phase {last['phase']}"
            out.failures.append({"seed": last["seed"], "options": {}, "kind": "crash", "failure": failure, "text": ""})
    return int(last["seed"]) + 1


if __name__ == "__main__":
    start, stop, inputs, smaller = map(int, sys.argv[2:])
    worker(sys.argv[1], start, stop, inputs, smaller=bool(smaller))
