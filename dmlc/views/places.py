"""Words and signs for the places where nodes run: a label, a letter and a line style beside each colour."""

from __future__ import annotations

from msgspec import Struct

from dmlc.placement.node import CPU, FOLDED, PROVIDER, NodePlacement

FUSED, ALONE, ON_CPU, LOADING, NOT_KNOWN = "fused", "gpu", "cpu", "folded", "unknown"
FAULTY, PLAIN, INPUT, OUTPUT = "bad", "plain", "in", "out"


class NodePlace(Struct, frozen=True):
    """A place: its words, the letter in the picture, the style of the line around a node, and two pairs of colours.

    ``light`` and ``dark`` are the colour of the line, of letters and of the field, each as ``#rrggbb``.
    """

    label: str
    letter: str
    dash: str
    light: tuple[str, str]
    dark: tuple[str, str]


#: The places by key, the best first.
PLACES = {
    FUSED: NodePlace("GPU, fused", "F", "", ("#146c43", "#d9f2e4"), ("#5dd39e", "#12352a")),
    ALONE: NodePlace("GPU, one at a time", "G", "", ("#1d4fbf", "#dfe9ff"), ("#86b1ff", "#182a4d")),
    ON_CPU: NodePlace("CPU", "C", "5 3", ("#9a4700", "#ffe7d1"), ("#ffb066", "#43290f")),
    LOADING: NodePlace("folded while loading", "L", "1.5 2.5", ("#59636e", "#eceff2"), ("#a3adb8", "#252a31")),
    NOT_KNOWN: NodePlace("not known", "?", "8 3 2 3", ("#6f3bb8", "#efe6fd"), ("#c39bff", "#32214d")),
    FAULTY: NodePlace("fails or gives wrong numbers", "!", "2 2", ("#b3161f", "#ffdfe0"), ("#ff8f94", "#4a171b")),
    PLAIN: NodePlace("no placement for this target", "", "", ("#59636e", "#f3f5f7"), ("#a3adb8", "#252a31")),
    INPUT: NodePlace("input", "", "", ("#59636e", "#ffffff"), ("#a3adb8", "#15181c")),
    OUTPUT: NodePlace("output", "", "", ("#59636e", "#ffffff"), ("#a3adb8", "#15181c")),
}


def place_of(row: NodePlacement | None) -> str:
    """Return the key of the place of a node; ``PLAIN`` for a target whose placement is not known."""
    if row is None:
        return PLAIN
    if any(finding.effect in ("fails", "wrong") for finding in row.findings):
        return FAULTY
    if row.where == PROVIDER:
        return FUSED if row.is_fused else ALONE
    return {CPU: ON_CPU, FOLDED: LOADING}.get(row.where, NOT_KNOWN)
