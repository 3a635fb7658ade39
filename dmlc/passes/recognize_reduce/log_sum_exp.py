"""The logarithm of a sum of powers of e, with the maximum taken out or not."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

from dmlc.ir import Graph, Node, Operation, Value
from dmlc.ops.binary import ADD
from dmlc.ops.elementwise import LOG
from dmlc.ops.reduce import REDUCE_LOG_SUM, REDUCE_LOG_SUM_EXP, REDUCE_MAX, ReduceAttributes
from dmlc.passes.canonicalize_reduce.kinds import fit, reduce_to
from dmlc.passes.emitted import no_gain
from dmlc.passes.fuse_softmax.views import MAKERS_OF_LOG_SUM_EXP, log_sum_exp_of
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.patterns import Seen, difference_of, made_by, used_outside
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule


class _LogSumExpMatch(Match, eq=False, kw_only=True):
    """``x`` is what the logarithm of the sum of powers is taken of, over ``axes``."""

    x: Value
    axes: tuple[int, ...]


class _LogSumExpRule(Rule[_LogSumExpMatch]):
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _LogSumExpMatch | None:
        seen: Seen = []
        found = log_sum_exp_of(node.result, seen)
        if found is None or not self.wants(found.x):
            return None
        inside = tuple(dict.fromkeys([n for n in seen if n is not node]))
        return _LogSumExpMatch(node, inside, x=found.x, axes=found.axes)

    def wants(self, x: Value) -> bool:
        """Return whether this rule rewrites the pattern of this ``x``."""
        return True

    def check(self, match: _LogSumExpMatch, graph: Graph) -> Miss | None:
        more = int(fit(graph, match.x.shape, match.axes, match.root.result.shape) is None)
        outside = used_outside(match.consumed, match.root)
        return outside or no_gain(self.context, match, REDUCE_LOG_SUM_EXP, match.x, match.axes, graph, more=more)

    def build(self, match: _LogSumExpMatch, rewriter: Rewriter) -> Sequence[Value]:
        record = ReduceAttributes(axes=match.axes, keepdims=False)
        return [reduce_to(rewriter, REDUCE_LOG_SUM_EXP, match.x, record, match.root.result.shape)]


class LogSumExp(_LogSumExpRule):
    """log(reduce_sum(exp(x))) becomes reduce_log_sum_exp(x).

    ``reassociates``: the same function; where exp(x) left its range, the fused one does not.
    """

    name = "log-sum-exp"
    roots: ClassVar[tuple[Operation, ...]] = (LOG, REDUCE_LOG_SUM)

    def wants(self, x: Value) -> bool:
        parts = difference_of(x, [])
        return parts is None or made_by(parts[1], REDUCE_MAX) is None  # the shifted form has a rule of its own


class ShiftedLogSumExp(_LogSumExpRule):
    """m + log(reduce_sum(exp(x - m))) with m = reduce_max(x) becomes reduce_log_sum_exp(x).

    ``reassociates``. It is known too where an infinite maximum is taken for 0, and where the rest is a log-sum-exp.
    Where a target's own operator does not take the maximum out, as DirectML's, the written form is shorter and stays.
    """

    name = "shifted-log-sum-exp"
    roots: ClassVar[tuple[Operation, ...]] = (ADD,)
    fed_by: ClassVar[Collection[Operation]] = MAKERS_OF_LOG_SUM_EXP
