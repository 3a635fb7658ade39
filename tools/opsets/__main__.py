"""All of it: ``python -m tools.opsets [--part 1/1]``. Exits 1 where a model is refused or differs."""

from __future__ import annotations

import argparse
import sys
import time

from tools.opsets.judge import complaints
from tools.opsets.models import sources


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.opsets", description=__doc__)
    parser.add_argument("--part", default="1/1", help="the K-th of N parts, as K/N")
    part, parts = map(int, parser.parse_args().part.split("/"))
    start, ran, wrong = time.monotonic(), 0, 0
    for index, source in enumerate(sources()):
        if index % parts != part - 1 or source.revised is None:
            continue
        found = complaints(source)
        ran, wrong = ran + 1, wrong + len(found)
        for text in found:
            print(text, flush=True)
    print(f"{ran} models, {wrong} wrong, {time.monotonic() - start:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
