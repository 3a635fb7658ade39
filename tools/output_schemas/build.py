"""A verb's schema: its documents, the failure, and the document of several files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dmlc.cli.console import SCHEMA
from tools import ROOT
from tools.output_schemas.forms import COUNT, FLAG, TEXT, Form, record, ref, rows
from tools.output_schemas.shared import SHARED
from tools.output_schemas.verbs import OF_FAILURES, VERBS

FOLDER: Path = ROOT / "dmlc" / "schemas"


def schema_of(verb: str) -> Form:
    """The schema of what ``dmlc VERB --format json`` prints."""
    head: dict[str, Form] = {"schema": {"const": SCHEMA}, "command": {"const": verb}, "ok": FLAG}
    tail: dict[str, Form] = {"diagnostics": rows(ref("diagnostic")), "warnings": rows(ref("warning_group"))}
    documents = [
        record({**head, **fields, **tail}, title=title, **optional) for title, (fields, optional) in VERBS[verb].items()
    ]
    failed = {**head, "ok": {"const": False}, "exit_code": COUNT, **tail}
    documents.append(record(failed, title="a failure", source=TEXT, message=TEXT, **OF_FAILURES.get(verb, {})))
    one: Form = {"anyOf": documents}
    several = record({"schema": {"const": SCHEMA}, "files": rows(ref("document"))}, title="several files")
    forms = {**SHARED, "document": one}
    body: Form = {"anyOf": [ref("document"), several]}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"dmlc {verb} --format json",
        **body,
        "$defs": _used({**body}, forms),
    }


def _used(body: Form, forms: dict[str, Form]) -> dict[str, Form]:
    """The shared forms that the body refers to, and those that these do."""
    found: set[str] = set()
    waiting: list[Any] = [body]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            name = str(value.get("$ref", "")).rpartition("/")[2]
            if name and name not in found:
                found.add(name)
                waiting.append(forms[name])
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
    return {name: forms[name] for name in sorted(found)}


def files() -> dict[Path, str]:
    """The text of each file."""
    return {FOLDER / f"{verb}.json": json.dumps(schema_of(verb), indent=1) + "\n" for verb in VERBS}
