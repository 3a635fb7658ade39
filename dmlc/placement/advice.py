"""A placement report as diagnostics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from dmlc.diagnostics import Code, Diagnostic, Label, OfNodes, Span
from dmlc.diagnostics.catalogue.advice import ON_CPU, OTHER_NUMBERS, UNKNOWN_NODE, WEAKNESS
from dmlc.diagnostics.catalogue.targets import SESSION_FAILS, WRONG_NUMBERS
from dmlc.ir import Graph
from dmlc.placement.report import Placement

#: The code of each effect, its message about one node, and about several.
_CODES: dict[str, tuple[Code, str, str]] = {
    "fails": (
        SESSION_FAILS,
        "{op} {name} makes session creation fail: {limit}",
        "{nodes} would make session creation fail: {limit}",
    ),
    "wrong": (WRONG_NUMBERS, "{op} {name} gives wrong numbers: {limit}", "{nodes} would give wrong numbers: {limit}"),
    "imprecise": (
        OTHER_NUMBERS,
        "{op} {name} may give other numbers: {limit}",
        "{nodes} may give other numbers: {limit}",
    ),
    "advice": (WEAKNESS, "{op} {name} may do badly: {limit}", "{nodes} may do badly: {limit}"),
    "cpu": (ON_CPU, "{op} {name} runs on the CPU: {limit}", "{nodes} run on the CPU: {limit}"),
    "unknown": (
        UNKNOWN_NODE,
        "it is not known where {op} {name} runs: {limit}",
        "it is not known where {nodes} run: {limit}",
    ),
}
#: The codes of diagnostics about a node of the report.
PLACEMENT_CODES = frozenset(code for code, *_ in _CODES.values())


def code_of(effect: str) -> Code:
    """Return the code of findings with that effect."""
    return _CODES[effect][0]


def diagnose(report: Placement) -> Iterator[tuple[str, Diagnostic]]:
    """Yield (node, diagnostic) for each finding; nodes with the same advice share one diagnostic."""
    shared: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for node, finding in report.findings:
        if finding.effect == "advice":
            shared.setdefault((finding.limit, finding.repair), []).append((node.op, node.name))
    for node, finding in report.findings:
        code, text, several = _CODES[finding.effect]
        name, nodes = node.name, [(node.op, node.name)]
        if finding.effect == "advice":
            nodes = shared.pop((finding.limit, finding.repair), [])
            if not nodes:
                continue
            name += f" and {len(nodes) - 1} like it" if len(nodes) > 1 else ""
        message = text.format(op=node.op, name=name, limit=finding.limit)
        about = OfNodes(tuple(nodes), several.replace("{limit}", finding.limit.replace("{", "{{").replace("}", "}}")))
        notes = (f"source: {finding.source}",) if finding.source else ()
        yield node.name, Diagnostic(code, message, help=finding.repair, notes=notes, of_nodes=about)


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
