"""Write the smallest model that still shows a fault, with inputs, results and a program that shows it again.

A is the model with the fault. It is compared with another model or program, with itself on another backend, or a
command checks it. The bundle has all that a report needs. Nodes are dropped, sizes are cut down, and weights and inputs
are replaced by seeded numbers, wherever the fault stays. Where it does not show, nothing is written (exit code 1).
"""

from __future__ import annotations

import argparse

from dmlc import api
from dmlc.cli.bisect import add_checks, add_search_options, check_search_options
from dmlc.cli.console import Console, UsageError
from dmlc.cli.inputs import given_inputs
from dmlc.cli.options import limits_of
from dmlc.cli.source import STDIN, check_is_source, read_source
from dmlc.debugging import repro
from dmlc.diagnostics.limits import Limits


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="A", help="an .onnx model or a .dml program; - reads a program from stdin")
    parser.add_argument("-o", "--output", metavar="OUT.zip", required=True, help="the bundle to write")
    help = "the value to start from (default: the first one that parts)"
    parser.add_argument("--value", metavar="NAME", help=help)
    add_checks(parser)
    add_search_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    check_search_options(args)
    if args.against is not None and args.against not in api.BACKENDS:
        check_is_source(args.against)
    if not args.output.lower().endswith(".zip"):
        raise UsageError(f"-o names a .zip file, not {args.output}")
    limits = Limits.of(limits_of(args))
    with console.progress(f"reducing {args.source}") as progress:
        found = repro(
            read_source(STDIN, limits) if args.source == STDIN else args.source,
            against=args.against,
            backend=args.backend,
            check=args.check,
            value=args.value,
            inputs=given_inputs(args) or args.inputs,
            seed=args.seed,
            rtol=args.rtol,
            atol=args.atol,
            model=args.model,
            include=args.include,
            limits=limits_of(args),
            progress=progress,
        )
        found.save(args.output)
    console.result(found.last_line(args.output) if console.quiet else found.to_text(args.output))
    ending = found.last_line(args.output)
    console.document({"source": args.source, "output": args.output, **found.to_json(), "summary": ending})
    return 0
