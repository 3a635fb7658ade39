"""Numbers of things in words."""

from __future__ import annotations

from collections.abc import Sequence


def counted(number: object, noun: str) -> str:
    """``1 node``, ``2 nodes``, ``2 axes``, ``2 copies``, ``2 passes``."""
    return f"{number} {plural(noun) if number != 1 else noun}"


def plural(noun: str) -> str:
    """The noun for several things."""
    if noun.endswith("is"):
        return f"{noun[:-2]}es"
    if noun.endswith("y") and noun[-2] not in "aeou":
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x", "ch", "sh")) else f"{noun}s"


def first_of(names: Sequence[object], most: int, between: str = ", ") -> str:
    """The first names of many, and how many more there are: ``a, b and 7 more``."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return between.join(map(str, names[:most])) + more
