"""Options of the verbs that search for a fault: the check of a part, inputs and tolerances, the source."""

from __future__ import annotations

import argparse
from typing import Any

from dmlc import api
from dmlc.cli.comparison import add_comparison, check_comparison
from dmlc.cli.compile_options import add_options
from dmlc.cli.console import UsageError
from dmlc.cli.inputs import given_inputs
from dmlc.cli.options import add_report_options
from dmlc.cli.source import check_is_source


def add_checks(parser: argparse.ArgumentParser) -> None:
    """Add ``--backend``, ``--check`` and ``--against``."""
    names = ", ".join(api.BACKENDS)
    checks = parser.add_mutually_exclusive_group()
    help = f"the side with the fault: {names} (default: the model compiled for directml); X:Y says --against Y too"
    checks.add_argument("--backend", metavar="X", help=help)
    help = "a command that exits with 0 for good, 1 for bad, 125 to skip {model}; {inputs} is an .npz file"
    checks.add_argument("--check", metavar="CMD", help=help)
    help = f"the right side: {names}, or another model (default: ONNX Runtime's CPU provider without optimizations)"
    parser.add_argument("--against", metavar="Y", help=help)


def add_search_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for inputs, tolerances and the source, and those of the report."""
    add_comparison(parser, inputs="how many made-up inputs are tried to show the fault")
    parser.add_argument("--exact", action="store_true", help="allow no difference, as --rtol 0 --atol 0 does")
    add_options(parser, "model", "include", "limits")
    add_report_options(parser)


def check_search_options(args: argparse.Namespace) -> None:
    """Raises ``UsageError`` for numbers out of range, and for a check without ``{model}``."""
    check_comparison(args)
    if args.check is not None and "{model}" not in args.check:
        raise UsageError("--check has no {model} in it, the path of the model to check")
    check_is_source(args.source)


def search_arguments(args: argparse.Namespace) -> dict[str, Any]:
    """The keywords that ``dmlc.bisect`` and ``dmlc.repro`` share."""
    same = ("backend", "against", "check", "seed", "rtol", "atol", "model", "include")
    given = {name: getattr(args, name) for name in same}
    given |= {"rtol": 0.0, "atol": 0.0} if args.exact else {}
    return {**given, "inputs": given_inputs(args) or args.inputs, "limits": dict(args.limits)}
