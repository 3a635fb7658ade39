"""``f16-advice``: warns of f16 intermediates that may overflow before a sum or a mean; a proof silences it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

from dmlc.diagnostics import Diagnostic, Label
from dmlc.diagnostics.catalogue.advice import F16_OVERFLOW
from dmlc.ir import Graph, Node, Value
from dmlc.ops.binary import POW
from dmlc.passes.accumulate_f32 import AccumulationRegion, find_regions, is_square
from dmlc.passes.manager import Pass, PassContext
from dmlc.passes.patterns import scalar_of

if TYPE_CHECKING:
    from dmlc.passes.intervals import Intervals


class F16Advice(Pass, frozen=True):
    """Changes nothing. A fused graph sums f16 in a wider type, but products before the sum are rounded to f16.

    A node that runs alone may also sum in f16 (``dmlc.placement.dependence``); the placement report says so.
    """

    name: ClassVar[str] = "f16-advice"
    summary: ClassVar[str] = "Warn of f16 squares and products that may overflow."

    def run(self, graph: Graph, context: PassContext) -> bool:
        if not context.target.native_f16 or context.target.provider is None:
            return False
        regions = find_regions(graph)
        if regions:
            from dmlc.passes.intervals import Intervals

            intervals, told = Intervals(graph), set[Node]()
            for region in regions:
                guilty = _guilty(region, intervals)
                if guilty is not None and guilty not in told:
                    told.add(guilty)
                    context.diagnostics.append(_diagnostic(guilty, region))
        return False


def _guilty(region: AccumulationRegion, intervals: Intervals) -> Node | None:
    """The first product that is not known to stay within f16."""
    for node in region.products:
        if not all(map(math.isfinite, intervals.of(node.result))):
            return node
    return None


def _diagnostic(node: Node, region: AccumulationRegion) -> Diagnostic:
    root = region.root
    before = f"before its {root.op.name}"
    if node is root:
        what, before = f"the sum of squares of {_text(node.operand('x'))}", "before what follows makes it smaller"
    elif is_square(node):
        what = f"the square of {_text(node.operand('a'))}"
    elif node.op is POW:
        what = f"{_text(node.operand('a'))} ** {scalar_of(node.operand('b')):g}"
    else:
        what = f"the product of {_text(node.operand('a'))} and {_text(node.operand('b'))}"
    limit = "the largest f16 is 65504, the square of 255.9" if is_square(node) else "the largest f16 is 65504"
    message = f"{what} may overflow f16 {before}: {limit}"
    labels = [Label(span, "this is f16") for span in node.spans[:1]]
    labels += [Label(span, f"the {root.op.name}") for span in root.spans[:1] if root is not node]
    return Diagnostic(F16_OVERFLOW, message, tuple(labels), help="--accumulate f32 computes it in f32")


def _text(value: Value) -> str:
    """The value as a user knows it."""
    if value.name is not None:
        return value.name
    return f"the {value.producer.op.name}" if value.producer is not None else "an input"
