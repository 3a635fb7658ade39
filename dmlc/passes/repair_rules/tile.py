"""Tile of types that DirectML's TILE does not take."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import FOREIGN, Graph, Node, Value, product
from dmlc.ops.constant import constant_of
from dmlc.ops.move import EXPAND, ExpandAttributes
from dmlc.ops.opaque import OPAQUE, is_opaque
from dmlc.passes.legal_rules.build import Maker, dtype_of
from dmlc.passes.repair_rules.rule import RepairRule
from dmlc.passes.rewrite import Match, Rewriter
from dmlc.targets.directml import operator_rows, refusal


class TileByExpand(RepairRule[Match]):
    """A Tile becomes, for each axis that is repeated, an Expand between two reshapes.

    DirectML's TILE has fewer types than the provider's kernel: f64 is registered, and the session fails. Expand takes
    all types. The tensors in between have three axes.
    """

    name = "tile-by-expand"
    roots = (OPAQUE,)
    repairs = ()

    def match(self, node: Node, graph: Graph) -> Match | None:
        if not is_opaque(node, "Tile") or len(node.operands) != 2 or self.support.kernel("Tile") is None:
            return None
        x, repeats = node.operands
        if x is None or repeats is None or x.type.dtype is FOREIGN or constant_of(repeats) is None:
            return None
        level = self.support.target.feature_level
        row = operator_rows().get("TILE")
        tensors = {"InputTensor": (dtype_of(node).name, None)}
        is_refused = row is not None and level is not None and refusal(row, tensors, level) is not None
        return Match(node) if is_refused and _counts(node) is not None else None

    def describe(self, match: Match) -> str:
        return f"Tile of {dtype_of(match.root)}"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, x = Maker(rewriter), match.root.operand(0)
        for axis, count in enumerate(_counts(match.root) or ()):
            if count == 1:
                continue
            shape = x.shape
            before, after = product(shape[:axis]), product(shape[axis:])
            copies = make(
                EXPAND,
                make.reshape(x, (before, 1, after)),
                attributes=ExpandAttributes(shape=(before, count, after)),
            )
            x = make.reshape(copies, (*shape[:axis], shape[axis] * count, *shape[axis + 1 :]))
        return [x]


def _counts(node: Node) -> list[int] | None:
    """Return the repetitions of each axis, each at least one; None if they are unknown or zero."""
    data = constant_of(node.operand(1))
    if data is None or data.array.shape != (node.operand(0).type.rank,):
        return None
    counts = [int(count) for count in data.array]
    return counts if all(count > 0 for count in counts) else None
