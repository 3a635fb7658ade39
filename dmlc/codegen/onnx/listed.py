"""Sizes that values of a graph list: a Shape node, and what is picked, joined and computed of its result.

Only exact integers on i64 scalars and lists are followed, so that each element is a size or an expression of sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import add, floordiv, mul, sub
from typing import Any

from dmlc.inference.fact import is_short
from dmlc.ir import Dim, DimExpr, DimTable, ForeignType, Node, Operation, Value
from dmlc.ir.dtype import i64
from dmlc.ops.binary import ADD, DIV, MOD, MUL, SUB
from dmlc.ops.constant import constant_of
from dmlc.ops.index import GATHER
from dmlc.ops.move import CONCAT, RESHAPE, SLICE, SQUEEZE, UNSQUEEZE, SliceAttributes
from dmlc.ops.opaque import OPAQUE, attribute_of, is_opaque

Sizes = tuple[Dim, ...]
#: Longer lists are not shapes.
_MOST_SIZES = 16
#: Products of longer sums are not multiplied out.
_MOST_TERMS = 4


def sizes_listed(node: Node, known: Mapping[Value, Sizes], dims: DimTable) -> Sizes | None:
    """The sizes that the node's result lists, by the sizes of its operands; None where one is not known."""
    value = node.results[0]
    if len(node.results) > 1 or value.type.dtype is not i64 or value.type.rank > 1:
        return None
    if node.op is OPAQUE:
        found = _shape(node)
    elif node.op in _FORMS:
        operands = [None if v is None else _of(v, known) for v in node.operands]
        if None in operands or (node.op in (DIV, MOD) and not _floors(node.op, operands, dims)):
            return None
        found = _FORMS[node.op](node, operands)
    else:
        return None
    return None if found is None or len(found) > _MOST_SIZES else found


def _shape(node: Node) -> Sizes | None:
    if not is_opaque(node, "Shape") or node.operands[0] is None:
        return None
    type = node.operands[0].type
    if isinstance(type, ForeignType):
        return None
    return type.shape[attribute_of(node, "start", 0) : attribute_of(node, "end", None)]


def _of(value: Value, known: Mapping[Value, Sizes]) -> Sizes | None:
    found = known.get(value)
    if found is not None:
        return found
    tensor = constant_of(value)
    if tensor is None or not value.type.dtype.is_integer or value.type.rank > 1 or tensor.size > _MOST_SIZES:
        return None
    return tuple([int(number) for number in tensor.array.reshape(-1)])


def _picked(node: Node, operands: list[Any]) -> Sizes | None:
    sizes, places = operands
    if not all(isinstance(place, int) and -len(sizes) <= place < len(sizes) for place in places):
        return None
    return tuple([sizes[place] for place in places])


def _sliced(node: Node, operands: list[Any]) -> Sizes | None:
    (found,) = operands
    for _, start, end, step in node.attributes_as(SliceAttributes).rows():
        if not isinstance(start, int) or not isinstance(end, int):
            return None
        found = found[start:end:step]
    sizes: Sizes = found
    return sizes


def _same(node: Node, operands: list[Any]) -> Sizes:
    found: Sizes = operands[0]
    return found


def _joined(node: Node, operands: list[Any]) -> Sizes:
    return tuple([size for sizes in operands for size in sizes])


def _computed(combine: Callable[[Dim, Dim], Dim]) -> Callable[[Node, list[Any]], Sizes | None]:
    def form(node: Node, operands: list[Any]) -> Sizes | None:
        a, b = operands
        count = max(len(a), len(b))
        if len(a) not in (1, count) or len(b) not in (1, count) or any(_terms(size) > _MOST_TERMS for size in (*a, *b)):
            return None
        found = tuple([combine(a[i % len(a)], b[i % len(b)]) for i in range(count)])
        return found if all(isinstance(size, int) or is_short(size) for size in found) else None

    return form


def _floors(op: Operation, operands: list[Any], dims: DimTable) -> bool:
    """True where a quotient or remainder is one of sizes, which rounds down. A division truncates."""
    a, b = operands
    if not all(isinstance(size, int) and size > 0 for size in b):
        return False
    return op is MOD or all(dims.at_most(0, size) for size in a)


def _remainder(a: Dim, b: Dim) -> Dim:
    return a - a // b * b


def _terms(size: Dim) -> int:
    return len(size.terms) if isinstance(size, DimExpr) else 1


_FORMS: Mapping[Operation, Callable[[Node, list[Any]], Sizes | None]] = {
    GATHER: _picked,
    SLICE: _sliced,
    **dict.fromkeys((RESHAPE, SQUEEZE, UNSQUEEZE), _same),
    CONCAT: _joined,
    ADD: _computed(add),
    SUB: _computed(sub),
    MUL: _computed(mul),
    DIV: _computed(floordiv),
    MOD: _computed(_remainder),
}
