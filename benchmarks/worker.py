"""One process that runs suites with one number of threads: ``python -m benchmarks.worker REQUEST ANSWER``.

Libraries read how many threads they may take while they are loaded, so each number has a process of its own.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
from pathlib import Path


def main(request: Path, answer: Path) -> None:
    """Both are JSON files: what is asked for, and the cases. A suite that fails is said and leaves those it had."""
    asked = json.loads(request.read_text("utf-8"))
    threads = asked["threads"]
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    from benchmarks.records import Settings
    from benchmarks.registry import SUITES

    settings = Settings(threads, asked["rounds"], asked["quick"], tuple(asked["peers"]))
    cases: list[object] = []
    failed: list[str] = []
    for suite in asked["suites"]:
        try:
            for case in SUITES[suite](settings):
                sys.stderr.write(f"{threads} threads, {suite}: {case.name}\n")
                cases.append(case.to_json())
                answer.write_text(json.dumps({"cases": cases, "failed": failed}), encoding="utf-8")
        except Exception as error:
            traceback.print_exc()
            failed.append(f"{suite} with {threads} threads broke off: {type(error).__name__}: {error}")
    answer.write_text(json.dumps({"cases": cases, "failed": failed}), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
