"""Show the differences of two models or programs: nodes, inputs, outputs, opsets and metadata as a diff, initializers.

A and B are .dml programs, which are compared as they are written, or .onnx models. The exit code is 1 where they
differ.
"""

from __future__ import annotations

import argparse

from dmlc.cli.compile_options import add_options, limits_of
from dmlc.cli.console import Console, UsageError
from dmlc.cli.options import add_report_options
from dmlc.cli.source import STDIN, check_is_source, read_source
from dmlc.debugging import diff
from dmlc.debugging.model_diff import DiffFacts
from dmlc.diagnostics import Diagnostic, Source
from dmlc.diagnostics.catalogue.runs import MODELS_DIFFER
from dmlc.diagnostics.limits import Limits


class DiffAnswer(DiffFacts, frozen=True, kw_only=True):
    """Every difference of the models or programs ``a`` and ``b``."""

    a: str
    b: str


ANSWERS = (DiffAnswer,)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", metavar="A", help="a .dml program or an .onnx model; - reads a program from stdin")
    parser.add_argument("b", metavar="B", help="the other model or program")
    add_options(parser, "model", "include", "limits")
    add_report_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    if args.a == args.b == STDIN:
        raise UsageError("A and B are not both stdin")
    limits = limits_of(args)
    with console.progress(f"comparing {args.a} and {args.b}"):
        sides = [_source(name, limits) for name in (args.a, args.b)]
        found = diff(*sides, model=args.model, include=args.include, limits=dict(args.limits))
    differ = [] if found.equal else [Diagnostic(MODELS_DIFFER, found.headline())]
    helps = "".join([f"  help: dmlc explain {each.code.id}\n" for each in differ])
    console.result(found.headline() if console.quiet else f"{found.to_text()}{helps}")
    console.record(differ)
    console.document(DiffAnswer.of(found.facts(), a=args.a, b=args.b), ok=found.equal)
    return 0 if found.equal else 1


def _source(name: str, limits: Limits) -> Source | str:
    check_is_source(name)
    return read_source(STDIN, limits) if name == STDIN else name
