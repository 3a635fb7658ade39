"""Near names for "did you mean"."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """``did you mean "x"?`` for the nearest candidate, or an empty string."""
    near = difflib.get_close_matches(name, list(candidates), n=1, cutoff=0.6)
    return f'did you mean "{near[0]}"?' if near else ""
