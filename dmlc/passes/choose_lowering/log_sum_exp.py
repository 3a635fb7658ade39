"""Log-sum-exp: the kernel, which takes each element's power alone, or its parts, which are vectorised."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from dmlc.ir import Graph, Node, Value
from dmlc.ops.reduce import REDUCE_LOG_SUM_EXP, REDUCE_MAX
from dmlc.passes.choose_lowering.plan import Maker, Plan, Sizes, Standing, Step
from dmlc.passes.choose_lowering.reduce import axes_of, chain_steps, home_of, why_not_in_parts
from dmlc.passes.choose_lowering.softmax import one_reduction, shifted_powers
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.primitives import accumulated, log_sum_exp


class LogSumExpAsItStands(Standing):
    """A model's node is one, whatever the opset; what a program says has the maximum taken out."""

    roots = (REDUCE_LOG_SUM_EXP,)

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Step]:
        shape, home = sizes.of(node.operand("x")), home_of(node)
        powers, small = shifted_powers(home, shape, axes_of(node), one_reduction, log=True)
        if self.is_written(node):
            return [Step("ReduceLogSumExp", home, math.prod(shape), small)]
        return [*powers, *[Step("others", home, small, small)] * 3]

    def is_written(self, node: Node) -> bool:
        return node.origin is not None


class LogSumExpInParts(Plan):
    """A log-sum-exp becomes the maximum, powers of what is below it, their sum, its logarithm, and their sum.

    An infinite maximum counts as the largest number, so that no infinity is subtracted from itself.
    """

    name: ClassVar[str] = "log-sum-exp-in-parts"
    roots = (REDUCE_LOG_SUM_EXP,)
    rewrite_class = REASSOCIATES

    def applies(self, node: Node, graph: Graph) -> str | None:
        return why_not_in_parts(self.capabilities, REDUCE_MAX, node, axes_of(node))

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Step]:
        home = home_of(node)
        powers, small = shifted_powers(home, sizes.of(node.operand("x")), axes_of(node), chain_steps, log=True)
        return [*powers, *[Step("others", home, small, small)] * 2]

    def build(self, node: Node, make: Maker) -> Sequence[Value]:
        shape = node.result.shape
        return [accumulated(make, node.operand("x"), lambda x: log_sum_exp(make, x, axes_of(node), shape))]


PLANS: Sequence[type[Plan]] = (LogSumExpAsItStands, LogSumExpInParts)
