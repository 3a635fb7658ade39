"""Target facts as data: which kernels exist for which types at which opset."""

from dmlc.targets.dispatch import dispatch_cost, dispatch_row, dispatches
from dmlc.targets.kernel_rows import KernelTable
from dmlc.targets.kernels import kernel_table, operators_of
from dmlc.targets.target import Target, TargetFacts, TargetName, load_target, target_names

__all__ = [
    "KernelTable",
    "Target",
    "TargetFacts",
    "TargetName",
    "dispatch_cost",
    "dispatch_row",
    "dispatches",
    "kernel_table",
    "load_target",
    "operators_of",
    "target_names",
]
