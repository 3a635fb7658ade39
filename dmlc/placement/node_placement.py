"""Placement of one node: a row of the report."""

from __future__ import annotations

from msgspec import Struct

from dmlc.ir import Dim
from dmlc.placement.node import OF_SHAPES, OPEN_SIZES, PROVIDER, Finding, Looked

#: The numbers of a node of f16 that is not fused may be those of sums in f16; in a fused graph they never are.
HALF = "not fused, it may compute in f16"


class NodePlacement(Struct):
    """One node. ``where`` is provider, cpu, folded or unknown; ``why`` says it in words.

    ``directml`` are the operators it becomes, ``level`` the first feature level that suffices for them (None: no table
    says). ``partition`` is the number of its fused graph, None where it is not fused, because of ``alone``.
    ``hangs_on`` says what the placement and the numbers depend on besides the model: types and the feature level of
    the device, the release of onnxruntime, dynamic sizes.
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
    source: str | None = ""
    hangs_on: tuple[str, ...] = ()

    @property
    def is_fused(self) -> bool:
        return self.partition is not None

    @property
    def verdict(self) -> str:
        """One line."""
        first = next((f for f in self.findings if f.effect in ("fails", "wrong")), None)
        if first is not None:
            return f"{'fails' if first.effect == 'fails' else 'wrong numbers'}: {first.limit}"
        if self.where == PROVIDER:
            return f"not fused: {self.alone}" if self.alone else "in a fused graph" if self.is_fused else self.why
        return self.why


def hangs_on(row: NodePlacement, looked: Looked) -> tuple[str, ...]:
    """List what the placement and the numbers of a node depend on besides the model, a few words each."""
    if row.where != PROVIDER:
        return (*looked.depends_on, *(("dynamic sizes",) if row.why == OF_SHAPES else ()))
    sizes = (row.alone,) if row.alone.startswith(OPEN_SIZES) else ()
    return (*looked.depends_on, *sizes, *((HALF,) if row.alone and looked.half else ()))
