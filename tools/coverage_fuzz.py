"""Fuzzing of the readers: ``python -m tools.coverage_fuzz text|model --runs 100000``.

``text`` are programs of the language, ``model`` ONNX models. Any answer is fine, and so is any error with a code. An
internal error, another exception, or more than 3 seconds for one small input is a fault. With atheris (``pip install
dmlc[fuzz]``, Linux and macOS) libFuzzer looks for inputs that reach new branches, keeps them in ``--corpus``, and stops
at the first fault. With ``--uncounted`` Hypothesis looks for inputs, and makes those with a fault smaller.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path

from hypothesis import HealthCheck, given, note, settings


def main() -> int:
    """Fuzz one reader."""
    parser = argparse.ArgumentParser(prog="python -m tools.coverage_fuzz", description=__doc__)
    parser.add_argument("reader", choices=("text", "model"))
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--corpus", type=Path, default=Path("build/corpus"), help="a folder that grows")
    parser.add_argument("--uncounted", action="store_true", help="do not count branches: faster, and without atheris")
    args = parser.parse_args()
    counting: contextlib.AbstractContextManager[object] = contextlib.nullcontext()
    if not args.uncounted:
        try:
            import atheris
        except ImportError:
            print("atheris is not installed: pip install dmlc[fuzz], or give --uncounted", file=sys.stderr)
            return 2
        counting = atheris.instrument_imports(include=["dmlc"])
    with counting:
        from tools.fuzz.readers import READERS, judge

    read, inputs = READERS[args.reader]

    @settings(max_examples=args.runs, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(inputs())
    def check(data: bytes) -> None:
        note(repr(data))
        judge(read, data)

    if args.uncounted:
        check()
    else:
        args.corpus.mkdir(parents=True, exist_ok=True)
        words = [sys.argv[0], f"-runs={args.runs}", "-max_len=4096", "-len_control=0", str(args.corpus)]
        atheris.Setup(words, check.hypothesis.fuzz_one_input)  # type: ignore[attr-defined]
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
