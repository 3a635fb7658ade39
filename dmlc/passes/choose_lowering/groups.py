"""The plans in their order.

A group is the plans of one file. Groups run one after another, so that what a plan of one makes is offered to the plans
of those that follow.
"""

from collections.abc import Sequence

from dmlc.passes.choose_lowering import arg, extremes, hardmax, log_sum_exp, norm, reduce, softmax
from dmlc.passes.choose_lowering.plan import Plan

GROUPS: Sequence[Sequence[type[Plan]]] = (
    hardmax.PLANS,
    arg.PLANS,
    extremes.PLANS,
    softmax.PLANS,
    log_sum_exp.PLANS,
    norm.PLANS,
    reduce.PLANS,
)
