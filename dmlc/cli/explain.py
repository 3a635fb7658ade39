"""Explain an error code; or show what the compiler did to a program or a model, and what it did not do and why.

Rewrites are shown with their rule, its class and the nodes before and after; near misses with the node where the
pattern was found and the reason why it was left alone.
"""

from __future__ import annotations

import argparse
import re
import textwrap
from pathlib import Path

from dmlc.cli.console import Console, UsageError
from dmlc.cli.options import add_compile_options, add_report_options
from dmlc.diagnostics import CODES, Code, catalogue

_CODE = re.compile(r"[A-Za-z]\d{4}")
_WIDTH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SRC|CODE", help="a program, a model, or a code such as E0301")
    parser.add_argument("--missed", action="store_true", help="show only what was not rewritten, and why")
    parser.add_argument("--node", metavar="NAME", help="show one node: its origin and what was done to it")
    add_compile_options(parser)
    add_report_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    if _CODE.fullmatch(args.source) and not Path(args.source).exists():
        return _explain_code(args.source.upper(), console)
    # both need the libraries that a code's page says how to install
    if args.node is not None:
        from dmlc.cli.node_page import explain_node

        return explain_node(args, console)
    from dmlc.cli.program_page import explain_program

    return explain_program(args, console)


def _explain_code(name: str, console: Console) -> int:
    assert catalogue, "importing the catalogue declares the codes"
    code = CODES.get(name)
    if code is None:
        family = [code for code in CODES if code[:3] == name[:3]]
        known = f"; codes of this family: {', '.join(sorted(family))}" if family else ""
        raise UsageError(f"there is no code {name}{known}")
    console.result(code_page(code))
    fields = {"code": code.id, "title": code.title, "why": code.why, "example": code.example, "fixed": code.fixed}
    console.document(fields)
    return 0


def code_page(code: Code) -> str:
    """The page of a code."""
    why = textwrap.fill(code.why, _WIDTH)
    wrong, right = (textwrap.indent(part, "    ") for part in (code.example, code.fixed))
    return f"{code.id}: {code.title}\n\n{why}\n\nwrong:\n\n{wrong}\nright:\n\n{right}"
