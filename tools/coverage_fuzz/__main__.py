"""Coverage-guided fuzzing: ``python -m tools.coverage_fuzz TARGET --runs 1000000 --corpus FOLDER``.

TARGET is text (programs of the language) or model (ONNX models). Any
answer is fine and so is any error with a code; another exception, an internal error (I09), more than 3 seconds or 256
MiB for one small input is a crash, which is written to ``--crashes`` with what it says. Needs atheris (``pip install
dmlc[fuzz]``, Linux and macOS). Exits 1 where something crashed.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tools.coverage_fuzz.engine import TARGETS, change, fuzz


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.coverage_fuzz", description=__doc__)
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--corpus", type=Path, required=True, help="grows; begin with an empty folder or the last one")
    parser.add_argument("--crashes", type=Path, help="default: beside the corpus, its name with .crashes")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--uncounted", action="store_true", help="change the corpus without counting branches: faster")
    args = parser.parse_args()
    crashes = args.crashes or args.corpus.with_name(f"{args.corpus.name}.crashes")
    if args.uncounted:
        change(args.target, args.runs, args.corpus, crashes, args.seed)
    try:
        import atheris
    except ImportError:
        print("atheris is not installed: pip install dmlc[fuzz] (it has wheels for Linux and macOS)", file=sys.stderr)
        return 2
    fuzz(atheris, args.target, args.runs, args.corpus, crashes, args.seed)
    return 0


if __name__ == "__main__":
    sys.exit(main())
