"""Format programs in place; - reads stdin and writes stdout."""

from __future__ import annotations

import argparse
import difflib
import os
from pathlib import Path

from msgspec import UNSET, UnsetType

from dmlc import text
from dmlc.cli.compile_options import add_options, limits_of
from dmlc.cli.console import Console
from dmlc.cli.options import add_report_options
from dmlc.cli.source import STDIN, read_source
from dmlc.diagnostics import Diagnostic, DmlcError
from dmlc.diagnostics.catalogue.syntax import LAYOUT
from dmlc.ir.answers import Answer
from dmlc.runtime import files


class FormattedFile(Answer, frozen=True):
    """A program: ``changed`` is true if its layout changes; a file that cannot be formatted has an ``exit_code``."""

    source: str
    changed: bool | UnsetType = UNSET
    exit_code: int | UnsetType = UNSET


class FormatAnswer(Answer, frozen=True):
    """The formatted programs. ``text`` is that of stdin, ``diff`` the changes if they are asked for."""

    checked: int
    changed: list[str]
    files: list[FormattedFile]
    text: str | UnsetType = UNSET
    diff: str | UnsetType = UNSET


ANSWERS = (FormatAnswer,)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("sources", metavar="SRC", nargs="+", help="a .dml program; - is stdin")
    parser.add_argument("--check", action="store_true", help="write nothing; exit code 1 where the layout would change")
    parser.add_argument("--diff", action="store_true", help="write nothing; print the changes as a unified diff")
    add_options(parser, "limits")
    add_report_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    limits = limits_of(args)
    looks_only = args.check or args.diff
    changed: list[str] = []
    formatted: str | UnsetType = UNSET
    diffs: list[str] = []
    rows: list[FormattedFile] = []
    broken = 0
    for name in args.sources:
        try:
            source = read_source(name, limits)
            before, after = "\n".join(source.lines), text.format_source(source, limits)
        except DmlcError as error:  # the other files are formatted all the same
            broken = max(broken, error.exit_code)
            console.warn(error.diagnostics)
            rows.append(FormattedFile(name, exit_code=error.exit_code))
            continue
        rows.append(FormattedFile(name, before != after))
        if name == STDIN and not looks_only:
            console.result(after, verbatim=True)
            formatted = after
        if before == after:
            continue
        changed.append(name)
        if looks_only:
            diffs.append(_diff(before, after, name))
        if args.check:
            problem = Diagnostic(LAYOUT, f"{name}: the layout would change", help=f"dmlc fmt {name}", file=name)
            console.warn([problem])
            if not args.diff:
                console.detail(diffs[-1])
        elif name != STDIN and not looks_only:
            # a program that was read through a link is written where it was read
            files.write_bytes(Path(os.path.realpath(name)), after.encode("utf-8"))
            console.say(f"{name}: laid out")
    if args.diff:
        console.result("".join(diffs), verbatim=True)
    code = max(broken, int(bool(args.check and changed)))
    answer = FormatAnswer(len(args.sources), changed, rows, formatted, "".join(diffs) if args.diff else UNSET)
    console.document(answer, ok=code == 0)
    return code


def _diff(before: str, after: str, name: str) -> str:
    """Return the unified diff of a program and its formatted text; empty if they are equal."""
    return "".join(difflib.unified_diff(before.splitlines(True), after.splitlines(True), name, f"{name} (formatted)"))
