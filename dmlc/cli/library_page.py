"""Show a library: a program file without a model, whose defs and consts other programs use."""

from __future__ import annotations

import argparse

from msgspec import UNSET, UnsetType

from dmlc.cli.console import Console
from dmlc.cli.fixing import FixedJson
from dmlc.diagnostics.counted import counted
from dmlc.ir.answers import Answer
from dmlc.text import LibraryItems
from dmlc.text.syntax import tree


class LibraryFacts(Answer, frozen=True):
    """The functions and constants of a library."""

    defs: list[str]
    consts: list[str]


class LibraryAnswer(Answer, frozen=True):
    """A library; ``check`` gives the target, and with ``--fix`` the fixes and the text of a program of stdin."""

    source: str
    library: LibraryFacts
    target: str | UnsetType = UNSET
    fixed: list[FixedJson] | UnsetType = UNSET
    text: str | UnsetType = UNSET


def show_library(args: argparse.Namespace, console: Console, library: LibraryItems, target: str = "") -> int:
    """Print the library, or its JSON document; the exit code."""
    defs, consts = list(map(_signature, library.defs)), [_const(line) for line in library.consts]
    parts = [counted(len(found), what) for found, what in ((defs, "def"), (consts, "const")) if found]
    lines = [f"{args.source}: a library of {' and '.join(parts)}", *[f"  {text}" for text in (*defs, *consts)]]
    if not console.quiet:
        console.result("\n".join(lines))
    console.document(LibraryAnswer(args.source, LibraryFacts(defs, consts), target or UNSET))
    return 0


def _signature(line: tree.Def) -> str:
    parts = [name.text for name in line.parameters]
    parts += ["*"] if line.keywords else []
    parts += [f"{k.name.text}=..." if k.default is not None else k.name.text for k in line.keywords]
    return f"{line.name.text}({', '.join(parts)})"


def _const(line: tree.Const) -> str:
    span = line.type.span
    return f"{line.name.text}: {span.source.line(span.line)[span.column - 1 : span.end_column - 1]}"
