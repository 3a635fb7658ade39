"""Find the node with which a fault comes in, by cutting the model in two.

Parts of the model run on a backend and are compared with another one, or a command checks them. A part has no outputs
but the values at its cut, so that faults are found which vanish when a value inside a fused kernel becomes an output.
The exit code is 0 where a node was found, 1 where the fault does not show or skipped models leave several nodes.
"""

from __future__ import annotations

import argparse

from dmlc import api
from dmlc.cli.console import Console, UsageError
from dmlc.cli.inputs import given_inputs, input_option
from dmlc.cli.options import add_include, add_limits, add_report_options, limits_of
from dmlc.cli.source import STDIN, check_is_source, read_source
from dmlc.debugging import bisect
from dmlc.diagnostics.limits import Limits
from dmlc.verify import DEFAULT_INPUTS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="A", help="an .onnx model or a .dml program; - reads a program from stdin")
    add_checks(parser)
    parser.add_argument(
        "--from-end", action="store_true", help="check parts that reach to the end, fed with right values"
    )
    parser.add_argument("--state", metavar="FILE", help="keep the runs in this file, and go on from it")
    add_search_options(parser)


def add_checks(parser: argparse.ArgumentParser) -> None:
    """Add ``--backend``, ``--check`` and ``--against``."""
    names = ", ".join(api.BACKENDS)
    checks = parser.add_mutually_exclusive_group()
    help = f"where the fault is: {names} (default: what the model compiles to for directml)"
    checks.add_argument("--backend", metavar="X", help=help)
    help = "a command that exits with 0 for good, 1 for bad, 125 to skip {model}; {inputs} is an .npz file"
    checks.add_argument("--check", metavar="CMD", help=help)
    help = f"what is right: {names}, or another model (default: ONNX Runtime's CPU provider without optimizations)"
    parser.add_argument("--against", metavar="Y", help=help)


def add_search_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for inputs, tolerances and the source, and those of the report."""
    parser.add_argument(
        "--input",
        type=input_option,
        action="append",
        default=[],
        metavar="x=x.npy",
        help="data for an input; x=data.npz:key takes one array of several; may be repeated",
    )
    parser.add_argument("--rtol", type=float, metavar="R", help="|a - b| may be --atol + R * |a|")
    parser.add_argument("--atol", type=float, metavar="T", help="|a - b| may be T + --rtol * |a|")
    help = f"how many made-up inputs are tried to show the fault (default: {DEFAULT_INPUTS})"
    parser.add_argument("--inputs", type=int, default=DEFAULT_INPUTS, metavar="N", help=help)
    parser.add_argument("--seed", type=int, default=0, metavar="SEED", help="other inputs (default: 0)")
    parser.add_argument("--model", metavar="NAME", help="which model, where a program holds several")
    add_include(parser)
    add_limits(parser)
    add_report_options(parser)


def check_search_options(args: argparse.Namespace) -> None:
    """Raises ``UsageError`` for numbers out of range, and for a check without ``{model}``."""
    for option, number in (("--rtol", args.rtol), ("--atol", args.atol)):
        if number is not None and not number >= 0:
            raise UsageError(f"{option} is 0 or more, not {number}")
    if args.inputs < 1:
        raise UsageError(f"--inputs is 1 or more, not {args.inputs}")
    if args.seed < 0:
        raise UsageError(f"a seed is 0 or more, not {args.seed}")
    if args.check is not None and "{model}" not in args.check:
        raise UsageError("--check has no {model} in it, the path of the model to check")
    check_is_source(args.source)


def run(args: argparse.Namespace, console: Console) -> int:
    check_search_options(args)
    limits = Limits.of(limits_of(args))
    with console.progress(f"bisecting {args.source}") as progress:
        found = bisect(
            read_source(STDIN, limits) if args.source == STDIN else args.source,
            backend=args.backend,
            against=args.against,
            check=args.check,
            inputs=given_inputs(args) or args.inputs,
            seed=args.seed,
            from_end=args.from_end,
            state=args.state,
            rtol=args.rtol,
            atol=args.atol,
            model=args.model,
            include=args.include,
            limits=limits_of(args),
            progress=progress,
        )
    console.result(found.last_line() if console.quiet else found.to_text())
    console.warn(found.diagnostics)
    console.document({"source": args.source, **found.to_json(), "summary": found.last_line()}, ok=found.found)
    return 0 if found.found else 1
