"""``empty-advice``: warns of what DirectML leaves unwritten where a size is 0 at run time."""

from __future__ import annotations

from typing import ClassVar

from dmlc.diagnostics import Diagnostic, Label
from dmlc.diagnostics.catalogue.advice import MAY_BE_EMPTY
from dmlc.ir import Graph, Node, Value, substitute
from dmlc.ops.index import SCATTER_ELEMENTS
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import CONCAT, PAD
from dmlc.ops.reduce import REDUCTIONS
from dmlc.ops.select import SELECTIONS
from dmlc.passes.manager import Pass, PassContext
from dmlc.targets.provider import provider

#: Operations whose result may have elements where an operand has none.
_GIVE_SOMETHING = (*REDUCTIONS, *SELECTIONS, MATMUL, CONCAT, PAD, SCATTER_ELEMENTS)


class EmptyAdvice(Pass, frozen=True):
    """Changes nothing. Sizes of imported models are not declared: nothing is reported about them."""

    name: ClassVar[str] = "empty-advice"
    summary: ClassVar[str] = "Warn of operands that may be empty while the result is not."

    def run(self, graph: Graph, context: PassContext) -> bool:
        zero = sorted([name for name, (low, _) in graph.dims.bounds.items() if low <= 0])
        if not zero or graph.dims.least == 0:
            return False
        if context.target.provider is None or not _leaves_unwritten(context.target.provider):
            return False
        for node in graph.nodes_of(_GIVE_SOMETHING):
            names = [name for name in zero if _is_lost(node, name)]
            if names:
                context.diagnostics.append(_diagnostic(node, names))
        return False


def _leaves_unwritten(name: str) -> bool:
    return any(failure.empty for failure in provider(name).failures)


def _is_lost(node: Node, name: str) -> bool:
    """Return whether an operand has no element if the dim is 0, while a result has some."""
    return any(v is not None and _is_empty(v, name) for v in node.operands) and not all(
        _is_empty(v, name) for v in node.results
    )


def _is_empty(value: Value, name: str) -> bool:
    try:
        return any(substitute(size, {name: 0}) == 0 for size in value.shape)
    except ZeroDivisionError:  # there is no such size
        return False


def _diagnostic(node: Node, names: list[str]) -> Diagnostic:
    types = " and ".join(str(v.type) for v in node.operands if v is not None)
    zero = " or ".join(names)
    message = f"{node.op.name} of {types} leaves its result unwritten on DirectML where {zero} is 0"
    labels = tuple([Label(span, "this may get no element") for span in node.spans[:1]])
    binding = " ".join(f"--bind {name}=..." for name in names)
    help = f"declare {', '.join(names)} from 1 on, or fix the size: {binding}"
    return Diagnostic(MAY_BE_EMPTY, message, labels, help)
