"""Near names for "did you mean"."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Sequence

from dmlc.diagnostics.fix import Help, Part, proposal, sentences

#: A shorter name begins too many others to mean one of them.
_SHORTEST_START = 4
#: Names of other case alone are of so many letters; those that one letter differs in are of more.
_SHORTEST_SAFE = 3
_SHORTEST_SLIP = 5
#: Parts of so many letters distinguish names.
_SHORT_PART = 2
#: Other names of the same, which no letters tell: a backend is not called as its target.
_OTHER_NAMES = {
    "directml": ("dml",), "gpu": ("directml", "dml"), "onnxruntime": ("cpu",), "ort": ("cpu",), "np": ("numpy",),
}  # fmt: skip


def did_you_mean(name: object, candidates: Iterable[str]) -> str:
    """Return ``did you mean "x"?`` for the nearest candidate, or an empty string; for what is not a text too.

    A candidate that begins with the name is nearer than one that is spelled alike.
    """
    return str(suggestion(name, candidates))


def suggestion(
    name: object,
    candidates: Iterable[str],
    at: Part = None,
    *,
    then: str = "",
    spelled: Callable[[str], str] = str,
) -> Help:
    """``did_you_mean`` with the change that writes the candidate, as ``spelled`` writes it.

    Letters of the wrong case count as right. ``then`` follows the question, and is the help without a candidate. The
    change is safe if the name is a slip of exactly one candidate.
    """
    text, known = str(name), list(dict.fromkeys(candidates))
    begun = [candidate for candidate in known if len(text) >= _SHORTEST_START and candidate.startswith(text)]
    folded: dict[str, str] = {}
    for candidate in begun or known:
        folded.setdefault(candidate.casefold(), candidate)
    near = [other for other in _OTHER_NAMES.get(text.casefold(), ()) if other in known][:1]
    near = near or difflib.get_close_matches(text.casefold(), folded, n=1, cutoff=0.0 if begun else 0.6)
    if not near:
        return then
    meant = text if text in known else folded.get(near[0], near[0])
    return proposal(sentences(f'did you mean "{meant}"?', then), spelled(meant), at, safe=_is_slip(text, meant, known))


def nearest(name: str, candidates: Iterable[str], most: int) -> str:
    """Return the candidate that differs from the name in fewest letters, at most ``most``; empty where none is so near.

    Names of less than six letters differ in one.
    """
    found = min(((_distance(name, other), other) for other in candidates), default=(0, ""))
    letters = len(name.strip("-"))
    return found[1] if found[0] <= min(most, max(letters // 3, 1)) else ""


def _is_slip(name: str, meant: str, known: Sequence[str]) -> bool:
    """Return true if a name is a misspelling of this one candidate and of no other.

    In a name of five letters or more one letter is wrong, missing, doubled or swapped. It is neither the first one nor
    a digit: short words, first letters and numbers distinguish names (``sin`` and ``sinh``, ``stack`` and ``hstack``),
    and so does a part of two letters behind a ``_`` (``left_on`` and ``left_in``). Names that differ in upper and lower
    case alone are nearer than all others.
    """
    alike = [other for other in known if other.casefold() == name.casefold()]
    if alike and len(name) >= _SHORTEST_SAFE:
        return alike == [meant]
    if min(len(name), len(meant)) < _SHORTEST_SLIP or name[0].casefold() != meant[0].casefold():
        return False
    close = [other for other in known if abs(len(other) - len(name)) <= 1 and _distance(name, other) <= 1]
    return close == [meant] and re.findall(r"\d", name) == re.findall(r"\d", meant) and not _is_short_part(name, meant)


def _is_short_part(name: str, meant: str) -> bool:
    """True if two names of equal length differ in a part of one or two letters."""
    parts = list(zip(name.split("_"), meant.split("_"), strict=False))
    return len(name) == len(meant) and any(a != b and max(len(a), len(b)) <= _SHORT_PART for a, b in parts)


def _distance(a: str, b: str) -> int:
    """The number of letters to insert, remove, replace or swap with their neighbour, upper and lower case alike."""
    a, b = a.casefold(), b.casefold()
    before: list[int] = []
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, last, row = row, before, [i]
        for j, y in enumerate(b, 1):
            row.append(min(row[-1] + 1, before[j] + 1, before[j - 1] + (x != y)))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                row[-1] = min(row[-1], last[j - 2] + 1)
    return row[-1]
