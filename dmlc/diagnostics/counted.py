"""Numbers of things in words."""

from __future__ import annotations


def counted(number: int, noun: str) -> str:
    """``1 node``, ``2 nodes``, ``2 axes``, ``2 entries``."""
    if number == 1:
        return f"1 {noun}"
    if noun.endswith("is"):
        return f"{number} {noun[:-2]}es"
    return f"{number} {noun[:-1]}ies" if noun.endswith("try") else f"{number} {noun}s"
