"""Cost of one node on the device: its dispatches, and the bytes that it reads and writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from onnx import NodeProto

from dmlc.ir import Dim
from dmlc.placement.values import ValueScope
from dmlc.targets import dispatches

#: Operators that read no more of their first operand than they write.
_READ_IN_PART = frozenset(("Gather", "GatherElements", "GatherND", "Slice"))


def total(values: Iterable[Dim | None]) -> Dim | None:
    """The sum; None where a value is not known."""
    out: Dim = 0
    for value, count in Counter(values).items():
        if value is None:
            return None
        out = out + value * count
    return out


def node_dispatches(node: NodeProto, scope: ValueScope) -> Dim | None:
    """The dispatches of a node; None where they depend on sizes that are not known."""
    shape = scope.of(node.input[0]).shape if node.input else None
    return dispatches(node.op_type, shape, _axes(node, shape is None or len(shape), scope))


def _axes(node: NodeProto, rank: int | bool, scope: ValueScope) -> list[int] | None:
    """The axes that a node works over; None where they are not known."""
    given = {a.name: a for a in node.attribute}
    if node.op_type == "TopK":
        return [given["axis"].i if "axis" in given else -1]
    if "axes" in given:
        return list(given["axes"].ints)
    if len(node.input) > 1 and node.input[1]:
        numbers = scope.numbers(node.input[1])
        return None if numbers is None else list(numbers)
    return None if rank is True else list(range(rank))


def node_bytes(node: NodeProto, scope: ValueScope) -> Dim | None:
    """The bytes that a node reads and writes; None where a size is not known. An operand that it takes twice is read
    once."""
    operands, results = [[name for name in names if name] for names in (node.input, node.output)]
    if node.op_type in _READ_IN_PART:
        operands = [*results[:1], *operands[1:]]
        return total([scope.of(name).bytes for name in (*operands, *results)])
    return total([scope.of(name).bytes for name in dict.fromkeys((*operands, *results))])
