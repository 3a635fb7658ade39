"""Find the first node that makes a model wrong, by cutting the model in two.

A part of the model runs on a backend and is compared with the same part elsewhere, or a command checks it. Only the
values at the cut become outputs. So a fault inside a fused kernel, which vanishes when an inner value becomes an
output, is found too. The exit code is 0 if a node was found, 1 if the fault does not show or skipped models leave
several nodes.
"""

from __future__ import annotations

import argparse

from dmlc.cli.console import Console
from dmlc.cli.fault_search import add_checks, add_search_options, check_search_options, search_arguments
from dmlc.cli.layout import prose
from dmlc.cli.source import open_source
from dmlc.debugging import bisect
from dmlc.debugging.bisection import BisectFacts


class BisectAnswer(BisectFacts, frozen=True, kw_only=True):
    """The outcome of a bisection of ``source``; ``summary`` is it in one line."""

    source: str
    summary: str


ANSWERS = (BisectAnswer,)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="A", help="an .onnx model or a .dml program; - reads a program from stdin")
    add_checks(parser)
    parser.add_argument("--from-end", action="store_true", help="check parts that reach to the end, on right inputs")
    parser.add_argument("--state", metavar="FILE", help="keep the runs in this file, and go on from it")
    add_search_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    check_search_options(args)
    with console.progress(f"bisecting {args.source}") as progress:
        found = bisect(
            open_source(args), **search_arguments(args), from_end=args.from_end, state=args.state, progress=progress
        )
    console.result(found.last_line() if console.quiet else prose(found.to_text(whole=console.verbose)))
    if console.quiet:
        console.warn(found.diagnostics)
    else:
        console.record(found.diagnostics)
    console.document(BisectAnswer.of(found, source=args.source, summary=found.last_line()), ok=found.found)
    return 0 if found.found else 1
