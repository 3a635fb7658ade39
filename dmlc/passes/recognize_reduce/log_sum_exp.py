"""The logarithm of a sum of powers of e, with the maximum taken out or not."""

from __future__ import annotations

from dmlc.ir import Node
from dmlc.ops.binary import ADD
from dmlc.ops.elementwise import LOG
from dmlc.ops.reduce import REDUCE_LOG_SUM, REDUCE_LOG_SUM_EXP, REDUCE_MAX, ReduceAttributes
from dmlc.passes.canonicalize_reduce.kinds import fit, reduce_to
from dmlc.passes.emitted import why_no_gain
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.fuse_softmax.views import MAKERS_OF_LOG_SUM_EXP, log_sum_exp_of
from dmlc.passes.lowering import KEEP, Lowered, simplifies
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.patterns import Seen, difference_of, made_by, used_outside


def _log_sum_exp(e: Sketch, node: Node, *, shifted: bool) -> Lowered:
    seen: Seen = []
    found = log_sum_exp_of(node.result, seen)
    if found is None:
        return KEEP
    parts, target = None if shifted else difference_of(found.x, []), node.result.shape
    if parts is not None and made_by(parts[1], REDUCE_MAX) is not None:
        return KEEP  # shifted-log-sum-exp takes the shifted form
    e.taken += [n for n in seen if n is not node]
    more = int(fit(e.graph, found.x.shape, found.axes, target) is None)
    outside = used_outside(e.taken, node) or why_no_gain(e, node, REDUCE_LOG_SUM_EXP, found.x, found.axes, more=more)
    record = ReduceAttributes(axes=found.axes, keepdims=False)
    return outside or reduce_to(e, REDUCE_LOG_SUM_EXP, found.x, record, target)


@simplifies(LOG, REDUCE_LOG_SUM, gives=REASSOCIATES)
def log_sum_exp(e: Sketch, node: Node, x: Term) -> Lowered:
    """log(reduce_sum(exp(x))) becomes reduce_log_sum_exp(x).

    ``reassociates``: the same function; where exp(x) left its range, the fused one does not.
    """
    return _log_sum_exp(e, node, shifted=False)


@simplifies(ADD, fed_by=MAKERS_OF_LOG_SUM_EXP, gives=REASSOCIATES)
def shifted_log_sum_exp(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """m + log(reduce_sum(exp(x - m))) with m = reduce_max(x) becomes reduce_log_sum_exp(x).

    ``reassociates``. It is known too where an infinite maximum is taken for 0, and where the rest is a log-sum-exp.
    Where a target's own operator does not take the maximum out, as DirectML's, the written form is shorter and stays.
    """
    return _log_sum_exp(e, node, shifted=True)
