"""Option groups that several verbs share."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dmlc.ir.fixed_shapes import FixedShape

_DIGITS = 100
TARGETS = "directml, cpu, onnx or numpy"


_SOURCE = "a .dml program or an .onnx model; - reads a program from stdin"


def add_sources(parser: argparse.ArgumentParser) -> None:
    """Add one or more SRC, for ``run_each``."""
    parser.add_argument("sources", metavar="SRC", nargs="+", help=_SOURCE)


def add_source(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    parser.add_argument("source", metavar="SRC", nargs="?" if optional else None, help=_SOURCE)


def add_report_options(parser: argparse.ArgumentParser, formats: tuple[str, ...] = ("text", "json")) -> None:
    group = parser.add_argument_group("report")
    group.add_argument("--format", choices=formats, default="text", help="json goes to stdout as one document")
    group.add_argument("-q", "--quiet", action="store_true", help="no messages but errors")
    group.add_argument("-v", "--verbose", action="store_true", help="more messages; a traceback for a bug in dmlc")


def report_options(argv: list[str]) -> argparse.Namespace:
    """Return what ``add_report_options`` finds in a command line whose other options are not known."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    add_report_options(parser)
    return parser.parse_known_args(argv)[0]


def add_compile_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``dmlc.compile``."""
    group = parser.add_argument_group("compilation")
    group.add_argument("--target", default="directml", metavar="NAME", help=f"{TARGETS} (default: directml)")
    group.add_argument("--feature-level", metavar="5.0", help="the DirectML feature level to rely on")
    group.add_argument("--opset", type=int, metavar="N", help="the ONNX opset to emit (default: the target's)")
    group.add_argument(
        "--bind", type=_binding, action="append", default=[], metavar="N=4", help="fix a dynamic size; may be repeated"
    )
    help = "fix the sizes of an input, or its rank; _ leaves a size dynamic; may be repeated"
    group.add_argument("--shape", type=_shape, action="append", default=[], metavar="x=1,3,_", help=help)
    help = "promise that the values of an input are within these bounds, for rewrites; may be repeated"
    group.add_argument("--range", type=_range, action="append", default=[], metavar="x=0.0..1.0", help=help)
    group.add_argument("--model", metavar="NAME", help="which model, where the file holds several")
    add_include(group)
    classes = group.add_mutually_exclusive_group()
    classes.add_argument("--exact", action="store_true", help="only rewrites that keep every bit")
    classes.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="range",
        help="also rewrites that are equal only under a precondition on values",
    )
    group.add_argument(
        "--skip-rule", action="append", default=[], metavar="RULE", help="a rewrite that must not fire; may be repeated"
    )
    group.add_argument(
        "--only-rule", action="append", metavar="RULE", help="the only rewrite that may fire; may be repeated"
    )
    group.add_argument("--f64", choices=("f32",), help="compute f64 in f32; inputs and outputs keep their types")
    group.add_argument(
        "--accumulate", choices=("f32",), help="compute in f32 the squares and products of f16 that are summed"
    )
    group.add_argument(
        "--fuse",
        choices=("attention",),
        action="append",
        default=[],
        help="also make attention one operator (directml)",
    )
    add_limits(group)
    group.add_argument("--strict", action="store_true", help="a warning of the target or the numbers is an error")
    group.add_argument("--lower-hardmax", action="store_true", help="lower hardmax over one axis too")


def add_include(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add ``--include``."""
    help = "a folder in which use and load look after the program's own; may be repeated"
    parser.add_argument("--include", action="append", default=[], metavar="DIR", help=help)


def add_limits(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """Add ``--limit``; ``limits_of`` returns the limits that were given."""
    help = "read more, or less, than is usual; see docs/limits.md"
    parser.add_argument("--limit", type=_limits, action="append", default=[], metavar="nodes=3000000,...", help=help)


def limits_of(args: argparse.Namespace) -> dict[str, int]:
    """The limits of the command line by name."""
    return {name: size for given in args.limit for name, size in given}


def _limits(text: str) -> list[tuple[str, int]]:
    return [_binding(part) for part in text.split(",")]


def _binding(text: str) -> tuple[str, int]:
    name, sign, size = text.partition("=")
    try:
        if name and sign:
            return name.strip(), int(size)
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not NAME=INTEGER")


def profile_option(text: str) -> tuple[str, list[int]]:
    """The dim and its sizes in ``batch=1,8``."""
    name, sign, sizes = text.partition("=")
    parts = [part.strip() for part in sizes.split(",")]
    if name.strip() and sign and all(part.isascii() and part.isdigit() for part in parts):
        return name.strip(), [_size(part) for part in parts]
    raise argparse.ArgumentTypeError(f"{text!r} is not NAME=SIZE,SIZE,...")


def _shape(text: str) -> tuple[str, FixedShape]:
    name, sign, sizes = text.rpartition("=")
    parts = [part.strip() for part in sizes.split(",")] if sizes.strip() else []
    if name and sign and all(part == "_" or (part.isascii() and part.isdigit()) for part in parts):
        return name.strip(), tuple([None if part == "_" else _size(part) for part in parts])
    raise argparse.ArgumentTypeError(f"{text!r} is not NAME=SIZE,SIZE,...; write _ for a size that stays open")


def _range(text: str) -> tuple[str, tuple[float, float]]:
    """The input and the two numbers in ``x=0.0..1.0``."""
    name, sign, ends = text.rpartition("=")
    low, dots, high = ends.partition("..")
    try:
        if name and sign and dots:
            return name.strip(), (_bound(low), _bound(high))
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"{text!r} is not NAME=LOW..HIGH, such as x=0.0..1.0 or x=0.0..inf")


def _bound(text: str) -> float:
    text = text.strip()
    return int(text) if text.removeprefix("-").isdigit() and len(text) <= _DIGITS else float(text)


def _size(text: str) -> int:
    if len(text) > _DIGITS:  # Python reads no integer of thousands of digits
        raise argparse.ArgumentTypeError(f"a size of {len(text)} digits is too large: the largest is 2**63 - 1")
    return int(text)
