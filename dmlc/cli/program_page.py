"""The page of a program for ``dmlc explain``: what the compiler did to it, and what it did not do and why."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

from dmlc import api
from dmlc.cli.console import Console
from dmlc.cli.counts import as_written, nodes_after, nodes_before
from dmlc.cli.layout import table
from dmlc.cli.library_page import show_library
from dmlc.cli.near_misses import NearMiss, near_misses
from dmlc.cli.source import compile_source, open_source
from dmlc.codegen.ledger import ledger_rows
from dmlc.diagnostics import Span
from dmlc.diagnostics.counted import counted
from dmlc.passes.manager import LedgerEntry
from dmlc.text import LibraryError

#: Node names that are shown of one rewrite; JSON has them all.
_NAMES = 6


def explain_program(args: argparse.Namespace, console: Console) -> int:
    """Show the page, or the JSON document, of SRC. Raises ``DmlcError``."""
    source = open_source(args)
    with console.progress(args.source) as progress:
        try:
            program = compile_source(args, source=source, progress=progress)
        except LibraryError as error:
            return show_library(args, console, error.library)
        before = nodes_before(program, as_written(args, program, source))
        after = nodes_after(program)
    console.warn(program.diagnostics)
    totals = (None if before is None else before.total(), after.total())
    misses = near_misses(program)
    page = missed_page(misses) if args.missed else program_page(program, misses, *totals, verbose=console.verbose)
    console.result(page)
    console.document(
        {
            "source": args.source,
            "target": program.target.name,
            "nodes": dict(zip(("before", "after"), totals, strict=True)),
            "rewrites": [{**row, "what": row["text"]} for row in ledger_rows(program.ledger)],
            "missed": [
                {
                    "rule": one.rule,
                    "node": one.node,
                    "reason": one.reason,
                    "places": _places(one.spans),
                    "saves": one.saves,
                }
                for one in misses
            ],
            "lowerings": [
                {"node": node, "choice": reason, "places": _places(spans)}
                for (node, reason), spans in _choices(program).items()
            ],
            "passes": [{"pass": name, "seconds": s, "changed": changed} for name, s, changed in program.timings],
        }
    )
    return 0


def program_page(
    program: api.Program, misses: Sequence[NearMiss], before: int | None, after: int, *, verbose: bool = False
) -> str:
    """Passes that changed something, or all if ``verbose``, what was rewritten, what was not and why; with the source
    lines. ``before`` and ``after`` are counts of nodes."""
    noun = "operation" if program.target.code == "numpy" else "node"
    nodes = counted(after, noun) if before is None else f"{counted(before, noun)} as written, {after} after"
    out = f"{program.signature.name} for {program.target.name}: {nodes}\n"
    timings = [row for row in program.timings if verbose or row[2]]
    rows = [[name, f"{s * 1e3:.2f} ms", "" if changed else "nothing to do"] for name, s, changed in timings]
    out += "\npasses\n" + table(rows, "  ") if rows else "\nno pass changed anything\n"
    out += "\nrewritten\n" if program.ledger else "\nnothing was rewritten\n"
    for entry in program.ledger:
        out += f"  {entry.rule} ({entry.rewrite_class}): {entry.text}\n{_change(entry)}{_lines(entry.spans)}"
    choices = _choices(program)
    if choices:
        out += "\nlowerings, with their estimated costs on one thread\n"
    for (node, reason), spans in choices.items():
        out += f"  {node}: {reason}\n{_lines(spans)}"
    return out + ("\n" + missed_page(misses) if misses else "")


def missed_page(misses: Sequence[NearMiss]) -> str:
    """List what was not rewritten, and why, with the source lines: first what would save most."""
    out = "not rewritten\n" if misses else "no rule matched that did not fire\n"
    for one in misses:
        # a rule that knows says so in its reason
        saves = f" (would save {counted(one.saves, 'node')})" if one.saves and " save " not in one.reason else ""
        out += f"  {one.rule} at {one.node}: {one.reason}{saves}\n{_lines(one.spans)}"
    return out


def _change(entry: LedgerEntry) -> str:
    """The nodes that went, and those that came."""
    if not entry.before:
        return ""
    return f"      {_names(entry.before)} -> {_names(entry.after) if entry.after else 'nothing'}\n"


def _names(names: Sequence[str]) -> str:
    more = len(names) - _NAMES
    return ", ".join(names[:_NAMES]) + (f" and {more} more" if more > 0 else "")


def _choices(program: api.Program) -> dict[tuple[str, str], tuple[Span, ...]]:
    """The lowerings that were chosen, by node and reason: passes that run twice report twice."""
    return {(r.node, r.reason()): r.spans for r in program.remarks if r.chosen}


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
