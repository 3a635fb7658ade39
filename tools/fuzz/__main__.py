"""Random programs for as long as one likes: ``python -m tools.fuzz --minutes 10 --seed 0 --jobs 2``.

What fails is made smaller and written to ``tests/regressions`` (or ``--out``), where the suite keeps it from coming
back. Exits 1 where something failed.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, ThreadPoolExecutor, wait
from pathlib import Path

from tools import ROOT
from tools.fuzz.batch import BATCH, Ran, batch
from tools.fuzz.judge import Failure
from tools.fuzz.onnx_judge import batch as batch_of_models
from tools.fuzz.onnx_judge import batch_of_files
from tools.fuzz.structure_batch import Found, run_isolated


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0, help="the first program's number")
    parser.add_argument("--models", action="store_true", help="ONNX models, not programs of the language")
    parser.add_argument("--structure", action="store_true", help="ONNX models of varied structure")
    parser.add_argument("--count", type=int, default=10**9, help="so many models at most, with --structure")
    parser.add_argument("--folder", type=Path, help="judge the .onnx files in it (nnsmith_models.py makes some)")
    parser.add_argument("--inputs", type=int, default=3, help="inputs for each program and way")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "tests" / "regressions")
    args = parser.parse_args()
    if args.folder:
        paths = sorted(args.folder.glob("*.onnx"))
        programs, found = batch_of_files(paths, args.seed, args.inputs)
        return _ended(programs, "models", _kept(found, args.out, "onnxtxt"))
    end = time.monotonic() + 60 * args.minutes
    if args.structure:
        return _structured(args.seed, args.seed + args.count, end, args.jobs, args.out / "structured")
    programs, kinds = 0, Counter[str]()
    waiting: set[Future[Ran]] = set()
    start, run = args.seed, batch_of_models if args.models else batch
    with ProcessPoolExecutor(args.jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        while waiting or time.monotonic() < end:
            while len(waiting) < 2 * args.jobs and time.monotonic() < end:
                waiting.add(pool.submit(run, start, args.inputs, end))
                start += BATCH
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for ran, found in [task.result() for task in done]:
                programs += ran
                kinds += _kept(found, args.out, "onnxtxt" if args.models else "dml")
    return _ended(programs, "models" if args.models else "programs", kinds)


def _structured(start: int, stop: int, end: float, jobs: int, out: Path) -> int:
    """Runs of ``BATCH`` seeds, each in a process of its own, with figures of what became of the models."""
    total, kinds = Found(), Counter[str]()
    waiting: set[Future[Found]] = set()
    with ThreadPoolExecutor(jobs) as pool:
        while waiting or (start < stop and time.monotonic() < end):
            while len(waiting) < jobs and start < stop and time.monotonic() < end:
                waiting.add(pool.submit(run_isolated, start, min(start + BATCH, stop), end=end))
                start += BATCH
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for found in [task.result() for task in done]:
                total.models += found.models
                total.counts += found.counts
                kinds += found.kinds
                for line in found.failures:
                    failure = Failure(line.get("options", {}), line["kind"], line["failure"])
                    _keep(out, line["seed"], failure, line["text"], "onnxtxt")
    for name, count in sorted(total.counts.items()):
        print(f"{count:8} {name}")
    return _ended(total.models, "models", kinds)


def _ended(programs: int, what: str, kinds: Counter[str]) -> int:
    print(f"{programs} {what}, {sum(kinds.values())} failures: {dict(kinds)}")
    return 1 if kinds else 0


def _kept(found: list[tuple[int, Failure, str]], folder: Path, suffix: str) -> Counter[str]:
    for seed, failure, text in found:
        _keep(folder, seed, failure, text, suffix)
    return Counter(failure.kind for _, failure, _ in found)


def _keep(folder: Path, seed: int, failure: Failure, text: str, suffix: str) -> None:
    """Write the program with what it does wrong above it."""
    folder.mkdir(parents=True, exist_ok=True)
    options = ", ".join(f"{key}={value!r}" for key, value in failure.options.items())
    path = folder / f"{failure.kind.split()[0].lower()}_{seed}.{suffix}"
    path.write_text(f"# {options}\n# {failure.kind}: {failure.text.splitlines()[0]}\n{text}", encoding="utf-8")
    print(f"{path}: {failure}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
