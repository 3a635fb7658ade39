"""Placement of one node: a row of the report."""

from __future__ import annotations

from dmlc.ir import Dim
from dmlc.placement.node import PROVIDER, Finding
from dmlc.records import dataclass


@dataclass(slots=True)
class NodePlacement:
    """One node. ``where`` is provider, cpu, folded or unknown; ``why`` says it in words.

    ``directml`` are the operators it becomes, ``level`` the first feature level that suffices for them (None: no table
    says). ``partition`` is the number of its fused graph, None where it runs alone, because of ``alone``.
    """

    name: str
    op: str
    where: str
    why: str
    directml: tuple[str, ...] = ()
    level: str | None = None
    alone: str = ""
    partition: int | None = None
    dispatches: Dim | None = 0
    bytes: Dim | None = 0
    findings: tuple[Finding, ...] = ()
    source: str = ""

    @property
    def verdict(self) -> str:
        """One line."""
        first = next((f for f in self.findings if f.effect in ("fails", "wrong")), None)
        if first is not None:
            return f"{'fails' if first.effect == 'fails' else 'wrong numbers'}: {first.limit}"
        if self.where == PROVIDER:
            return f"runs alone: {self.alone}" if self.alone else "in a fused graph"
        return self.why
