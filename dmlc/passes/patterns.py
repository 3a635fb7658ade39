"""Views of values that fusion rules share: the spellings of one thing, seen as that thing.

Each takes a value and gives what it is made of, or None where it is something else. Nothing is changed; the nodes
looked through are reported in ``seen``, so that a rule can ask whether they are used elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from dmlc.ir import FOREIGN, Graph, Node, Operation, Value
from dmlc.onnx_schema.domains import MICROSOFT
from dmlc.ops.binary import ADD, DIV, MUL, POW, SUB
from dmlc.ops.constant import constant_of
from dmlc.ops.elementwise import NEG
from dmlc.ops.opaque import OpaqueAttributes, attribute_of
from dmlc.passes.rewrite import Miss

Seen = list[Node]
#: The operands of opaque products that are matrices, by operator.
_FACTORS = {(MICROSOFT, "FusedMatMul"): (0, 1), ("", "MatMulInteger"): (0, 1), ("", "QLinearMatMul"): (0, 3)}


def made_by(value: Value | None, *ops: Operation) -> Node | None:
    """The producer, where it is one of the operations."""
    node = value.producer if value is not None else None
    return node if node is not None and node.op in ops else None


def opaque_factors(node: Node) -> tuple[int, ...]:
    """Return the numbers of the operands of an opaque node that are matrices; none if it is not a product of them."""
    a = node.attributes_as(OpaqueAttributes)
    return _FACTORS.get((a.domain, a.op_type), ())


def depends_on_batch(node: Node) -> Miss | None:
    """Return why an opaque product of matrices is another for another shape of its batch; None if it is not."""
    places = opaque_factors(node)
    others = [v for i, v in enumerate(node.operands) if v is not None and i not in places]
    if any(v.type.dtype is FOREIGN or any(size != 1 for size in v.shape) for v in others):
        return Miss("a scale or zero point has more than one element")
    if any(attribute_of(node, name, 0) for name in ("transBatchA", "transBatchB")):
        return Miss("the batch is transposed")
    return None


def scalar_of(value: Value | None) -> float | int | bool | None:
    """The number of a constant with one element, whatever its rank. Its rank may still broadcast a shape:
    ask ``broadcasts``."""
    tensor = constant_of(value)
    if tensor is None or tensor.size != 1:
        return None
    number: float | int | bool = tensor.array.item()
    return number


def broadcasts(value: Value, other: Value) -> bool:
    """Return whether combining ``value`` elementwise with ``other`` may give another shape than ``other`` has."""
    if value.type.rank > other.type.rank:
        return True
    offset = other.type.rank - value.type.rank
    return any(d != 1 and d != other.shape[i + offset] for i, d in enumerate(value.shape))


def both_ways(node: Node) -> Sequence[tuple[Value, Value]]:
    """The operands of a commutative node of two, in both orders."""
    a, b = node.operand("a"), node.operand("b")
    return ((a, b),) if a is b else ((a, b), (b, a))


class ScaledValue(Struct, frozen=True):
    """``node`` is ``x * number`` or ``x / number``: ``x * factor``."""

    node: Node
    x: Value
    number: float

    @property
    def factor(self) -> float:
        return self.number if self.node.op is MUL else 1 / self.number


def scaled_of(value: Value | None, *, in_shape: bool = True) -> ScaledValue | None:
    """``x`` where the float value is ``x`` times a number, or over one but 0, and has the shape of ``x``."""
    node = made_by(value, MUL, DIV)
    if node is None or not node.result.type.dtype.is_float:
        return None
    for x, other in both_ways(node) if node.op is MUL else ((node.operand("a"), node.operand("b")),):
        number = scalar_of(other)
        if number is not None and (number or node.op is MUL) and not (in_shape and broadcasts(other, x)):
            return ScaledValue(node, x, float(number))
    return None


def square_of(value: Value, seen: Seen) -> Value | None:
    """``x`` where the value is ``x * x`` or ``x ** 2``."""
    node = made_by(value, MUL, POW)
    if node is None:
        return None
    x = node.operand("a")
    if node.operand("b") is not x if node.op is MUL else scalar_of(node.operand("b")) != 2:
        return None
    if value.shape != x.shape:
        return None
    seen.append(node)
    return x


def difference_of(value: Value, seen: Seen) -> tuple[Value, Value] | None:
    """``(a, b)`` where the value is ``a - b`` or ``a + -b``."""
    node = made_by(value, SUB, ADD)
    if node is None:
        return None
    if node.op is SUB:
        seen.append(node)
        return node.operand("a"), node.operand("b")
    for place in (1, 0):
        negated = made_by(node.operand(place), NEG)
        if negated is not None:
            seen.extend((node, negated))
            return node.operand(1 - place), negated.operand("x")
    return None


def used_outside(nodes: Sequence[Node], root: Node) -> Miss | None:
    """The reason against taking over the work of ``nodes`` (the root is none of them), where one of their results is
    used outside of them and the root, an output included."""
    inside = {*nodes, root}
    for node in nodes:
        for result in node.results:
            for user in result.users:
                if user not in inside:
                    label = result.name or f"the result of {node.op.name}"
                    return Miss("{0} is used outside of the pattern too", (label,), result)
    return None


def may_be_empty(graph: Graph, value: Value, axes: Sequence[int]) -> bool:
    """Return whether one of the axes may have no element."""
    return any(graph.dims.interval(value.shape[a])[0] < 1 for a in axes)
