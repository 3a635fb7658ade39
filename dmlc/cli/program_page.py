"""The page of a program for ``dmlc explain``: what the compiler did to it, and what it did not do and why."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence

from dmlc import api
from dmlc.cli.console import Console
from dmlc.cli.counts import as_written, nodes_after, nodes_before, timing_lines
from dmlc.cli.layout import table, wrapped
from dmlc.cli.library_page import show_library
from dmlc.cli.near_misses import NearMiss, near_misses
from dmlc.cli.source import compile_source, open_source
from dmlc.codegen.ledger import RewriteRow, ledger_rows
from dmlc.diagnostics import Span
from dmlc.diagnostics.counted import counted, first_of
from dmlc.ir.answers import Answer, BeforeAfter
from dmlc.ir.removed import Removal
from dmlc.passes.inventory import all_rules
from dmlc.passes.manager import LedgerEntry
from dmlc.targets.provider import provider
from dmlc.text import LibraryError

#: Promises of the classes of rewrites, in words.
PROMISES = {"exact": "same bits", "reassociates": "rounding may change", "range": "needs a value range"}
#: Node names that are shown of one rewrite; -v and JSON have them all.
_NAMES = 6


class ExplainedRewrite(RewriteRow, frozen=True):
    """A rewrite; ``what`` is its text."""

    what: str


class MissedRewrite(Answer, frozen=True):
    """A rule that did not fire, and why; ``saves`` is the number of nodes that it would save, null if not known."""

    rule: str
    node: str
    reason: str
    places: list[str]
    saves: int | None


class ChosenLowering(Answer, frozen=True):
    """The operators that a node became, and why."""

    node: str
    choice: str
    places: list[str]


class PassTime(Answer, frozen=True, rename={"name": "pass"}):
    """A pass, and if it changed the graph."""

    name: str
    seconds: float
    changed: bool


class ExplainAnswer(Answer, frozen=True):
    """The rewrites of a program or a model, the missed ones, and what else a user should know of the result."""

    source: str
    target: str
    nodes: BeforeAfter[int | None]
    rewrites: list[ExplainedRewrite]
    removed: tuple[Removal, ...]
    missed: list[MissedRewrite]
    lowerings: list[ChosenLowering]
    passes: list[PassTime]
    notes: list[str]


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
    misses, notes = near_misses(program), _notes(program)
    page = missed_page(misses) if args.missed else program_page(program, misses, *totals, verbose=console.verbose)
    if notes and not args.missed:
        page += "\nnotes\n" + "".join([wrapped(note, "  ", "    ") for note in notes])
    console.result(page)
    console.document(
        ExplainAnswer(
            args.source,
            program.target.name,
            BeforeAfter(*totals),
            [ExplainedRewrite.of(row, what=row.text) for row in ledger_rows(program.ledger)],
            program.removed,
            [MissedRewrite.of(one, places=_places(one.spans)) for one in misses],
            [ChosenLowering(*choice, _places(spans)) for choice, spans in _choices(program).items()],
            [PassTime(*timing) for timing in program.timings],
            list(notes),
        )
    )
    return 0


def _notes(program: api.Program) -> tuple[str, ...]:
    """The sentences about the result, as ``compile`` prints them."""
    return api.emitted_to(program, "numpy" if program.target.code == "numpy" else "onnx", None).report


def program_page(
    program: api.Program, misses: Sequence[NearMiss], before: int | None, after: int, *, verbose: bool = False
) -> str:
    """The removed nodes by cause and the rewrites by rule, the most frequent first; then near misses, and why.

    ``verbose`` adds each rewrite with its nodes and source lines, and the passes. ``before`` and ``after`` are counts
    of nodes.
    """
    noun = "operation" if program.target.code == "numpy" else "node"
    nodes = counted(after, noun) if before is None else f"{counted(before, noun)} as written, {after} after"
    out = f"{program.signature.name} for {program.target.name}: {nodes}\n"
    if verbose:
        out += "".join(["\npasses\n", *[f"{line}\n" for line in timing_lines(program)]])
    if program.removed:
        out += "\nremoved while the model was loaded\n"
    for removal in program.removed:
        out += f"  {removal.text}\n      {_names(removal.nodes, verbose=verbose)}\n"
    out += "\nrewritten, by rule\n" if program.ledger else "\nnothing was rewritten\n"
    out += _rewrites_text(program, verbose=verbose)
    choices = _choices(program)
    if choices:
        by = "estimated costs on one thread" if program.tuner is None else f"times: {program.tuner.summary()}"
        out += f"\nlowerings, with their {by}\n"
    for (node, reason), spans in choices.items():
        out += f"  {node}: {reason}\n{_lines(spans)}"
    return out + ("\n" + missed_page(misses) if misses else "")


def _rewrites_text(program: api.Program, *, verbose: bool) -> str:
    """Each rule that fired: how often, what it does, what it promises, which fault of the provider it repairs; its
    first rewrite, or all if ``verbose``."""
    by_rule: dict[tuple[str, str], list[LedgerEntry]] = {}
    for entry in program.ledger:
        by_rule.setdefault((entry.rule, entry.rewrite_class), []).append(entry)
    rules = {rule.name: rule for rule in all_rules()}
    name = program.target.provider
    operators = {each.rpartition(".")[2] for each in nodes_before(program, None) or ()}
    faults = {
        fault.id: fault.what
        for fault in (() if name is None else provider(name).failures)
        if not operators or not operators.isdisjoint(fault.operators) or "*" in fault.operators
    }
    out = ""
    for (rule, rewrite_class), entries in sorted(by_rule.items(), key=lambda item: -len(item[1])):
        promise = PROMISES.get(rewrite_class, rewrite_class)
        summary = rules[rule].summary if rule in rules else entries[0].text
        out += wrapped(f"{len(entries)} {rule} ({promise}): {summary}", "  ", "    ")
        repairs = getattr(rules[rule].kind, "repairs", ()) if rule in rules else ()
        repaired = [faults[fault] for fault in repairs if fault in faults]
        if len(repaired) <= 2 or verbose:
            out += "".join([wrapped(f"because {what}", "      ", "        ") for what in repaired])
        for entry in entries if verbose else entries[:1]:
            out += f"      {entry.text}\n" if verbose else ""
            out += f"{_change(entry, verbose=verbose)}{_lines(entry.spans)}"
        if len(entries) > 1 and not verbose:
            out += f"      and {len(entries) - 1} more (-v)\n"
    return out


def missed_page(misses: Sequence[NearMiss]) -> str:
    """List what was not rewritten, and why, with the source lines: first what would save most."""
    out = "not rewritten\n" if misses else "no missed rewrites\n"
    for one in misses:
        # a rule that knows says so in its reason
        saves = f" (would save {counted(one.saves, 'node')})" if one.saves and " save " not in one.reason else ""
        out += wrapped(f"{one.rule} at {one.node}: {one.reason}{saves}", "  ", "    ") + _lines(one.spans)
    return out


def _change(entry: LedgerEntry, *, verbose: bool) -> str:
    """The nodes that the rewrite took, and those that it made."""
    if not entry.before:
        return ""
    after = _names(entry.after, verbose=verbose) if entry.after else "nothing"
    return f"      {_names(entry.before, verbose=verbose)} -> {after}\n"


def _names(names: Sequence[str], *, verbose: bool) -> str:
    return first_of(names, len(names) if verbose else _NAMES)


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
