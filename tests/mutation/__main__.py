"""Does the suite notice when a guard of a rewrite is dropped? ``python -m tests.mutation [--only softmax_rules]``.

Each mutant is a copy of the tree without one guard; the tests of its family run first, then all that see rewrites.
Prints the test that killed each mutant; exits 1 where one survives.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from mutants import Mutant, mutants

ROOT = Path(__file__).parents[2]
#: The tests of a family of rules, by a word of its path; more than one may fit.
FAMILIES = {
    "conv": "fold_conv", "dot": "fuse_dot", "fold_": "fold_constants", "hoist": "hoist", "instance": "instance_norm",
    "layer_norm": "fuse_layer_norm", "legal": "legalize", "lowering": "lowering", "recognize": "recognize_reduce",
    "reduce": "canonicalize_reduce", "repair": "repair", "selection": "fuse_selection", "share": "share",
    "softmax": "fuse_softmax",
}  # fmt: skip
#: Everything else that sees rewrites, for those that their own family lets live.
REST = ("tests/passes", "tests/importers", "tests/exhaustive", "tests/fuzz", "tests/targets")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutation", description=__doc__)
    parser.add_argument("--only", default="", help="a part of the path of the rules")
    parser.add_argument("--part", default="1/1", help="the K-th of N parts, as K/N")
    args = parser.parse_args()
    part, parts = map(int, args.part.split("/"))
    chosen = [m for m in mutants(ROOT) if args.only in m.path][part - 1 :: parts]
    survivors = []
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        for name in ("dmlc", "tests", "examples", "docs"):
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md"):
            shutil.copy(ROOT / name, copy / name)
        broken = _first_failure(copy, [*REST])
        if broken:
            print(f"the suite fails without any mutant: {broken}")
            return 2
        for mutant in chosen:
            killer = _killer(copy, mutant)
            survivors += [] if killer else [mutant]
            print(f"{mutant.place}: {mutant.text[:80]}\n    {killer or 'SURVIVES'}", flush=True)
    print(f"{len(chosen)} mutants, {len(chosen) - len(survivors)} killed, {len(survivors)} survive")
    return 1 if survivors else 0


def _killer(copy: Path, mutant: Mutant) -> str:
    """The first test that fails on the mutant; empty where none does."""
    path = copy / mutant.path
    original = path.read_text("utf-8")
    path.write_text(mutant.source, "utf-8")
    try:
        words = [word for key, word in FAMILIES.items() if key in mutant.path]
        own = [str(t.relative_to(copy)) for word in words for t in sorted((copy / "tests/passes").glob(f"*{word}*.py"))]
        return (_first_failure(copy, own) if own else "") or _first_failure(copy, [*REST])
    finally:
        path.write_text(original, "utf-8")


def _first_failure(copy: Path, tests: list[str]) -> str:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return found[1] if found else "" if done.returncode == 0 else f"pytest ended with {done.returncode}"


if __name__ == "__main__":
    sys.exit(main())
