"""All of it: ``python -m tools.exhaustive [--rank 4] [--op argmax ...]``. Exits 1 where anything is wrong."""

from __future__ import annotations

import argparse
import sys
import time

from tools.exhaustive.selection_cases import cases, problems, with_dtypes


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.exhaustive", description=__doc__)
    parser.add_argument("--rank", type=int, default=4)
    parser.add_argument("--op", nargs="+", default=["argmax", "argmin", "top_k", "hardmax"])
    parser.add_argument("--part", default="1/1", help="the K-th of N parts, as K/N")
    args = parser.parse_args()
    part, parts = map(int, args.part.split("/"))
    start, ran, orderings, ways, wrong = time.monotonic(), 0, 0, 0, 0
    for number, case in enumerate(with_dtypes(cases(tuple(args.op), args.rank), 0)):
        if number % parts != part - 1:
            continue
        rows, count, found = problems(case)
        ran, orderings, ways, wrong = ran + 1, orderings + rows, ways + count, wrong + len(found)
        for text in found:
            print(text, flush=True)
    seconds = time.monotonic() - start
    print(f"{ran} cases, {orderings} orderings, {ways} ways, {wrong} wrong, {seconds:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
