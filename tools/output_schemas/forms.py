"""Short spellings of JSON Schema (draft 2020-12): a record has exactly the fields that it names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

Form: TypeAlias = "dict[str, Any]"

TEXT: Form = {"type": "string"}
COUNT: Form = {"type": "integer", "minimum": 0}
NUMBER: Form = {"type": "integer"}
FLAG: Form = {"type": "boolean"}
#: JSON has no NaN and no infinities: they are texts.
REAL: Form = {"anyOf": [{"type": "number"}, {"enum": ["nan", "inf", "-inf"]}]}
SECONDS: Form = {"type": "number", "minimum": 0}
#: A size, or a count of a model with open dims: a number or a formula.
SIZE: Form = {"type": ["integer", "string"]}
NOTHING: Form = {"type": "null"}


def words(*names: str) -> Form:
    """One of these texts."""
    return {"enum": list(names)}


def either(*forms: Form) -> Form:
    """A value of one of these forms."""
    return {"anyOf": list(forms)}


def maybe(form: Form) -> Form:
    """A value of the form, or null."""
    return either(form, NOTHING)


def rows(form: Form) -> Form:
    """A list."""
    return {"type": "array", "items": form}


def by_name(form: Form) -> Form:
    """An object whose keys are names of the user's or of an operator."""
    return {"type": "object", "additionalProperties": form}


def ref(name: str) -> Form:
    """A shared form."""
    return {"$ref": f"#/$defs/{name}"}


def record(fields: Mapping[str, Form], *, title: str = "", **optional: Form) -> Form:
    """An object with these fields, and those of ``optional`` where they apply; no others."""
    head = {"title": title} if title else {}
    return {
        **head,
        "type": "object",
        "properties": {**fields, **optional},
        "required": list(fields),
        "additionalProperties": False,
    }


TEXTS: Form = rows(TEXT)
