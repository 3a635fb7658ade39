"""Near names for "did you mean"."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

#: A shorter name begins too many others to mean one of them.
_SHORTEST_START = 4


def did_you_mean(name: object, candidates: Iterable[str]) -> str:
    """Return ``did you mean "x"?`` for the nearest candidate, or an empty string; for what is not a text too.

    A candidate that begins with the name is nearer than one that is spelled alike.
    """
    text, known = str(name), list(candidates)
    begun = [candidate for candidate in known if len(text) >= _SHORTEST_START and candidate.startswith(text)]
    near = difflib.get_close_matches(text, begun or known, n=1, cutoff=0.0 if begun else 0.6)
    return f'did you mean "{near[0]}"?' if near else ""
