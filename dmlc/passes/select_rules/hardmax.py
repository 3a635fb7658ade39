"""One-hot of the place of the maximum is hardmax."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Graph, Node, Value
from dmlc.ir.dtype import f64
from dmlc.ops.index import ONE_HOT, OneHotAttributes
from dmlc.ops.select import ARGMAX, HARDMAX, ArgAttributes, HardmaxAttributes
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.patterns import made_by
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere


class HardmaxFromOneHot(Rule[Match]):
    """one_hot(argmax(x)) over one axis becomes hardmax(x).

    ``reassociates``, though every number is the same: beside a NaN, where neither is specified, ONNX Runtime's Hardmax
    gives all zeros for a row that begins with it, and one-hot of its ArgMax does not. ``--exact`` keeps the two.
    """

    name = "hardmax-from-one-hot"
    roots = (ONE_HOT,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> Match | None:
        inner = made_by(node.operand(0), ARGMAX)
        return None if inner is None else Match(node, (inner,))

    def check(self, match: Match, graph: Graph) -> Miss | None:
        (inner,) = match.consumed
        hot, arg, x = match.root.attributes_as(OneHotAttributes), inner.attributes_as(ArgAttributes), inner.operand(0)
        if len(arg.axes) != 1 or arg.keepdims:
            return Miss("the index is over axes {0} and keeps them as size 1: {1}", (list(arg.axes), arg.keepdims))
        if arg.ties != "first":
            return Miss("argmax takes the last of equal elements, hardmax the first")
        if hot.axis != arg.axes[0]:
            return Miss("one_hot writes along axis {0}, argmax reads along {1}", (hot.axis, arg.axes[0]))
        if graph.dims.equal(hot.depth, x.shape[hot.axis]) is not True:
            return Miss("one_hot has depth {0}, the axis has size {1}", (hot.depth, x.shape[hot.axis]))
        if hot.on != 1 or hot.off != 0:
            return Miss("its values are {0} and {1}, not 1 and 0", (hot.on, hot.off))
        if hot.dtype is not x.type.dtype or not hot.dtype.is_float or hot.dtype is f64:
            return Miss("one_hot gives {0} of a choice in {1}", (hot.dtype, x.type.dtype))
        return used_elsewhere(inner.result)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        (inner,) = match.consumed
        axes = inner.attributes_as(ArgAttributes).axes
        return [rewriter.add(HARDMAX, [inner.operand(0)], HardmaxAttributes(axes=axes))]
