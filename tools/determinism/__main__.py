"""Compile the same sources under many circumstances, and compare every byte: ``python -m tools.determinism``.

``python -m tools.determinism --seeds 10 --python /other/bin/python ... --add FOLDER ...``: seeds of hashes, each with
objects elsewhere in memory; other Pythons (with the same onnx; the kernels of the installed onnxruntime decide what
target ``cpu`` chooses, so it has to be the same too, or ``--targets`` leaves that out); more folders of programs and
models. Exits 1 where anything differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tools.determinism.corpus import add_folder, with_crlf, write_corpus
from tools.determinism.runs import Circumstances, differences, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.determinism", description=__doc__)
    parser.add_argument("--seeds", type=int, default=4, help="of hashes and of places in memory")
    parser.add_argument("--python", nargs="*", default=[], help="other Pythons that have what dmlc needs")
    parser.add_argument("--add", nargs="*", type=Path, default=[], help="more folders of programs and models")
    parser.add_argument("--targets", nargs="+", default=["directml", "cpu", "onnx", "numpy"])
    parser.add_argument("--count", type=int, default=60, help="of random programs, and of random models")
    parser.add_argument("--patterns", type=int, default=2, help="models of each pattern")
    parser.add_argument("--keep", type=Path, help="a folder for what was written, by run")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch).resolve() / "sources"
        names = write_corpus(root, programs=args.count, models=args.count, patterns=args.patterns)
        for folder in args.add:
            names = add_folder(folder, root)
        first, different = run(root, names, args.targets, Circumstances(), _kept(args.keep, "first")), 0
        print(f"{len(names)} sources, {len(first)} outputs", flush=True)
        for number, (how, only) in enumerate(_circumstances(args, root)):
            folder = root
            if only == "crlf":
                folder = root.parent / "crlf"
                names = with_crlf(root, folder)
            found = run(folder, names, args.targets, how, _kept(args.keep, str(number)))
            wrong = differences(first, found, names)
            different += len(wrong)
            print(f"{how}{', CRLF' * (only == 'crlf')}: {len(found)} outputs, {len(wrong)} different", flush=True)
            for label in wrong:
                print(f"  {label}", flush=True)
    return 1 if different else 0


def _circumstances(args: argparse.Namespace, root: Path) -> Iterator[tuple[Circumstances, str]]:
    for seed in range(1, args.seeds + 1):
        yield Circumstances(str(seed), shake=seed), ""
    for number, python in enumerate(args.python):
        yield Circumstances(str(100 + number), shake=100 + number, python=python), ""
    yield Circumstances(optimized=True), ""
    yield Circumstances(folder=root.parent, relative=True), ""
    yield Circumstances(), "crlf"


def _kept(folder: Path | None, name: str) -> Path | None:
    return None if folder is None else folder / name


if __name__ == "__main__":
    sys.exit(main())
