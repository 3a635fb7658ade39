"""JSON Schemas of the documents that commands print, made from the records that they are written from.

The module of each command names the records of its documents in ``ANSWERS``, or returns them from ``answers()`` if they
take long to load. ``FAILURE`` is that of its failures if they have more fields.
"""

from __future__ import annotations

import json
from importlib import import_module
from inspect import cleandoc
from typing import Any, Literal, NotRequired, TypedDict

from msgspec.json import schema_components

from dmlc.diagnostics.grouping import WarningJson
from dmlc.diagnostics.render import DiagnosticJson


class Envelope(TypedDict):
    """Fields of every document. ``warnings`` are the ``diagnostics`` of that severity, grouped."""

    schema: Literal[1]
    command: str
    ok: bool
    diagnostics: list[DiagnosticJson]
    warnings: list[WarningJson]


class CommandFailure(TypedDict):
    """A failure; ``source`` is the file, in a document of several, and ``message`` says what is wrong usage."""

    exit_code: int
    source: NotRequired[str]
    message: NotRequired[str]


def schema_of(verb: str) -> dict[str, Any]:
    """Return the schema (draft 2020-12) of the document of ``dmlc VERB --format json``."""
    module = import_module(f"dmlc.cli.{verb}")
    answers = module.answers() if hasattr(module, "answers") else module.ANSWERS
    kinds = [*answers, getattr(module, "FAILURE", CommandFailure)]
    (_, *refs), forms = schema_components([Envelope, *kinds], ref_template="#/$defs/{name}")
    envelope = forms.pop("Envelope")
    envelope["properties"]["command"] = {"const": verb}
    for kind in kinds:
        form = forms[kind.__name__]
        form["properties"] = {**envelope["properties"], **form["properties"]}
        form["required"] = list(dict.fromkeys([*envelope["required"], *form.get("required", ())]))
    for form in forms.values():
        form["description"] = cleandoc(form["description"])
        for name, field in form["properties"].items():
            if "default" in field:  # it is written all the same
                form["required"].append(name)
                del field["default"]
        form["additionalProperties"] = False
    several = {
        "title": "Several files",
        "type": "object",
        "properties": {"schema": {"const": 1}, "files": {"type": "array", "items": {"$ref": "#/$defs/Document"}}},
        "required": ["schema", "files"],
        "additionalProperties": False,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"dmlc {verb} --format json",
        "anyOf": [{"$ref": "#/$defs/Document"}, several],
        "$defs": {"Document": {"anyOf": refs}, **forms},
    }


def schema_text(verb: str) -> str:
    """Return the schema as text."""
    return json.dumps(schema_of(verb), indent=1) + "\n"
