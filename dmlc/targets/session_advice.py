"""Session settings recommended for a target, which a compiled model carries in its metadata."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from dmlc.targets.provider import SessionFacts

#: The name of the fact in a model's metadata.
FACT = "session"
#: The name of the fact that a model need not load, or be right, on other providers than the one it names.
RUNS_ON = "runs_on"
_SCHEMA = 1


def session_advice(
    facts: SessionFacts, dims: Iterable[str], sizes: Mapping[str, Sequence[int]], options: Mapping[str, str]
) -> str:
    """The advice for a provider as one line of JSON, for a model whose inputs declare the open ``dims``.

    ``free_dimensions`` are the dims to fix by name (``add_free_dimension_override_by_name``): with an open size
    DirectML fuses no nodes, and every new shape is compiled again. ``suggested_sizes`` are ``sizes`` of these dims: the
    ends of their declared bounds. ``options`` of the provider are what the model asks for.
    """
    names = sorted(dims)
    suggested = {name: list(sizes[name]) for name in names if name in sizes}
    advice = {
        "schema": _SCHEMA,
        "provider": facts.provider,
        "free_dimensions": names,
        **({"suggested_sizes": suggested} if suggested else {}),
        "provider_options": {**facts.provider_options, **options},
        "session_options": dict(facts.session_options),
    }
    return json.dumps(advice, ensure_ascii=False, separators=(",", ":"))


def provider_options(facts: Iterable[Mapping[str, str]], provider: str) -> dict[str, str]:
    """The options of the provider that all parts of a model ask for, by the facts of each part; none where one of them
    has no advice."""
    found = []
    for text in (each.get(FACT) for each in facts):
        try:
            data = json.loads(text or "{}")
            given = data["provider_options"] if data["provider"] == provider else {}
            found.append({(str(name), str(value)) for name, value in given.items()})
        except (ValueError, KeyError, AttributeError, TypeError):
            return {}
    return dict(sorted(set.intersection(*found))) if found else {}


def free_dimensions(advice: str | None) -> list[str]:
    """The dims to fix; none where a model carries no advice that can be read."""
    try:
        data = json.loads(advice or "{}")
        return [str(name) for name in data["free_dimensions"]] if data.get("schema") == _SCHEMA else []
    except (ValueError, KeyError, AttributeError, TypeError):
        return []
