"""Write the smallest model that still shows a fault, with inputs, results and a program that shows it again.

A is the model with the fault. It is compared with another model or program, with itself on another backend, or a
command checks it. The bundle has all that a report needs. Nodes are dropped, sizes are cut down, and weights and inputs
are replaced by seeded numbers, as long as the fault stays. If it does not show, nothing is written (exit code 1).
"""

from __future__ import annotations

import argparse

from dmlc import api
from dmlc.cli.console import Console, UsageError
from dmlc.cli.fault_search import add_checks, add_search_options, check_search_options, search_arguments
from dmlc.cli.layout import prose
from dmlc.cli.source import check_is_source, open_source
from dmlc.debugging import repro
from dmlc.debugging.reproduction import ReproFacts


class ReproAnswer(ReproFacts, frozen=True, kw_only=True):
    """A small model that shows the fault of ``source``, in the bundle ``output``; ``summary`` is it in one line."""

    source: str
    output: str
    summary: str


ANSWERS = (ReproAnswer,)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="A", help="an .onnx model or a .dml program; - reads a program from stdin")
    parser.add_argument("-o", "--output", metavar="OUT.zip", required=True, help="the bundle to write")
    help = "the value to start from (default: the first one that differs)"
    parser.add_argument("--value", metavar="NAME", help=help)
    add_checks(parser)
    add_search_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    check_search_options(args)
    if args.against is not None and args.against not in api.BACKENDS:
        check_is_source(args.against)
    if not args.output.lower().endswith(".zip"):
        raise UsageError(f"-o names a .zip file, not {args.output}")
    with console.progress(f"reducing {args.source}") as progress:
        found = repro(open_source(args), **search_arguments(args), value=args.value, progress=progress)
        found.save(args.output)
    console.result(found.last_line(args.output) if console.quiet else prose(found.to_text(args.output)))
    ending = found.last_line(args.output)
    console.document(ReproAnswer.of(found.facts(), source=args.source, output=args.output, summary=ending))
    return 0
