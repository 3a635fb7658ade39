"""A reduction over axes that an expand broadcast does what it does to equal elements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlc.ir import Graph, Node, Shape, Tensor, Value, product
from dmlc.ops.binary import MUL
from dmlc.ops.constant import CONSTANT, ConstantAttributes
from dmlc.ops.move import EXPAND
from dmlc.ops.reduce import (
    EXTREMES,
    GOES_ON,
    REDUCE_MEAN,
    REDUCE_SUM,
    ReduceAttributes,
)
from dmlc.passes.manager import EXACT, RANGE, REASSOCIATES, PassContext
from dmlc.passes.reduce_rules.fit import reduce_to
from dmlc.passes.reduce_rules.moves import is_unit, reshape_ones
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere
from dmlc.records import dataclass

_ADDING = tuple([op for op, total in GOES_ON.items() if total is REDUCE_SUM])


@dataclass(slots=True, eq=False)
class _ReducedExpandMatch(Match):
    """``axes`` of the expand's operand that are reduced, ``broadcast`` the sizes that its equal elements had.

    ``kept`` is a broadcast axis that is not reduced.
    """

    axes: tuple[int, ...] = ()
    broadcast: Shape = ()
    kept: int | None = None


class DropExpanded(Rule[_ReducedExpandMatch]):
    """A sum of n equal elements becomes their product with n, a max, min or mean of them the element.

    Max and min are ``exact``; so are integer sums where the target's wrap, else they are ``range``. Of floats the
    product rounds once where the sum rounds n - 1 times, and a mean's partial sums cannot overflow any more.
    """

    name = "reduction-of-expand"
    roots = (*_ADDING, REDUCE_MEAN, *EXTREMES)
    fed_by = (EXPAND,)

    def match(self, node: Node, graph: Graph) -> _ReducedExpandMatch | None:
        inner = node.operand(0).producer
        axes = node.attributes_as(ReduceAttributes).axes
        if inner is None or inner.op is not EXPAND:
            return None
        old, new = inner.operand(0).shape, inner.result.shape
        offset = len(new) - len(old)
        found = _ReducedExpandMatch(node, (inner,), tuple([a - offset for a in axes if a >= offset]))
        broadcast = []
        for axis, size in enumerate(new):
            if axis >= offset and old[axis - offset] == size:
                continue
            if axis in axes:
                broadcast.append(size)
            elif not is_unit(graph, size):
                found.kept = axis
        found.broadcast = tuple(broadcast)
        return found if broadcast else None

    def check(self, match: _ReducedExpandMatch, graph: Graph) -> Miss | None:
        root = match.root
        dtype = root.result.type.dtype
        if match.kept is not None:
            return Miss("axis {0} is broadcast too and stays", (match.kept,))
        if any(graph.dims.interval(d)[0] < 1 for d in match.broadcast):
            return Miss("the broadcast axes {0} may have no element", (list(map(str, match.broadcast)),))
        if root.op in _ADDING:
            count = product(match.broadcast)
            if not isinstance(count, int):
                return Miss("how many equal elements are added is not known while compiling: {0}", (count,))
            if count > (int(dtype.highest) if dtype.is_integer else 2 ** (1 + np.finfo(dtype.numpy).nmant)):
                return Miss("{0} does not hold every number up to {1}, the number of equal elements", (dtype, count))
        if root.op is REDUCE_MEAN and dtype.is_integer:
            return Miss("integer sums may overflow on the way to a mean")
        return used_elsewhere(match.consumed[0].result)

    def class_of(self, match: _ReducedExpandMatch, graph: Graph, context: PassContext) -> str:
        if match.root.op in EXTREMES:
            return EXACT
        if match.root.result.type.dtype.is_float:
            return REASSOCIATES
        return EXACT if context.target.wraps_integers else RANGE

    def build(self, match: _ReducedExpandMatch, rewriter: Rewriter) -> Sequence[Value]:
        root, x = match.root, match.consumed[0].operand(0)
        if match.axes:
            record = ReduceAttributes(axes=match.axes, keepdims=False)
            value = reduce_to(rewriter, root.op, x, record, root.result.shape)
        else:  # all that is reduced was not there before, but for the elementwise part
            value = rewriter.add(root.op, [x], ReduceAttributes(axes=(), keepdims=True))
            value = reshape_ones(rewriter, value, root.result.shape)
        if root.op not in _ADDING:
            return [value]
        count = np.asarray(product(match.broadcast), value.type.dtype.numpy)
        return [rewriter.add(MUL, [value, rewriter.add(CONSTANT, (), ConstantAttributes(value=Tensor(count)))])]
