"""Near names for "did you mean"."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(name: object, candidates: Iterable[str]) -> str:
    """``did you mean "x"?`` for the nearest candidate, or an empty string; for what is no text too."""
    near = difflib.get_close_matches(str(name), list(candidates), n=1, cutoff=0.6)
    return f'did you mean "{near[0]}"?' if near else ""
