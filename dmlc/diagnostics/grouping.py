"""Diagnostics about nodes of a model, those with one code and one reason together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, TypedDict

from dmlc.diagnostics.code import Severity
from dmlc.diagnostics.counted import counted
from dmlc.diagnostics.diagnostic import Diagnostic, OfNodes
from dmlc.diagnostics.render import painter, render

#: Names and operators that a group shows, unless all are asked for.
_MOST = 3


def grouped(diagnostics: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Merge diagnostics about nodes that have no place in a source, one for each code and reason, in their order.

    A merged one has the message about several nodes, and all of them. The others stay as they are.
    """
    found: dict[Any, list[Diagnostic]] = {}
    for number, diagnostic in enumerate(diagnostics):
        about = diagnostic.of_nodes
        if about is None or diagnostic.labels:
            found[number] = [diagnostic]
        else:
            key = (diagnostic.code.id, diagnostic.severity, about.message, diagnostic.help, diagnostic.file)
            found.setdefault(key, []).append(diagnostic)
    return [_merged(group) for group in found.values()]


def _merged(group: list[Diagnostic]) -> Diagnostic:
    first = group[0]
    nodes = [node for d in group if d.of_nodes is not None for node in d.of_nodes.nodes]
    if first.of_nodes is None or len(nodes) == 1:
        return first
    message = first.of_nodes.message.format(nodes=counted(len(nodes), "node"))
    notes = dict.fromkeys(note for d in group for note in d.notes)
    return replace(first, message=message, notes=tuple(notes), of_nodes=OfNodes(tuple(nodes), first.of_nodes.message))


def render_groups(diagnostics: Iterable[Diagnostic], *, color: bool = False, verbose: bool = False) -> str:
    """Diagnostics as text, grouped: of several nodes their operators and the first names; all if ``verbose``, with the
    sources of what is said. Neighbours with the same help show it once. Those with a place in a source are shown
    there."""
    out, groups = "", grouped(diagnostics)
    for diagnostic, next_one in zip(groups, [*groups[1:], None], strict=True):
        about = diagnostic.of_nodes
        if about is None or diagnostic.labels:
            out += ("\n" if out else "") + render(diagnostic, color=color)
        else:
            out += _group_text(diagnostic, about, painter(color), verbose=verbose)
            if next_one is None or next_one.of_nodes is None or next_one.help != diagnostic.help or next_one.labels:
                out += f"  {painter(color)('=', 'gutter')} help: {_help(diagnostic)}\n"
    return out


def _help(diagnostic: Diagnostic) -> str:
    return diagnostic.help or f"see: dmlc explain {diagnostic.code.id}"


def _group_text(diagnostic: Diagnostic, about: OfNodes, paint: Any, *, verbose: bool) -> str:
    file = f"{diagnostic.file}: " if diagnostic.file else ""
    out = paint(diagnostic.heading, diagnostic.severity) + paint(f": {file}{diagnostic.message}", "bold") + "\n"
    out += "".join(f"  {line}\n" for line in _node_lines(about, verbose=verbose))
    for note in diagnostic.notes if verbose else ():
        out += f"  {paint('=', 'gutter')} note: {note}\n"
    return str(out)


def _node_lines(about: OfNodes, *, verbose: bool) -> list[str]:
    if len(about.nodes) == 1:
        return []
    if verbose:
        return [f"{op} {name}" for op, name in about.nodes]
    operators = Counter(op for op, _ in about.nodes).most_common()
    kinds = ", ".join([f"{number} {op}" for op, number in operators[:_MOST]] + ["..."] * (len(operators) > _MOST))
    names = ", ".join(name for _, name in about.nodes[:_MOST])
    return [f"{kinds}: {names}" + (", ... (-v lists them)" if len(about.nodes) > _MOST else "")]


class WarningJson(TypedDict):
    """A warning in JSON; ``nodes`` are those that it is about, by operator."""

    code: str
    severity: Severity
    message: str
    place: str
    nodes: dict[str, list[str]]
    help: str
    notes: list[str]


def group_json(diagnostic: Diagnostic) -> WarningJson:
    """A diagnostic of ``grouped`` as plain data."""
    by_operator: dict[str, list[str]] = {}
    for op, name in () if diagnostic.of_nodes is None else diagnostic.of_nodes.nodes:
        by_operator.setdefault(op, []).append(name)
    return {
        "code": diagnostic.code.id,
        "severity": diagnostic.severity,
        "message": diagnostic.message,
        "place": diagnostic.place,
        "nodes": by_operator,
        "help": diagnostic.help,
        "notes": list(diagnostic.notes),
    }
