"""``cse``: nodes that compute the same become one."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import NoneType
from typing import Any, ClassVar, get_args, get_type_hints

from dmlc.ir import Attributes, Dim, DimExpr, DType, ForeignType, Graph, Node, TensorType, Value, symbol
from dmlc.ir.graph import OUTPUT
from dmlc.ir.tensor import Tensor
from dmlc.ops.constant import CONSTANT
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, node_name
from dmlc.passes.manager import Pass, PassContext
from dmlc.passes.rewrite import merge_spans


class Cse(Pass, frozen=True):
    """Merge pure nodes of equal operation, operands and attributes, the earlier one stays.

    Attributes compare bit by bit: 0.0 is not -0.0, and a NaN equals itself. Constants compare by their bytes. Of opaque
    nodes the types of the results are not compared: each may have its own dims for the same sizes. Where two such nodes
    have become one, attributes that hold the dims of either are equal.
    """

    name: ClassVar[str] = "cse"
    summary: ClassVar[str] = "Merge nodes that compute the same."
    optional: ClassVar[bool] = True

    def run(self, graph: Graph, context: PassContext) -> bool:
        if not context.wants(self.name):
            return False
        seen: dict[Any, Node] = {}
        constants: dict[TensorType, Node | None] = {}
        changed, same = False, _same_dims(graph.provides)
        for node in graph:
            if not node.op.pure or node.regions:  # graphs inside nodes are not compared
                continue
            if node.op is CONSTANT and not self._compare(node.result.type, node, constants, seen):
                continue
            attributes = node.attributes.substitute(same) if same else node.attributes
            first = seen.setdefault((node.op, node.operands, _key(attributes)), node)
            if first is not node and not _needs_copy(first, node):
                self._merge(graph, first, node, context)
                same.update(_same_dims({v: graph.provides[v] for v in first.results if v in graph.provides}))
                changed = True
        return changed

    def _compare(
        self, type: TensorType, node: Node, constants: dict[TensorType, Node | None], seen: dict[Any, Node]
    ) -> bool:
        """Return whether a constant needs comparing. The first of its type waits unhashed, so a lone weight is never
        read."""
        if type not in constants:
            constants[type] = node
            return False
        waiting = constants[type]
        if waiting is not None:
            seen[waiting.op, waiting.operands, _key(waiting.attributes)] = waiting
            constants[type] = None
        return True

    def _merge(self, graph: Graph, first: Node, twin: Node, context: PassContext) -> None:
        first.spans = merge_spans((first, twin))
        if twin.op is not CONSTANT:  # a constant computes nothing
            text, names = f"{twin.op.name} computed twice", (node_name(first), node_name(twin))
            context.record(self.name, self.rewrite_class, text, twin.spans, names, names[:1])
        if twin.op is OPAQUE and first.attributes != twin.attributes:
            from dmlc.passes.graphs_inside import take_types

            take_types(first, [value.type for value in twin.results])
        for kept, gone in zip(first.results, twin.results, strict=True):
            graph.replace_all_uses(gone, kept)
        graph.erase(twin)


def _same_dims(provides: Mapping[Value, Sequence[tuple[str, int]]]) -> dict[str, Dim]:
    """The dims that values provide beside the sizes that their types have, which equal them."""
    return {
        name: value.type.shape[axis]
        for value, pairs in provides.items()
        for name, axis in pairs
        if value.type.shape[axis] != symbol(name)
    }


def _needs_copy(first: Node, twin: Node) -> bool:
    """True where both nodes give outputs of a type that the language lacks: one value under two output names is copied,
    and ONNX copies no map, nor a sequence of them (onnx, docs/Operators.md, Identity)."""
    return any(
        isinstance(a.type, ForeignType) and _is_output(a) and _is_output(b)
        for a, b in zip(first.results, twin.results, strict=True)
    )


def _is_output(value: Value) -> bool:
    return any(node.op is OUTPUT for node, _ in value.uses)


_GETTERS: dict[type[Attributes], Callable[[Attributes], Any] | None] = {
    OpaqueAttributes: attrgetter("op_type", "domain", "attributes", "unplain")
}


def _key(attributes: Attributes) -> Any:
    """Return a key that two attribute records of one operation share exactly if they are equal bit for bit."""
    record = type(attributes)
    if record not in _GETTERS:
        _GETTERS[record] = _getter(record)
    getter = _GETTERS[record]
    return attributes if getter is None else _bits(getter(attributes))


#: Types of fields that hold no float, so that ``==`` compares them bit for bit.
_PLAIN = frozenset((int, bool, str, NoneType, DType, DimExpr, Tensor, Ellipsis))


def _getter(record: type[Attributes]) -> Callable[[Attributes], Any] | None:
    """Return a getter of the fields of a record that may hold a float; None if the record can compare itself."""
    if all(map(_is_plain, get_type_hints(record).values())):
        return None
    return attrgetter(*record.__struct_fields__)


def _is_plain(kind: Any) -> bool:
    parts = get_args(kind)
    return all(map(_is_plain, parts)) if parts else kind in _PLAIN


def _bits(value: Any) -> Any:
    kind = type(value)
    if kind is float:
        return struct.pack("<d", value)
    if kind is tuple:
        return tuple([_bits(item) for item in value])
    return (kind, value) if kind is bool else value
