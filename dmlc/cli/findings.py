"""Findings of a placement report as diagnostics, SARIF 2.1.0 and GitHub workflow commands."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote

from dmlc import __version__
from dmlc.diagnostics import CODES, Diagnostic, Label, Source, Span
from dmlc.placement.advice import PLACEMENT_CODES, diagnose
from dmlc.placement.report import Placement

#: Severities by the names of SARIF and of GitHub.
_SARIF = {"error": "error", "warning": "warning", "advice": "note"}
_GITHUB = {"error": "error", "warning": "warning", "advice": "notice"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def diagnostics_of(report: Placement, *, locations: Mapping[str, str], source: Source) -> list[Diagnostic]:
    """Each finding as a diagnostic with its place, where that is known."""
    out = []
    for name, diagnostic in diagnose(report):
        span = _span(locations.get(name), source)
        out.append(replace(diagnostic, labels=(Label(span, "this node"),)) if span else diagnostic)
    return out


def with_fix(diagnostic: Diagnostic, fix: str) -> Diagnostic:
    """The diagnostic with a command that was tried, where it is about a node and an error."""
    if diagnostic.severity != "error" or diagnostic.code not in PLACEMENT_CODES:
        return diagnostic
    return replace(diagnostic, help=f"{diagnostic.help}; this does: {fix}" if diagnostic.help else fix)


def _span(location: str | None, source: Source) -> Span | None:
    if not location:
        return None
    _, line, column = location.rsplit(":", 2)
    return Span(source, int(line), int(column), int(line), int(column) + 1)


def _text(diagnostic: Diagnostic) -> str:
    parts = [diagnostic.message, f"help: {diagnostic.help}" if diagnostic.help else "", *diagnostic.notes]
    return ". ".join(filter(None, parts))


def sarif_text(source: str, diagnostics: Iterable[Diagnostic]) -> str:
    """One run of the tool."""
    found = list(diagnostics)
    used = sorted({d.code.id for d in found})
    rules = [
        {"id": id, "shortDescription": {"text": CODES[id].title}, "fullDescription": {"text": CODES[id].why}}
        for id in used
    ]
    driver = {"name": "dmlc", "version": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "results": [_sarif_result(source, d, used) for d in found]}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _sarif_result(source: str, diagnostic: Diagnostic, used: list[str]) -> dict[str, Any]:
    span = diagnostic.span
    name = (diagnostic.source_name or source).replace("\\", "/")
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(name, errors="surrogateescape")}}
    if span:
        place["region"] = {"startLine": span.line, "startColumn": span.column}
    return {
        "ruleId": diagnostic.code.id,
        "ruleIndex": used.index(diagnostic.code.id),
        "level": _SARIF[diagnostic.severity],
        "message": {"text": _text(diagnostic)},
        "locations": [{"physicalLocation": place}],
    }


def github_text(source: str, diagnostics: Iterable[Diagnostic]) -> str:
    """A workflow command a line."""
    lines = []
    for d in diagnostics:
        span = d.span
        fields = {"file": d.source_name or source, "line": span and span.line, "col": span and span.column}
        told = [f"{key}={_property(str(value))}" for key, value in fields.items() if value]
        lines.append(
            f"::{_GITHUB[d.severity]} {','.join([*told, f'title={_property(d.code.id)}'])}::{_escape(_text(d))}\n"
        )
    return "".join(lines)


def _escape(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escape(text).replace(":", "%3A").replace(",", "%2C")
