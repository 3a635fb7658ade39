"""Run structured models in volume, in processes that may crash, and make what fails smaller."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from onnx import ModelProto

from tools import environment
from tools.fuzz.judge import Failure
from tools.fuzz.reduce import reduced_model
from tools.fuzz.structure_grower import StructureModel
from tools.fuzz.structure_judge import choices, judge, verified
from tools.fuzz.structure_models import generate

#: One model in so many is verified by the package as well.
VERIFIED = 20


def worker(start: int, stop: int, smaller: bool = True) -> None:
    """Judge the models of the seeds; write a line of JSON before what may crash and after each model."""
    for seed in range(start, stop):
        write({"seed": seed, "phase": "generate"})
        case = generate(seed)
        options, counts = choices(seed, case.model), Counter[str]()
        counts.update(f"trait: {trait}" for trait in set(case.traits))
        found = judge(case, options, seed, counts, partial(_write_phase, seed))
        if found is None and counts["compared"] and seed % VERIFIED == 0 and not case.external:
            counts["verified"] += 1
            found = verified(case, options, seed)
        line: dict[str, Any] = {"seed": seed, "counts": counts}
        if found is not None:
            write({"seed": seed, "phase": "smaller", "kind": found.kind, "failure": str(found)})
            text = (smallest(case, found, seed) if smaller else case).text()
            line |= {"options": found.options, "kind": found.kind, "failure": str(found), "text": text}
        write(line)


def _write_phase(seed: int, phase: str) -> None:
    write({"seed": seed, "phase": phase})


def write(line: dict[str, Any]) -> None:
    print(json.dumps(line), flush=True)


@dataclass
class Found:
    """Findings of a run of models."""

    models: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    failures: list[dict[str, Any]] = field(default_factory=list)

    @property
    def kinds(self) -> Counter[str]:
        return Counter(failure["kind"] for failure in self.failures)


def run_isolated(start: int, stop: int, *, smaller: bool = True, end: float = float("inf")) -> Found:
    """Judge the models of the seeds in a process of their own, which goes on behind a model that crashes it."""
    out, seed = Found(), start
    while seed < stop and time.monotonic() < end:
        seed = _run_worker(out, seed, stop, smaller, end)
    return out


def _run_worker(out: Found, start: int, stop: int, smaller: bool, end: float) -> int:
    """The seed to go on with."""
    command = [sys.executable, "-m", __name__, str(start), str(stop), str(int(smaller))]
    last: dict[str, Any] = {"seed": start, "phase": "start"}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment()
    ) as child:
        assert child.stdout is not None
        for text in child.stdout:
            last = json.loads(text)
            if "phase" not in last:
                _record(out, last)
                if time.monotonic() > end:
                    child.terminate()
                    return int(last["seed"]) + 1
    if "phase" in last:
        out.models += 1
        if last["phase"] == "smaller":
            out.failures.append({**last, "text": ""})
        elif last["phase"] in ("generate", "original") and child.returncode < 0:
            out.counts["dropped: ONNX Runtime crashes on the original"] += 1
        else:
            failure = f"the process ended with {child.returncode} in phase {last['phase']}"
            out.failures.append({"seed": last["seed"], "kind": "crash", "failure": failure, "text": ""})
    return int(last["seed"]) + 1


def _record(out: Found, line: dict[str, Any]) -> None:
    out.models += 1
    out.counts.update(line["counts"])
    if "kind" in line:
        out.failures.append(line)


def smallest(case: StructureModel, failure: Failure, seed: int) -> StructureModel:
    """A smaller model that fails in the same way."""

    def fails(model: ModelProto) -> bool:
        try:
            check = verified if failure.kind == "verify" else judge
            found = check(replace(case, model=model), failure.options, seed)
        except Exception:  # the rest is not a model that runs
            return False
        return found is not None and found.kind == failure.kind

    return replace(case, model=reduced_model(case.model, fails))


if __name__ == "__main__":
    worker(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "1")
