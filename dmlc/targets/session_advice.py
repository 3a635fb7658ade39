"""Session settings recommended for a target, which a compiled model carries in its metadata."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

#: The name of the fact in a model's metadata.
FACT = "session"
#: The name of the fact that a model need not load, or be right, on other providers than the one it names.
RUNS_ON = "runs_on"
PROVIDER = "DmlExecutionProvider"
_SCHEMA = 1


def session_advice(dims: Iterable[str], sizes: Mapping[str, Sequence[int]]) -> str:
    """The advice for the DirectML provider as one line of JSON, for a model whose inputs declare the open ``dims``.

    ``free_dimensions`` are the dims to fix by name (``add_free_dimension_override_by_name``): with an open size no
    nodes are fused, and every new shape is compiled again. ``suggested_sizes`` are ``sizes`` of these dims: the ends of
    their declared bounds. The provider demands sequential execution without a memory pattern; of its options none is
    needed.
    """
    names = sorted(dims)
    suggested = {name: list(sizes[name]) for name in names if name in sizes}
    advice = {
        "schema": _SCHEMA,
        "provider": PROVIDER,
        "free_dimensions": names,
        **({"suggested_sizes": suggested} if suggested else {}),
        "provider_options": {},
        "session_options": {"enable_mem_pattern": False, "execution_mode": "ORT_SEQUENTIAL"},
    }
    return json.dumps(advice, ensure_ascii=False, separators=(",", ":"))


def free_dimensions(advice: str | None) -> list[str]:
    """The dims to fix; none where a model carries no advice that can be read."""
    try:
        data = json.loads(advice or "{}")
        return [str(name) for name in data["free_dimensions"]] if data.get("schema") == _SCHEMA else []
    except (ValueError, KeyError, AttributeError, TypeError):
        return []
