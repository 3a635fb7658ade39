"""A run of programs with seeds that follow each other."""

from __future__ import annotations

import time

from tools.fuzz.judge import Failure, failures, judge
from tools.fuzz.programs import FuzzProgram, generate
from tools.fuzz.reduce import reduced

BATCH = 50
#: Number of programs that ran, and the seed, the failure and the smaller text of each that failed.
Ran = tuple[int, list[tuple[int, Failure, str]]]


def batch(start: int, inputs: int, end: float) -> Ran:
    out, ran = [], 0
    for seed in range(start, start + BATCH):
        if time.monotonic() > end:
            break
        program = generate(seed)
        ran += 1
        for failure in failures(program.text(), seed, inputs=inputs):
            small = _smallest(program, failure, inputs, seed)
            out.append((seed, failure, small.text()))
    return ran, out


def _smallest(program: FuzzProgram, failure: Failure, inputs: int, seed: int) -> FuzzProgram:
    def fails(candidate: FuzzProgram) -> bool:
        found = judge(candidate.text(), failure.options, inputs=2 * inputs, seed=seed)
        return found is not None and found.kind == failure.kind

    return reduced(program, fails)
