"""Sequences and optionals: their types are kept as ONNX writes them.

The type of an item has the sizes that are numbers and the same in all items, else open ones; it has no shape where the
ranks differ.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto, TypeProto

from dmlc.inference.fact import Fact
from dmlc.inference.protos import of_proto, sequence_of
from dmlc.inference.query import Query
from dmlc.inference.registry import rule
from dmlc.ir import Shape
from dmlc.onnx_schema.declared import common, fixed_sizes
from dmlc.onnx_schema.types import tensor_type_proto


def _item(fact: Fact, element: int = 0) -> TypeProto:
    """The type of a tensor as an item, of ``element`` where its own is unknown; empty where that is too."""
    element = fact.element or element
    return fixed_sizes(tensor_type_proto(element, fact.shape)) if element else TypeProto()


def _proto(q: Query) -> TypeProto:
    return TypeProto.FromString(q.fact(0).proto)


def _held(q: Query, item: TypeProto) -> Fact:
    """The fact about one value of a container."""
    return of_proto(item, q.new_dim)


@rule("SequenceConstruct")
def construct(q: Query) -> Sequence[Fact]:
    facts = [q.fact(index) for index in range(len(q.operands))]
    element = max([fact.element for fact in facts], default=0)
    item: TypeProto | None = _item(q.fact(0), element)
    for fact in facts[1:]:
        item = None if item is None else common(item, _item(fact, element))
    return [sequence_of(item)]


@rule("SequenceEmpty")
def empty(q: Query) -> Sequence[Fact]:
    return [sequence_of(tensor_type_proto(q.integer("dtype", TensorProto.FLOAT), None))]


@rule("SequenceInsert")
def inserted(q: Query) -> Sequence[Fact]:
    item = _proto(q).sequence_type.elem_type
    return [sequence_of(common(item, _item(q.fact(1), item.tensor_type.elem_type)))]


@rule("SequenceErase")
def erased(q: Query) -> Sequence[Fact]:
    return [sequence_of(_proto(q).sequence_type.elem_type)]


@rule("SplitToSequence")
def split(q: Query) -> Sequence[Fact]:
    return [sequence_of(fixed_sizes(tensor_type_proto(q.element(0), _part(q))) if q.element(0) else None)]


def _part(q: Query) -> Shape | None:
    """The shape of the parts of a split tensor, open along the axis where they differ."""
    shape = q.shape(0)
    axis = None if shape is None else q.axis(0, len(shape))
    if shape is None or axis is None:
        return None
    if not q.has(1):
        return (*shape[:axis], *([1] if q.integer("keepdims", 1) else []), *shape[axis + 1 :])
    numbers, size = q.numbers(1), shape[axis]
    if numbers and q.rank(1) == 0:
        numbers = numbers if isinstance(size, int) and numbers[0] > 0 and size % numbers[0] == 0 else ()
    part = numbers[0] if numbers and len(set(numbers)) == 1 else q.new_dim()
    return (*shape[:axis], part, *shape[axis + 1 :])


@rule("SequenceAt")
def at(q: Query) -> Sequence[Fact]:
    return [_held(q, _proto(q).sequence_type.elem_type)]


@rule("OptionalGetElement")
def element(q: Query) -> Sequence[Fact]:
    if not q.fact(0).proto:
        return [q.fact(0)]
    proto = _proto(q)
    if proto.HasField("optional_type"):
        return [_held(q, proto.optional_type.elem_type)]
    return [q.fact(0)]


@rule("Optional")
def optional(q: Query) -> Sequence[Fact]:
    fact, declared = q.fact(0), q.attributes.get("type")
    if isinstance(declared, Fact) and not q.has(0):
        fact = declared
    if not fact.element and not fact.proto:
        return [Fact()]
    out = TypeProto()
    out.optional_type.elem_type.CopyFrom(TypeProto.FromString(fact.proto) if fact.proto else _item(fact))
    return [Fact(proto=out.SerializeToString(deterministic=True))]


@rule("SequenceLength")
def length(q: Query) -> Sequence[Fact]:
    return [Fact(TensorProto.INT64, ())]


@rule("ConcatFromSequence")
def concat(q: Query) -> Sequence[Fact]:
    item = _held(q, _proto(q).sequence_type.elem_type)
    if item.shape is None:
        return [Fact(item.element)]
    is_new = bool(q.integer("new_axis"))
    axis = q.axis(0, len(item.shape) + is_new)
    if axis is None:
        return [Fact(item.element)]
    return [Fact(item.element, (*item.shape[:axis], q.new_dim(), *item.shape[axis + (not is_new) :]))]
