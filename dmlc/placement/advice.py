"""A placement report as diagnostics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from dmlc.diagnostics import Code, Diagnostic, Label, Span
from dmlc.diagnostics.catalogue.advice import ON_CPU, OTHER_NUMBERS, UNKNOWN_NODE, WEAKNESS
from dmlc.diagnostics.catalogue.targets import SESSION_FAILS, WRONG_NUMBERS
from dmlc.ir import Graph
from dmlc.placement.report import Placement

_CODES: dict[str, tuple[Code, str]] = {
    "fails": (SESSION_FAILS, "{op} {name} makes session creation fail: {limit}"),
    "wrong": (WRONG_NUMBERS, "{op} {name} gives wrong numbers: {limit}"),
    "imprecise": (OTHER_NUMBERS, "{op} {name} may give other numbers: {limit}"),
    "advice": (WEAKNESS, "{op} {name} may do badly: {limit}"),
    "cpu": (ON_CPU, "{op} {name} lands on the CPU: {limit}"),
    "unknown": (UNKNOWN_NODE, "where {op} {name} runs is not known: {limit}"),
}
#: The codes of diagnostics about a node of the report.
PLACEMENT_CODES = frozenset(code for code, _ in _CODES.values())


def code_of(effect: str) -> Code:
    """Return the code of findings with that effect."""
    return _CODES[effect][0]


def diagnose(report: Placement) -> Iterator[tuple[str, Diagnostic]]:
    """Yield (node, diagnostic) for each finding; nodes with the same advice share one diagnostic."""
    shared = Counter((f.limit, f.repair) for _, f in report.findings if f.effect == "advice")
    for node, finding in report.findings:
        code, text = _CODES[finding.effect]
        name = node.name
        if finding.effect == "advice":
            others = shared.pop((finding.limit, finding.repair), 0) - 1
            if others < 0:
                continue
            name += f" and {others} like it" if others else ""
        message = text.format(op=node.op, name=name, limit=finding.limit)
        notes = (f"source: {finding.source}",)
        yield node.name, Diagnostic(code, message, help=finding.repair, notes=notes)


def located(report: Placement, locations: Mapping[str, str], graph: Graph | None) -> list[Diagnostic]:
    """Each finding as a diagnostic with its place, where that is known.

    ``locations`` are the places of emitted nodes by name, ``graph`` is what the program says.
    """
    found = list(diagnose(report))
    spans = spans_by_place(graph) if found and graph is not None else {}
    out = []
    for name, diagnostic in found:
        span = spans.get(locations.get(name, ""))
        out.append(replace(diagnostic, labels=(Label(span, "this node"),)) if span else diagnostic)
    return out


def spans_by_place(graph: Graph) -> dict[str, Span]:
    """The longest expression that begins at each place of a program and of the files that it uses."""
    spans: dict[str, Span] = {}
    for node in graph:
        for span in node.spans:
            known = spans.setdefault(span.place, span)
            if (known.end_line, known.end_column) < (span.end_line, span.end_column):
                spans[span.place] = span
    return spans
