"""Write a page about the compilation of a program or a model, for people who did not run the command.

It has the counts before and after, the graphs, the rewrites and a verification, in one HTML file that loads nothing.
Pictures need `pip install "dmlc[report]"`; without it lists take their place.
"""

from __future__ import annotations

import argparse

from dmlc.cli.compile import check_apart
from dmlc.cli.compile_options import add_compile_options
from dmlc.cli.console import Console, UsageError, human_bytes
from dmlc.cli.counts import as_written
from dmlc.cli.layout import wrapped
from dmlc.cli.options import add_report_options, add_source
from dmlc.cli.report_facts import check_page, write_page
from dmlc.cli.source import compile_source, open_source
from dmlc.ir.answers import Answer

_INPUTS = 2


class ReportAnswer(Answer, frozen=True):
    """The page that was written. ``verdict`` is null where nothing was verified."""

    source: str
    output: str
    target: str
    bytes: int
    verdict: str | None


ANSWERS = (ReportAnswer,)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_source(parser)
    parser.add_argument("-o", "--output", metavar="OUT.html", required=True, help="the page to write")
    help = f"compare SRC and the result on N seeded inputs (default: {_INPUTS}); 0 leaves it out"
    parser.add_argument("--verify", type=int, default=_INPUTS, metavar="N", help=help)
    add_compile_options(parser)
    add_report_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    check_page(args.output)
    check_apart("OUT", args.output, "SRC", args.source)
    if args.verify < 0:
        raise UsageError(f"--verify takes a number of inputs, 0 or more, not {args.verify}")
    source = open_source(args)
    with console.progress(args.source) as progress:
        program = compile_source(args, source=source, progress=progress)
        progress("making code")
        plain = None if program.source_graph.joined is None else as_written(args, program, source)
        progress("verifying")
        verdict = program.verify(args.verify) if args.verify else None
        progress("drawing")
        size = write_page(args, args.output, program, plain, verdict, {})
    answer = None if verdict is None else verdict.answer
    words = "" if verdict is None else wrapped(verdict.headline(), "  ")
    console.say(f"{args.output}: {human_bytes(size, short=True)}\n{words}")
    console.document(ReportAnswer(args.source, args.output, program.target.name, size, answer))
    return 0
