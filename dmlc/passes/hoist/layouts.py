"""Rules of ``hoist`` for operations that copy elements: concat and expand."""

from __future__ import annotations

from msgspec.structs import replace

from dmlc.ir import Node
from dmlc.ops.move import EXPAND
from dmlc.ops.reduce import REDUCTIONS, ReduceAttributes
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import KEEP, Lowered, simplifies
from dmlc.passes.rewrite import Miss, used_elsewhere


@simplifies(*REDUCTIONS, fed_by=(EXPAND,))
def reduction_before_expand(e: Sketch, node: Node, y: Term) -> Lowered:
    """reduce_sum(expand(x)) becomes expand(reduce_sum(x)), where axes are broadcast that are not reduced.

    ``exact``: equal groups have equal results. An operand that is broadcast along reduced axes stays
    so, and ``reduction-of-expand`` takes that away.
    """
    inner, record = e.made_by(y, EXPAND), node.attributes_as(ReduceAttributes)
    if inner is None:
        return KEEP
    x, axes = e.of(inner.operand("x")), record.axes
    offset = y.rank - x.rank
    before = (*[1] * offset, *x.shape)
    shape = tuple([size if axis in axes else before[axis] for axis, size in enumerate(y.shape)])  # only these axes
    if shape == y.shape:
        return KEEP
    own = [a for a in axes if a >= offset and x.shape[a - offset] == shape[a] != 1]
    if own and any(a not in own and shape[a] != 1 for a in axes):
        return Miss("axes {0} are reduced and others broadcast: that would be one node more", (own,))
    if reason := used_elsewhere(y.value):
        return reason
    if shape[offset:] == x.shape and all(a >= offset for a in axes):
        record = replace(record, axes=tuple([a - offset for a in axes]))
    elif shape != x.shape:
        x = e.expand(x, shape=shape)
    return e.expand(e(node.op, x, attributes=record), shape=node.result.shape)
