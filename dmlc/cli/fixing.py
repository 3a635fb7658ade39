"""The safe fixes of ``dmlc check --fix``: in programs in place, and on stdout for a program of stdin."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dmlc import text
from dmlc.api.fixing import MadeFix, fix
from dmlc.cli.compile_options import limits_of
from dmlc.cli.console import Console, UsageError
from dmlc.cli.source import STDIN, check_is_source, read_source
from dmlc.diagnostics import DmlcError, Source
from dmlc.diagnostics.fix import FixJson, fix_json
from dmlc.runtime import files

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class FixedJson(FixJson):
    """A fix that was made, and the code of its diagnostic."""

    code: str


def add_fix(parser: argparse.ArgumentParser) -> None:
    help = "make the safe fixes: in programs in place, for models in NAME.fixed.onnx; - prints the fixed program"
    parser.add_argument("--fix", action="store_true", help=help)


def check_fix(args: argparse.Namespace) -> None:
    """Raises ``UsageError`` where stdout is asked for two things."""
    if args.fix and STDIN in args.sources and args.format in ("sarif", "github"):
        raise UsageError(f"--fix with - prints the program to stdout, and --format {args.format} the findings")


def fixed(args: argparse.Namespace, console: Console) -> argparse.Namespace:
    """Make the safe fixes of a program, and return the arguments with its text. A file is written whole or not at all.

    Raises ``UsageError``, ``DmlcError`` E0420 and E0421 (exit code 2) where it cannot be read or written.
    """
    limits = limits_of(args)
    check_is_source(args.source)
    data = b"" if args.source == STDIN else files.read_bytes(Path(args.source), limits)
    try:
        source = read_source(STDIN, limits) if args.source == STDIN else text.decode(args.source, data, limits)
    except DmlcError:
        if args.source == STDIN:  # it is read once
            raise
        return args  # the check says what is wrong with it
    done = fix(source, model=args.model, include=args.include, opset=args.opset, limits=dict(args.limits))
    for one in done.made:
        console.say(f"{one.place}: fixed {one.code}: {one.fix.title}")
    if args.source == STDIN:
        console.result(done.text, verbatim=True)
    elif done.made:
        mark = _BYTE_ORDER_MARK if data.startswith(_BYTE_ORDER_MARK) else b""
        # a program that was read through a link is written where it was read
        files.write_bytes(Path(os.path.realpath(args.source)), mark + done.text.encode("utf-8"))
    return argparse.Namespace(**{**vars(args), "text": Source(source.name, done.text), "made": done.made})


def fixed_json(args: argparse.Namespace) -> dict[str, Any]:
    """The fields of the document about the fixes that were made."""
    made: Sequence[MadeFix] = getattr(args, "made", ())
    fixed: list[FixedJson] = [{"code": one.code, **fix_json(one.fix)} for one in made]
    fields: dict[str, Any] = {"fixed": fixed}
    if args.source == STDIN:
        fields["text"] = "\n".join(args.text.lines)
    return fields
