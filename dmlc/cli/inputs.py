"""The data that a command runs a program on: ``--input`` and ``--random``."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from dmlc import api
from dmlc.cli.console import UsageError
from dmlc.cli.options import limits_of
from dmlc.diagnostics.limits import Limits
from dmlc.ir import Array
from dmlc.ir.dtype import bool_
from dmlc.runtime import files
from dmlc.runtime.feeds import truth_values


def add_inputs(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--input",
        type=_input,
        action="append",
        default=[],
        metavar="x=x.npy",
        help="data for an input; x=data.npz:key takes one array of several; may be repeated",
    )
    parser.add_argument("--random", type=int, metavar="SEED", help="make up the inputs that --input does not give")


def _input(text: str) -> tuple[str, str]:
    name, sign, place = text.partition("=")
    if not name or not sign or not place:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=FILE")
    return name, place


def given_inputs(args: argparse.Namespace) -> dict[str, Array]:
    """The arrays of ``--input`` by name. Raises ``UsageError``, and ``DmlcError`` for a file that holds none."""
    if args.random is not None and args.random < 0:
        raise UsageError(f"a seed is 0 or more, not {args.random}")
    limits = Limits.of(limits_of(args))
    given: dict[str, Array] = {}
    for name, place in args.input:
        if name in given:
            raise UsageError(f"input {name} is given twice")
        given[name] = _load(name, place, limits)
    return given


def _load(name: str, place: str, limits: Limits) -> Array:
    """The array of ``FILE`` or ``FILE.npz:key``."""
    archive = re.match(r"(.*?\.npz):(.+)", place, re.IGNORECASE | re.DOTALL)  # a key may hold colons itself
    if archive:
        return files.load_array(Path(archive[1]), archive[2], name, limits)
    return files.load_array(Path(place), None, name, limits)


def feeds_of(args: argparse.Namespace, given: dict[str, Array], program: api.Program) -> dict[str, Array]:
    """The arrays of ``--random`` and, before them, of ``--input``; bytes of 0 and 1 as bools where the program takes
    bools. Raises ``DmlcError`` E0427."""
    bools = {name for name, type_ in program.signature.inputs if type_.dtype is bool_}
    read = {name: truth_values(array) if name in bools else array for name, array in given.items()}
    return {**_made_up(args, program), **read}


def _made_up(args: argparse.Namespace, program: api.Program) -> dict[str, Array]:
    """The arrays of ``--random`` by name; none where it is not asked for. Raises ``DmlcError`` E0427."""
    return {} if args.random is None else program.random_feeds(args.random)
