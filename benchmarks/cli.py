"""The command line: run suites, print the tables, write the files."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.machine import machine
from benchmarks.peers import PINNED, installed
from benchmarks.plots import plots
from benchmarks.records import Case
from benchmarks.registry import ON_DEVICE, SERIAL, SUITES
from benchmarks.report import document, markdown

_ROOT = Path(__file__).parent.parent


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what is asked for. The exit status tells only whether it ran, not whether bars were reached."""
    args = _parser().parse_args(arguments)
    suites = [suite for suite in SUITES if suite not in ON_DEVICE] if "all" in args.suite else args.suite
    peers, said = installed(args.peers)
    if args.quick:
        said.append("quick sizes: they prove that the suites work, and no figure means anything")
    cases: list[Case] = []
    for n, threads in enumerate(args.threads):
        chosen = [s for s in suites if n == 0 or s not in SERIAL]
        if chosen:
            found, failed = _run(chosen, threads, list(peers), args)
            cases += found
            said += failed
    here = machine()
    drawn = plots(cases) if args.svg else {}
    text = markdown(cases, here, said, drawn)
    sys.stdout.write(text)
    if args.markdown:
        args.markdown.write_text(text, encoding="utf-8")
    if args.json:
        args.json.write_text(json.dumps(document(cases, here, said), indent=1) + "\n", encoding="utf-8")
    if args.svg:
        args.svg.mkdir(parents=True, exist_ok=True)
        for name, svg in drawn.items():
            (args.svg / name).write_text(svg, encoding="utf-8")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--suite", type=_suites, default=["all"], metavar="NAME,...", help=f"all, {', '.join(SUITES)}")
    parser.add_argument("--peers", type=_peers, default=[], metavar="NAME,...", help=f"of {', '.join(PINNED)}")
    parser.add_argument("--threads", type=_threads, default=[1], metavar="N,...", help="how many, each in turn")
    parser.add_argument("--rounds", type=int, default=15, help="interleaved rounds; 0: no times on a device")
    parser.add_argument("--quick", action="store_true", help="sizes that only prove that it works")
    parser.add_argument("--json", type=Path, metavar="OUT")
    parser.add_argument("--markdown", type=Path, metavar="OUT")
    parser.add_argument("--svg", type=Path, metavar="FOLDER")
    return parser


def _listed(text: str, known: Sequence[str]) -> list[str]:
    names = [name for name in text.split(",") if name]
    for name in names:
        if name not in known:
            raise argparse.ArgumentTypeError(f"there is no {name}; there are {', '.join(known)}")
    return names


def _suites(text: str) -> list[str]:
    return _listed(text, ["all", *SUITES])


def _peers(text: str) -> list[str]:
    return _listed(text, list(PINNED))


def _threads(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


def _run(
    suites: Sequence[str], threads: int, peers: Sequence[str], args: argparse.Namespace
) -> tuple[list[Case], list[str]]:
    """The cases of a process of its own, which libraries let take so many threads, and which suites broke off."""
    count = str(threads)
    settings = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), count)
    settings |= {"NUMBA_NUM_THREADS": count, "JAX_PLATFORMS": "cpu"}
    path = os.pathsep.join(filter(None, [str(_ROOT), os.environ.get("PYTHONPATH")]))
    with tempfile.TemporaryDirectory() as folder:
        request, answer = Path(folder) / "request.json", Path(folder) / "answer.json"
        asked = {"suites": suites, "threads": threads, "rounds": args.rounds, "quick": args.quick, "peers": peers}
        request.write_text(json.dumps(asked), encoding="utf-8")
        command = [sys.executable, "-m", "benchmarks.worker", str(request), str(answer)]
        subprocess.run(command, check=True, env={**os.environ, **settings, "PYTHONPATH": path})
        found = json.loads(answer.read_text("utf-8"))
        return [Case.from_json(row) for row in found["cases"]], found["failed"]
