"""Target facts as data: which kernels exist for which types at which opset."""

from dmlc.targets.dispatch import DispatchRow, dispatch_row, dispatches
from dmlc.targets.kernels import KernelTable, kernel_table
from dmlc.targets.target import Target, load_target, target_names

__all__ = [
    "DispatchRow",
    "KernelTable",
    "Target",
    "dispatch_row",
    "dispatches",
    "kernel_table",
    "load_target",
    "target_names",
]
