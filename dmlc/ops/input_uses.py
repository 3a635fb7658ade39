"""Inputs whose elements a graph uses as indices, or divides by."""

from __future__ import annotations

from msgspec import Struct

from dmlc.ir import Dim, DimTable, Graph, Node, Operation, Value, dim_names
from dmlc.ir.dtype import i32, i64
from dmlc.ops.binary import DIV, FLOORDIV, MOD
from dmlc.ops.choose import CAST, WHERE
from dmlc.ops.index import GATHER, GATHER_ELEMENTS, SCATTER_ELEMENTS, IndexAttributes
from dmlc.ops.move import CONCAT, EXPAND, PAD, RESHAPE, SLICE, SPLIT, SQUEEZE, TILE, TRANSPOSE, UNSQUEEZE

#: Operations that hand elements on without arithmetic; a cast converts them.
MOVES = (CAST, CONCAT, EXPAND, PAD, RESHAPE, SLICE, SPLIT, SQUEEZE, TILE, TRANSPOSE, UNSQUEEZE)
#: Integer operations that divide by their second operand.
DIVISIONS = (DIV, FLOORDIV, MOD)
_LOOK_UPS = (GATHER, GATHER_ELEMENTS, SCATTER_ELEMENTS)
#: Operations that hand on the elements of some of their operands.
_CHOICES: dict[Operation, tuple[str, ...]] = {
    WHERE: ("a", "b"),
    GATHER: ("x",),
    GATHER_ELEMENTS: ("x",),
    SCATTER_ELEMENTS: ("x", "updates"),
}


class InputUses(Struct):
    """The inputs that are indices, each with the size that its elements stay below; those of them whose negative
    indices stay negative up to there; and the inputs that are divisors."""

    limits: dict[Value, Dim]
    wrapping: set[Value]
    divisors: set[Value]


def uses_of(graph: Graph) -> InputUses:
    """Find the inputs whose elements arrive, moved or cast, at an index or a divisor."""
    limits: dict[Value, Dim] = {}
    unsigned: set[Value] = set()
    divisors: set[Value] = set()
    fed = {name for value in graph.inputs for size in value.shape for name in dim_names(size)}
    for node in graph:
        if node.op in _LOOK_UPS:
            size = node.operand("x").shape[node.attributes_as(IndexAttributes).axis]
            size = size if dim_names(size) <= fed else 1  # only index 0 is sure where the size is not known
            way = _way_to(node.operand("i"))
            sources = {value for value in way if value.producer is None}
            for value in sources:
                limits[value] = _smaller(graph.dims, limits.get(value, size), size)
            if any(value.type.dtype not in (i32, i64) for value in way):
                unsigned |= sources
        elif node.op in DIVISIONS:
            divisors |= {value for value in _way_to(node.operand("b")) if value.producer is None}
    return InputUses(limits, limits.keys() - unsigned, divisors)


def _smaller(dims: DimTable, a: Dim, b: Dim) -> Dim:
    """The smaller of two sizes; 1, so that all indices are 0, where either may be."""
    return a if dims.at_most(a, b) else b if dims.at_most(b, a) else 1


def _way_to(value: Value) -> set[Value]:
    """The values whose elements arrive here, from the inputs on."""
    pending, seen = [value], set()
    while pending:
        current = pending.pop()
        if current not in seen:
            seen.add(current)
            pending += _handed_on(current.producer)
    return seen


def _handed_on(node: Node | None) -> list[Value]:
    """The operands that have the same elements as the results."""
    if node is None:
        return []
    if node.op in MOVES:
        return [value for value in node.operands if value is not None]
    return [node.operand(name) for name in _CHOICES.get(node.op, ())]
