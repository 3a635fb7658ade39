"""Log-sum-exp: the kernel, which takes each element's power alone, or its parts, which are vectorised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from dmlc.ir import Graph, Node, Operation, Value
from dmlc.ops.reduce import REDUCE_LOG_SUM_EXP, REDUCE_MAX
from dmlc.passes.choose_lowering.plan import Maker, Plan, Sizes, Standing, Step
from dmlc.passes.choose_lowering.reduce import axes_of, chain_steps, home_of, why_not_in_parts
from dmlc.passes.choose_lowering.softmax import shifted_powers
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.primitives import log_sum_exp


class LogSumExpAsItStands(Standing):
    """One node. The maximum is taken out of all others before."""

    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_LOG_SUM_EXP,)

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Step]:
        shape, home, axes = sizes.of(node.operand("x")), home_of(node), axes_of(node)
        small = math.prod(shape) // max(math.prod([shape[a] for a in axes]), 1)
        return [Step("ReduceLogSumExp", home, math.prod(shape), small)]


class LogSumExpInParts(Plan):
    """A log-sum-exp becomes the maximum, powers of what is below it, their sum, its logarithm, and their sum.

    An infinite maximum counts as the largest number, so that no infinity is subtracted from itself.
    """

    name: ClassVar[str] = "log-sum-exp-in-parts"
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_LOG_SUM_EXP,)
    rewrite_class = REASSOCIATES

    def applies(self, node: Node, graph: Graph) -> str | None:
        return why_not_in_parts(self.capabilities, REDUCE_MAX, node, axes_of(node))

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Step]:
        home = home_of(node)
        powers, small = shifted_powers(home, sizes.of(node.operand("x")), axes_of(node), chain_steps, log=True)
        return [*powers, *[Step("others", home, small, small)] * 2]

    def build(self, node: Node, make: Maker) -> Sequence[Value]:
        return [log_sum_exp(make, node)]


PLANS: Sequence[type[Plan]] = (LogSumExpAsItStands, LogSumExpInParts)
