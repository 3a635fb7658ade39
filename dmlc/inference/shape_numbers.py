"""Elements of small integer values of a graph, as far as shapes give them: numbers, and expressions of dims."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from dmlc.inference.fact import OPEN, Elements, Fact, is_size, of_array, of_elements
from dmlc.inference.query import Query
from dmlc.inference.registry import infer
from dmlc.ir import Dim, DimTable, Node, Operation, Shape, Value, symbol
from dmlc.onnx_schema.types import ELEMENT_TYPE
from dmlc.ops.binary import ADD, DIV, MAX, MIN, MUL, SUB
from dmlc.ops.choose import CAST, WHERE
from dmlc.ops.constant import constant_of
from dmlc.ops.index import FULL, GATHER, FullAttributes
from dmlc.ops.move import CONCAT, EXPAND, RESHAPE, SLICE, SQUEEZE, TRANSPOSE, UNSQUEEZE

#: A list of more elements is not the sizes of a tensor.
_MOST_ELEMENTS = 64
#: So many nodes are looked at for one operand.
_MOST_NODES = 64
#: Operations that move elements: their references move sizes as they move numbers.
_MOVES = frozenset((CONCAT, EXPAND, GATHER, RESHAPE, SLICE, SQUEEZE, TRANSPOSE, UNSQUEEZE))
#: Operations whose ONNX operator computes the same where neither overflows.
_COMPUTED: dict[Operation, str] = {
    ADD: "Add",
    DIV: "Div",
    MAX: "Max",
    MIN: "Min",
    MUL: "Mul",
    SUB: "Sub",
    WHERE: "Where",
}


def shape_numbers(value: Value, opset: int) -> tuple[Dim | None, ...] | None:
    """The elements of a scalar or list of integers, with None for each that nothing gives.

    None for other values, for constants, and where no element is known. ``opset`` is the one of the operators that are
    carried through or opaque.
    """
    if not _is_small(value) or value.type.rank > 1 or constant_of(value) is not None:
        return None
    elements = _Elements(opset).of(value)
    if elements is None:
        return None
    found = tuple([e if is_size(e) else None for e in elements.ravel().tolist()])
    return None if all(e is None for e in found) else found


def as_elements(shape: Shape, numbers: Sequence[Dim | None]) -> Elements:
    """The elements of an operand of that shape, as rules take them."""
    out = np.empty(len(numbers), object)
    out[:] = [OPEN if number is None else number for number in numbers]
    return out.reshape([size for size in shape if isinstance(size, int)])


def _is_small(value: Value) -> bool:
    is_number = value.type.dtype.is_integer or value.type.dtype.kind == "bool"
    return is_number and all(isinstance(size, int) for size in value.shape) and _count(value) <= _MOST_ELEMENTS


def _count(value: Value) -> int:
    return prod([size for size in value.shape if isinstance(size, int)])


class _Elements:
    def __init__(self, opset: int) -> None:
        self.opset = opset
        self.left = _MOST_NODES
        self.found: dict[Value, Elements | None] = {}

    def of(self, value: Value) -> Elements | None:
        """The elements; None where none of them is known."""
        if value not in self.found:
            self.found[value] = self._computed(value) if _is_small(value) else None
        return self.found[value]

    def _computed(self, value: Value) -> Elements | None:
        constant, node = constant_of(value), value.producer
        element = ELEMENT_TYPE[value.type.dtype]
        if constant is not None:
            return of_array(element, constant.array).elements
        self.left -= 1
        if node is None or self.left < 0 or len(node.results) > 1:
            return None
        shape = [size for size in value.shape if isinstance(size, int)]
        if node.op is FULL:
            number = node.attributes_as(FullAttributes).value
            return of_elements(element, np.full(shape, number, object)).elements
        if node.op in _MOVES:
            return self._moved(node)
        if node.op is CAST:
            given = self.of(node.operand("x"))
            return None if given is None else of_elements(element, given).elements
        return self._asked(node, value)

    def _moved(self, node: Node) -> Elements | None:
        values = [v for v in node.operands if v is not None]
        given: list[Any] = [self.of(v) for v in values]
        if all(g is None for g in given):
            return None
        if node.op is GATHER:
            given[1] = None if given[1] is None else _indices(given[1], values[0].shape)
        elif all(map(_is_small, values)):
            given = [
                as_elements(v.shape, [None] * _count(v)) if g is None else g for g, v in zip(given, values, strict=True)
            ]
        if any(g is None for g in given) or node.attributes.dims() or node.op.reference is None:
            return None
        out = np.empty([size for size in node.result.shape if isinstance(size, int)], object)
        out[...] = node.op.reference(node.attributes, *given)
        return out

    def _asked(self, node: Node, value: Value) -> Elements | None:
        """The elements by the rule of an ONNX operator."""
        a: Any = node.attributes
        op_type = _COMPUTED.get(node.op, "") or getattr(a, "op_type", "")
        domain: str = getattr(a, "domain", "")
        if not op_type or domain or node.regions:
            return None
        facts = [
            None if v is None else Fact(ELEMENT_TYPE.get(v.type.dtype, 0), v.shape, self.of(v)) for v in node.operands
        ]
        query = Query(
            op_type,
            facts,
            opset=self.opset,
            attributes=dict(getattr(a, "attributes", ())),
            dims=DimTable(least=0),
            new_dim=lambda: symbol("?"),
        )
        (fact,) = infer(query)
        return fact.elements if fact.element == ELEMENT_TYPE[value.type.dtype] and fact.shape == value.shape else None


def _indices(elements: Elements, shape: Shape) -> Any:
    """Indices as numbers; None where one is not known, or does not exist."""
    numbers = elements.ravel().tolist()
    size = shape[0] if len(shape) == 1 else None
    if not isinstance(size, int) or not all(isinstance(i, int) and -size <= i < size for i in numbers):
        return None
    return np.array(numbers, np.int64).reshape(elements.shape)
