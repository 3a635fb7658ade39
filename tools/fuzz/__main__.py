"""Random programs for as long as one likes: ``python -m tools.fuzz --minutes 10 --seed 0 --jobs 2``.

What fails is made smaller and written to ``tests/regressions`` (or ``--out``), where the suite keeps it from coming
back. Exits 1 where something failed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path

from tools import ROOT
from tools.fuzz.batch import Found, run_isolated
from tools.fuzz.judge import Failure
from tools.fuzz.onnx_judge import failures_of_files

_BATCH = 50


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=0, help="the first program's number")
    parser.add_argument("--models", action="store_true", help="ONNX models, not programs of the language")
    parser.add_argument("--structure", action="store_true", help="ONNX models of varied structure")
    parser.add_argument("--count", type=int, default=10**9, help="so many at most")
    parser.add_argument("--folder", type=Path, help="judge the .onnx files in it")
    parser.add_argument("--inputs", type=int, default=3, help="inputs for each program and way")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=ROOT / "tests" / "regressions")
    args = parser.parse_args()
    if args.folder:
        paths = sorted(args.folder.glob("*.onnx"))
        kinds = Counter[str]()
        for seed, failure, text in failures_of_files(paths, args.seed, args.inputs):
            _keep(args.out, seed, failure, text, "onnxtxt")
            kinds[failure.kind] += 1
        return _ended(len(paths), "models", kinds)
    kind = "structure" if args.structure else "models" if args.models else "programs"
    return _run(kind, args, time.monotonic() + 60 * args.minutes)


def _run(kind: str, args: argparse.Namespace, end: float) -> int:
    """Runs of ``_BATCH`` seeds, each in another process, with counts of the outcomes."""
    folder = args.out / "structured" if kind == "structure" else args.out
    total, kinds = Found(), Counter[str]()
    start, stop = args.seed, args.seed + args.count
    waiting: set[Future[Found]] = set()
    with ThreadPoolExecutor(args.jobs) as pool:
        while waiting or (start < stop and time.monotonic() < end):
            while len(waiting) < args.jobs and start < stop and time.monotonic() < end:
                run = partial(run_isolated, kind, start, min(start + _BATCH, stop), inputs=args.inputs, end=end)
                waiting.add(pool.submit(run))
                start += _BATCH
            done, waiting = wait(waiting, return_when=FIRST_COMPLETED)
            for found in [task.result() for task in done]:
                total.cases += found.cases
                total.counts += found.counts
                for line in found.failures:
                    failure = Failure(line["options"], line["kind"], line["failure"])
                    kinds[failure.kind] += 1
                    _keep(folder, line["seed"], failure, line["text"], "dml" if kind == "programs" else "onnxtxt")
    for name, count in sorted(total.counts.items()):
        print(f"{count:8} {name}")
    return _ended(total.cases, "programs" if kind == "programs" else "models", kinds)


def _ended(cases: int, what: str, kinds: Counter[str]) -> int:
    print(f"{cases} {what}, {kinds.total()} failures: {dict(kinds)}")
    return 1 if kinds else 0


def _keep(folder: Path, seed: int, failure: Failure, text: str, suffix: str) -> None:
    """Write the program with what it does wrong above it."""
    folder.mkdir(parents=True, exist_ok=True)
    options = ", ".join(f"{key}={value!r}" for key, value in failure.options.items())
    path = folder / f"{failure.kind.split()[0].lower()}_{seed}.{suffix}"
    path.write_text(f"# {options}\n# {failure.kind}: {failure.text.splitlines()[0]}\n{text}", encoding="utf-8")
    print(f"{path}: {failure}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
