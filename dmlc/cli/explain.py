"""Explain an error code; or show what the compiler did to a program, line by line, and what it did not do and why."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Iterable
from pathlib import Path

from dmlc import api
from dmlc.cli.console import Console, UsageError, count, table
from dmlc.cli.options import add_compile_options, add_report_options
from dmlc.cli.source import compile_source
from dmlc.diagnostics import CODES, Code, Span, catalogue

_CODE = re.compile(r"[A-Za-z]\d{4}")
_WIDTH = 100


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("source", metavar="SRC|CODE", help="a program, or a code such as E0301")
    add_compile_options(parser)
    add_report_options(parser)


def run(args: argparse.Namespace, console: Console) -> int:
    if _CODE.fullmatch(args.source) and not Path(args.source).exists():
        return _explain_code(args.source.upper(), console)
    return _explain_program(args, console)


# --- codes


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


# --- programs


def _explain_program(args: argparse.Namespace, console: Console) -> int:
    program = compile_source(args)
    console.warn(program.diagnostics)
    console.result(program_page(program))
    console.document(
        {
            "source": args.source,
            "target": program.target.name,
            "nodes": {"before": len(program.source_graph), "after": len(program.graph)},
            "rewrites": [
                {"rule": e.rule, "class": e.rewrite_class, "what": e.text, "places": _places(e.spans)}
                for e in program.ledger
            ],
            "missed": [{"rule": r.rule, "reason": r.reason(), "places": _places(r.spans)} for r in program.remarks],
            "passes": [{"pass": name, "seconds": s, "changed": changed} for name, s, changed in program.timings],
        }
    )
    return 0


def program_page(program: api.Program) -> str:
    """Passes, what was rewritten, what was not and why; with the source lines."""
    before, after = len(program.source_graph), len(program.graph)
    out = f"{program.signature.name} for {program.target.name}: {count(before, 'node')} as written, {after} after\n"
    rows = [[name, f"{s * 1e3:.2f} ms", "" if changed else "nothing to do"] for name, s, changed in program.timings]
    out += "\npasses\n" + table(rows, "  ")
    out += "\nrewritten\n" if program.ledger else "\nnothing was rewritten\n"
    for entry in program.ledger:
        out += f"  {entry.rule} ({entry.rewrite_class}): {entry.text}\n{_lines(entry.spans)}"
    if program.remarks:
        out += "\nnot rewritten\n"
    for remark in program.remarks:
        out += f"  {remark.rule}: {remark.reason()}\n{_lines(remark.spans)}"
    return out


def _lines(spans: Iterable[Span]) -> str:
    """The source lines of the spans, each once."""
    rows = []
    for span in spans:
        row = [f"{span.source.name}:{span.line}", span.source.line(span.line).strip()]
        if row not in rows:
            rows.append(row)
    return table(rows, "      ")


def _places(spans: Iterable[Span]) -> list[str]:
    return list(dict.fromkeys(map(str, spans)))
