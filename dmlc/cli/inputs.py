"""The data that a command runs a program on: ``--input`` and ``--random``."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from dmlc import api
from dmlc.cli.compile_options import limits_of
from dmlc.cli.console import UsageError
from dmlc.diagnostics import DmlcError
from dmlc.diagnostics.limits import Limits
from dmlc.ir import Array
from dmlc.ir.dtype import bool_
from dmlc.runtime import files
from dmlc.runtime.feeds import bind_dims, truth_values, unknown_inputs


def add_given_inputs(parser: argparse.ArgumentParser, *, use: str = "data for an input") -> None:
    """Add ``--input``."""
    parser.add_argument(
        "--input",
        type=input_option,
        action="append",
        default=[],
        metavar="x=x.npy",
        help=f"{use}; x=data.npz:key takes one array of several; may be repeated",
    )


def add_sized_inputs(parser: argparse.ArgumentParser) -> None:
    """Add ``--input`` of a command that runs nothing."""
    add_given_inputs(parser, use="data whose sizes the next command is printed for")


def add_inputs(parser: argparse.ArgumentParser) -> None:
    """Add ``--input`` and ``--random``."""
    add_given_inputs(parser)
    parser.add_argument("--random", type=int, metavar="SEED", help="make up the inputs that --input does not give")


def input_option(text: str) -> tuple[str, str]:
    """The name and the place of ``NAME=FILE``."""
    name, sign, place = text.partition("=")
    if not name or not sign or not place:
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=FILE")
    return name, place


def given_inputs(args: argparse.Namespace) -> dict[str, Array]:
    """The arrays of ``--input`` by name. Raises ``UsageError``, and ``DmlcError`` for a file that holds none."""
    seed = getattr(args, "random", None)
    if seed is not None and seed < 0:
        raise UsageError(f"a seed is 0 or more, not {seed}")
    limits = limits_of(args)
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
    path = Path(place)
    if path.suffix.lower() == ".npz" and f"in::{name}" in files.array_keys(path):
        return files.load_array(path, f"in::{name}", name, limits)
    return files.load_array(path, None, name, limits)


def expected_outputs(args: argparse.Namespace) -> tuple[dict[str, Array], dict[str, Array]]:
    """The arrays ``in::NAME`` and ``out::NAME`` by NAME, of the ``.npz`` files of ``--input``.

    Raises ``DmlcError`` for a file that cannot be read.
    """
    places = [re.sub(r"(\.npz):.*", r"\1", place, flags=re.IGNORECASE | re.DOTALL) for _, place in args.input]
    names = dict.fromkeys(name for name in places if name.lower().endswith(".npz"))
    return files.named_arrays(names, limits_of(args))


def sized_inputs(args: argparse.Namespace, program: api.Program) -> dict[str, Array]:
    """The arrays of ``--input``; some inputs may be left out. Raises ``DmlcError`` E0423, E0425 for arrays that no
    input takes."""
    given = given_inputs(args)
    problems = unknown_inputs(program.signature, given)
    bind_dims(program.signature, given, problems)
    if problems:
        raise DmlcError(problems)
    return given


def feeds_of(args: argparse.Namespace, given: dict[str, Array], program: api.Program) -> dict[str, Array]:
    """The arrays of ``--random`` and, before them, of ``--input``; bytes of 0 and 1 as bools where the program takes
    bools. Raises ``DmlcError`` E0427."""
    bools = {name for name, type_ in program.signature.inputs if type_.dtype is bool_}
    read = {name: truth_values(array) if name in bools else array for name, array in given.items()}
    return {**_made_up(args, program), **read}


def _made_up(args: argparse.Namespace, program: api.Program) -> dict[str, Array]:
    """The arrays of ``--random`` by name; none where it is not asked for. Raises ``DmlcError`` E0427."""
    return {} if args.random is None else program.random_feeds(args.random)
