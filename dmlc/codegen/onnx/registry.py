"""Registry of the function that lowers each operation."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from typing import TypeAlias

from dmlc.codegen.onnx.emitter import Emitter
from dmlc.ir import Node, Operation

#: Emits the ONNX nodes of one IR node; returns the name of its result, or of all of them.
Lowering: TypeAlias = Callable[[Emitter, Node], "str | Sequence[str]"]

LOWERINGS: dict[Operation, Lowering] = {}
#: The files with lowerings, common operations first.
FAMILIES = ("elementwise", "reduce", "normalize", "move", "index", "passed")


def lowers(*operations: Operation) -> Callable[[Lowering], Lowering]:
    """Register a function as the lowering of the operations."""

    def register(function: Lowering) -> Lowering:
        for op in operations:
            if op in LOWERINGS:
                raise ValueError(f"{op.name} has two lowerings")
            LOWERINGS[op] = function
        return function

    return register


def lowering_of(op: Operation) -> Lowering | None:
    """The operation's lowering. Families are loaded until one has it: most models need few of them."""
    waiting = iter(FAMILIES)
    while op not in LOWERINGS and (family := next(waiting, None)) is not None:
        importlib.import_module(f"dmlc.codegen.onnx.{family}")
    return LOWERINGS.get(op)
