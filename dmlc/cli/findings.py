"""Findings of a placement report as diagnostics, SARIF 2.1.0 and GitHub workflow commands."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any
from urllib.parse import quote

from dmlc import __version__
from dmlc.diagnostics import CODES, Code, Diagnostic, Edit, Fix, Span, sentences
from dmlc.placement.advice import PLACEMENT_CODES

#: Severities by the names of SARIF and of GitHub.
_SARIF = {"error": "error", "warning": "warning", "advice": "note"}
_GITHUB = {"error": "error", "warning": "warning", "advice": "notice"}
_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def with_fix(diagnostic: Diagnostic, fix: str) -> Diagnostic:
    """The diagnostic with a command that was tried, where it is about a node and an error."""
    if diagnostic.severity != "error" or diagnostic.code not in PLACEMENT_CODES:
        return diagnostic
    help = sentences(f"instead: {diagnostic.help}", f"this does: {fix}") if diagnostic.help else fix
    return replace(diagnostic, help=help)


def _text(diagnostic: Diagnostic) -> str:
    parts = [diagnostic.message, f"help: {diagnostic.help}" if diagnostic.help else "", *diagnostic.notes]
    text = ""
    for part in filter(None, parts):
        text += part if not text else f"{'' if text[-1] in '.?' else '.'} {part}"
    return text


def sarif_text(source: str, diagnostics: Iterable[Diagnostic]) -> str:
    """One run of the tool. Columns are counted in characters, as in every message, not in UTF-16 code units."""
    found = list(diagnostics)
    used = sorted({d.code.id for d in found})
    driver = {"name": "dmlc", "version": __version__, "rules": [_sarif_rule(CODES[id]) for id in used]}
    results = [_sarif_result(source, d, used) for d in found]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return json.dumps({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2) + "\n"


def _sarif_rule(code: Code) -> dict[str, Any]:
    """A code with its page."""
    lines = f"{code.why}\n\nExample:\n\n{code.example}\nFixed:\n\n{code.fixed}"
    fence = "```dml" if code.program else "```"
    blocks = [f"{fence}\n{text}```\n" for text in (code.example, code.fixed)]
    return {
        "id": code.id,
        "shortDescription": {"text": code.title},
        "fullDescription": {"text": code.why},
        "help": {"text": lines, "markdown": f"{code.why}\n\nExample:\n\n{blocks[0]}\nFixed:\n\n{blocks[1]}"},
        "helpUri": _address(code),
        "defaultConfiguration": {"level": _SARIF[code.severity]},
    }


def _address(code: Code) -> str:
    """Return the address of the page of a code; without a site, the name of what ``dmlc explain CODE`` prints."""
    site = site_address()
    return f"{site.rstrip('/')}/reference/codes/{code.id}/" if site else f"urn:dmlc:explain:{code.id}"


@cache
def site_address() -> str:
    """Return the documentation's address among the project URLs in ``pyproject.toml``; empty if there is none."""
    try:
        urls = metadata("dmlc").get_all("Project-URL") or []
    except PackageNotFoundError:  # a copy of the sources that is not installed
        urls = []
    return next((url.partition(", ")[2] for url in urls if url.startswith("Documentation, ")), "")


def _sarif_result(source: str, diagnostic: Diagnostic, used: list[str]) -> dict[str, Any]:
    span, fix = diagnostic.span, diagnostic.fix
    place: dict[str, Any] = {"artifactLocation": _artifact(diagnostic.source_name or source)}
    if span:
        place["region"] = _region(span)
    location: dict[str, Any] = {"physicalLocation": place}
    if diagnostic.of_nodes is not None:
        location["logicalLocations"] = [{"name": name} for _, name in diagnostic.of_nodes.nodes]
    result = {
        "ruleId": diagnostic.code.id,
        "ruleIndex": used.index(diagnostic.code.id),
        "level": _SARIF[diagnostic.severity],
        "message": {"text": _text(diagnostic)},
        "locations": [location],
    }
    others = [label for label in diagnostic.labels[1:] if label.text]
    if others:
        result["relatedLocations"] = [
            {
                "physicalLocation": {
                    "artifactLocation": _artifact(label.span.source.name),
                    "region": _region(label.span),
                },
                "message": {"text": label.text},
            }
            for label in others
        ]
    if fix is not None:
        result["fixes"] = [_sarif_fix(fix)]
    return result


def _sarif_fix(fix: Fix) -> dict[str, Any]:
    by_file: dict[str, list[Edit]] = {}
    for edit in fix.edits:
        by_file.setdefault(edit.span.source.name, []).append(edit)
    changes = [
        {
            "artifactLocation": _artifact(name),
            "replacements": [
                {"deletedRegion": _region(edit.span), "insertedContent": {"text": edit.text}} for edit in edits
            ],
        }
        for name, edits in by_file.items()
    ]
    return {"description": {"text": fix.title}, "artifactChanges": changes, "properties": {"safe": fix.safe}}


def _region(span: Span) -> dict[str, int]:
    """A span; its end is exclusive in SARIF too."""
    return {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }


def _artifact(name: str) -> dict[str, str]:
    return {"uri": quote(name.replace("\\", "/"), errors="surrogateescape")}


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
