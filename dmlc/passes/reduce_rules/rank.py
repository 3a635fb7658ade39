"""Ranks above what the target takes are brought down by merging neighbouring axes that share a fate."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from dmlc.ir import Graph, Node, Value, product
from dmlc.ops.move import RESHAPE, ReshapeAttributes
from dmlc.ops.normalize import LOG_SOFTMAX, LP_NORM, MEAN_VARIANCE_NORM, SOFTMAX
from dmlc.ops.reduce import REDUCTIONS
from dmlc.ops.scan import CUMPROD, CUMSUM
from dmlc.ops.select import ARGMAX, ARGMIN, HARDMAX, TOP_K
from dmlc.passes.reduce_rules.moves import is_unit
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule
from dmlc.records import dataclass


@dataclass(slots=True, eq=False)
class MergedAxesMatch(Match):
    """``runs`` are the neighbouring axes that become one axis each, ``axes`` the new numbers of the treated ones."""

    runs: tuple[tuple[int, ...], ...] = ()
    axes: tuple[int, ...] = ()


class LowerRank(Rule[MergedAxesMatch]):
    """``reduce(x)`` of a high rank becomes reshape, reduce over merged axes, reshape.

    Row-major order stays, so an index over several axes (``argmax``) counts as before.
    """

    name = "lower-rank"
    optional = False
    roots = (
        *REDUCTIONS,
        ARGMAX,
        ARGMIN,
        HARDMAX,
        SOFTMAX,
        LOG_SOFTMAX,
        MEAN_VARIANCE_NORM,
        TOP_K,
        CUMSUM,
        CUMPROD,
        LP_NORM,
    )

    def __init__(self, max_rank: int) -> None:
        self.max_rank = max_rank

    def match(self, node: Node, graph: Graph) -> MergedAxesMatch | None:
        if node.operand(0).type.rank <= self.max_rank:
            return None
        treated = _axes(node)
        shape = node.operand(0).shape
        # An axis of size 1 may go with either neighbour, unless all treated axes are such.
        free = {i for i, d in enumerate(shape) if is_unit(graph, d)}
        if free.issuperset(treated):
            free = set()
        if hasattr(node.attributes, "axis"):
            free.discard(treated[0])
        runs: list[list[int]] = []
        fates: list[bool | None] = []
        for axis in range(len(shape)):
            fate = None if axis in free else axis in treated
            if runs and (fate is None or fates[-1] is None or fates[-1] is fate):
                runs[-1].append(axis)
                fates[-1] = fate if fates[-1] is None else fates[-1]
            else:
                runs.append([axis])
                fates.append(fate)
        axes = tuple([i for i, fate in enumerate(fates) if fate])
        return MergedAxesMatch(node, runs=tuple([tuple(run) for run in runs]), axes=axes)

    def check(self, match: MergedAxesMatch, graph: Graph) -> Miss | None:
        if len(match.runs) <= self.max_rank:
            return None
        text = "treated and other axes alternate: merging neighbours leaves {0} axes, the limit is {1}"
        return Miss(text, (len(match.runs), self.max_rank), match.root.operand(0))

    def build(self, match: MergedAxesMatch, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        x = root.operand(0)
        merged = tuple([product([x.shape[a] for a in run]) for run in match.runs])
        flat = rewriter.add(RESHAPE, [x], ReshapeAttributes(shape=merged))
        attributes: Any = root.attributes
        changed: dict[str, Any] = {"axis": match.axes[0]} if hasattr(attributes, "axis") else {"axes": match.axes}
        node = rewriter.add_node(root.op, [flat], dataclasses.replace(attributes, **changed))
        return [
            new if new.shape == old.shape else rewriter.add(RESHAPE, [new], ReshapeAttributes(shape=old.shape))
            for new, old in zip(node.results, root.results, strict=True)
        ]


def _axes(node: Node) -> tuple[int, ...]:
    attributes: Any = node.attributes
    return (attributes.axis,) if hasattr(attributes, "axis") else attributes.axes
