"""Near misses of a compilation: rules that matched and did not fire, first those that would save most."""

from __future__ import annotations

from functools import cache

from msgspec import Struct

from dmlc import api
from dmlc.cli.rule_page import example_of
from dmlc.diagnostics import Span
from dmlc.passes.manager import Remark


class NearMiss(Struct, frozen=True):
    """A rule that did not fire at a node, why, and the source places.

    ``saves`` is how many nodes it would have saved; None where only a part of its pattern is there.
    """

    rule: str
    node: str
    reason: str
    spans: tuple[Span, ...]
    saves: int | None


def near_misses(program: api.Program) -> list[NearMiss]:
    """The near misses of a program, each once: passes that run twice report twice."""
    found = {(r.rule, r.node, r.reason()): r for r in program.remarks if not r.chosen}
    made = [NearMiss(*key, remark.spans, _saves(remark)) for key, remark in found.items()]
    return sorted(made, key=lambda miss: -1 if miss.saves is None else miss.saves, reverse=True)


def _saves(remark: Remark) -> int | None:
    """Return what the rule knows, else the nodes that would go less those that the rule makes of its example."""
    if remark.saves is not None or not remark.takes:
        return remark.saves
    return max(0, remark.takes - _made(remark.rule))


@cache
def _made(rule: str) -> int:
    """The fewest nodes that a rewrite of the rule's example makes, 1 without an example."""
    example = example_of(rule)
    entries = [] if example is None else [e for e in example.compiled().ledger if e.rule == rule and e.before]
    return min([len(entry.after) for entry in entries], default=1)
