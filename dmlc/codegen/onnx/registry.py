"""Which function lowers which operation."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TypeAlias

from dmlc.codegen.onnx.emitter import Emitter
from dmlc.ir import Node, Operation
from dmlc.ops.normalize import LAYER_NORM, LOG_SOFTMAX, RMS_NORM, SOFTMAX
from dmlc.ops.reduce import REDUCTIONS

#: Emits the ONNX nodes of one IR node; returns the name of its result, or of all of them.
Lowering: TypeAlias = Callable[[Emitter, Node], "str | Sequence[str]"]

LOWERINGS: dict[Operation, Lowering] = {}
#: The files with lowerings, common operations first.
FAMILIES = (
    "elementwise",
    "reduce",
    "select",
    "softmax",
    "choose",
    "move",
    "normalize",
    "index",
    "matmul",
    "scan",
    "passed",
    "carried",
)


def lowers(*operations: Operation) -> Callable[[Lowering], Lowering]:
    """Register a function as the lowering of the operations."""

    def register(function: Lowering) -> Lowering:
        for op in operations:
            if op in LOWERINGS:
                raise ValueError(f"{op.name} has two lowerings")
            LOWERINGS[op] = function
        return function

    return register


#: Where those are that rewrites of models make most.
_HOMES = {LAYER_NORM: "normalize", RMS_NORM: "normalize", SOFTMAX: "softmax", LOG_SOFTMAX: "softmax"}
_HOMES |= dict.fromkeys(REDUCTIONS, "reduce")


def lowering_of(op: Operation) -> Lowering | None:
    """The operation's lowering. Families are loaded until one has it: most models need few of them."""
    waiting = iter((_HOMES[op],) if op in _HOMES else FAMILIES)
    while op not in LOWERINGS and (family := next(waiting, None)) is not None:
        importlib.import_module(f"dmlc.codegen.onnx.{family}")
    return LOWERINGS.get(op)
