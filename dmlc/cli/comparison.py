"""Options of the verbs that compare two sides: inputs, tolerances, seeds."""

from __future__ import annotations

import argparse

from dmlc.cli.console import UsageError
from dmlc.cli.inputs import add_given_inputs
from dmlc.verifying import DEFAULT_INPUTS


def add_comparison(parser: argparse.ArgumentParser, *, inputs: str) -> None:
    """Add ``--input``, the tolerances, ``--inputs``, which ``inputs`` describes, and ``--seed``."""
    add_given_inputs(parser)
    parser.add_argument("--rtol", type=float, metavar="R", help="|a - b| may be --atol + R * |a|")
    parser.add_argument("--atol", type=float, metavar="T", help="|a - b| may be T + --rtol * |a|")
    help = f"{inputs} (default: {DEFAULT_INPUTS})"
    parser.add_argument("--inputs", type=int, default=DEFAULT_INPUTS, metavar="N", help=help)
    parser.add_argument("--seed", type=int, default=0, metavar="SEED", help="other inputs (default: 0)")


def check_comparison(args: argparse.Namespace) -> None:
    """Raises ``UsageError`` for numbers out of range, and for a tolerance given with ``--exact``."""
    for option, number in (("--rtol", args.rtol), ("--atol", args.atol)):
        if number is not None and not number >= 0:
            raise UsageError(f"{option} is 0 or more, not {number}")
    if args.exact and (args.rtol is not None or args.atol is not None):
        raise UsageError("--exact allows no error, --rtol and --atol allow some: give one of them")
    if args.inputs < 1:
        raise UsageError(f"--inputs is 1 or more, not {args.inputs}")
    if args.seed < 0:
        raise UsageError(f"a seed is 0 or more, not {args.seed}")
