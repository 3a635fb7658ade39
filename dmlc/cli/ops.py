"""List the operations of the language, or show one: its call form, dtypes, attributes, what its numbers mean."""

from __future__ import annotations

import argparse

from msgspec import UNSET, UnsetType

from dmlc.cli.console import Console, UsageError
from dmlc.cli.layout import table
from dmlc.cli.options import add_report_options
from dmlc.diagnostics import did_you_mean
from dmlc.ir import Operation
from dmlc.ir.answers import Answer
from dmlc.ops import FAMILIES, INFIX, PREFIX
from dmlc.ops.foreign import operation_named
from dmlc.ops.pages import OperationPage, StandardBlock, describe

_OPERATIONS: dict[str, Operation] = {op.name: op for family in FAMILIES.values() for op in family}


class BlockPage(StandardBlock, frozen=True):
    """A block and its program."""

    program: str


class OpsAnswer(Answer, frozen=True):
    """All operations or one, all blocks of the standard library or one."""

    operations: list[OperationPage] | UnsetType = UNSET
    operation: OperationPage | UnsetType = UNSET
    blocks: list[StandardBlock] | UnsetType = UNSET
    block: BlockPage | UnsetType = UNSET


ANSWERS = (OpsAnswer,)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?", help="an operation or a sign: argmax, +")
    parser.add_argument("--std", action="store_true", help="list the blocks of the standard library, or show one")
    add_report_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    if args.std:
        return _show_blocks(args.name, console)
    if args.name is None:
        pages = [describe(op) for op in _OPERATIONS.values()]
        console.result(_list(pages))
        console.document(OpsAnswer(operations=pages))
        return 0
    if find(args.name) is None:
        raise UsageError(f"there is no operation {args.name}; {meant(args.name) or 'dmlc ops lists them'}")
    return show(args.name, console)


def find(name: str) -> Operation | None:
    """The operation of a name or a sign."""
    return _OPERATIONS.get(name) or INFIX.get(name) or PREFIX.get(name)


def meant(name: str) -> str:
    """A question whether an operation of another name is meant: that of NumPy's ``mean``, or one spelled alike."""
    operation = operation_named(name)
    return f'did you mean "{operation}"?' if operation else did_you_mean(name, _OPERATIONS)


def names() -> dict[str, str]:
    """Each operation with what it does in a line."""
    return {name: op.summary for name, op in _OPERATIONS.items()}


def show(name: str, console: Console) -> int:
    """Show the page of an operation."""
    op = find(name)
    assert op is not None
    page = describe(op)
    console.result(_page(page))
    console.document(OpsAnswer(operation=page))
    return 0


def _show_blocks(name: str | None, console: Console) -> int:
    """List the blocks of the standard library, or show one with its program."""
    from dmlc.text.standard_library import std_blocks, std_page, std_path  # it loads the parser

    if name is None:
        blocks = [std_page(each) for each in std_blocks()]
        console.result(table([[block.signature, block.summary] for block in blocks]))
        console.document(OpsAnswer(blocks=blocks))
        return 0
    if name not in std_blocks():
        near = did_you_mean(name, std_blocks()) or "dmlc ops --std lists them"
        raise UsageError(f"the standard library has no block {name}; {near}")
    program = std_path(name).read_text(encoding="utf-8")
    console.result(f"use {name} from std\n\n{program}")
    console.document(OpsAnswer(block=BlockPage.of(std_page(name), program=program)))
    return 0


def _list(pages: list[OperationPage]) -> str:
    out = ""
    for family in dict.fromkeys(page.family for page in pages):
        members = [page for page in pages if page.family == family]
        out += f"{family}\n" + table([[page.signature, page.summary] for page in members], "  ") + "\n"
    return out.rstrip("\n") + "\n"


def _page(page: OperationPage) -> str:
    out = f"{page.signature}\n\n{page.summary}\n"
    if page.operands:
        out += "\noperands\n" + table([[o.name, o.dtypes, o.kind] for o in page.operands], "  ")
    if page.attributes:
        rows = [[a.name, a.values, f"default {a.default}" if a.default else "required", a.doc] for a in page.attributes]
        out += "\nattributes\n" + table(rows, "  ")
    out += "\nresults\n" + table([[name] for name in page.results], "  ")
    if page.notes:
        out += "\nwhat the numbers mean\n" + table([[key, text] for key, text in page.notes.items()], "  ")
    return out + (f"\nsource: {page.source}\n" if page.source else "")
