"""A search along an axis that a reshape made of several is one over those."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dmlc.ir import Graph, Node, Value
from dmlc.ops.move import RESHAPE
from dmlc.ops.select import ARGMAX, ARGMIN, ArgAttributes
from dmlc.passes.manager import EXACT
from dmlc.passes.reduce_rules.flattened import axis_groups
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere


@dataclass(slots=True, eq=False)
class _Found(Match):
    axes: tuple[int, ...] | None = None


class FlattenedSelection(Rule[_Found]):
    """argmax over an axis that a reshape merged of neighbours becomes one over several axes, with the same index.

    ``exact``. Only where the result is said natively: ONNX would flatten again.
    """

    name = "flattened-selection"
    roots = (ARGMAX, ARGMIN)
    rewrite_class = EXACT

    def match(self, node: Node, graph: Graph) -> _Found | None:
        inner = node.operand(0).producer
        axes = node.attributes_as(ArgAttributes).axes
        if inner is None or inner.op is not RESHAPE or len(axes) != 1:
            return None
        old, new = inner.operand(0).shape, inner.result.shape
        groups = axis_groups(old, new) if len(old) > len(new) else None
        if groups is None:
            return None
        kept = [g for i, g in enumerate(groups) if i != axes[0]]
        whole = all(last - first == 1 for first, last in kept)
        return _Found(node, (inner,), tuple(range(*groups[axes[0]])) if whole else None)

    def check(self, match: _Found, graph: Graph) -> Miss | None:
        attributes: Any = match.root.attributes
        if match.axes is None or attributes.keepdims:
            return Miss("the reshape merges axes that are kept too")
        return used_elsewhere(match.consumed[0].result)

    def build(self, match: _Found, rewriter: Rewriter) -> Sequence[Value]:
        assert match.axes is not None
        record = dataclasses.replace(match.root.attributes_as(ArgAttributes), axes=match.axes)
        return [rewriter.add(match.root.op, [match.consumed[0].operand(0)], record)]
