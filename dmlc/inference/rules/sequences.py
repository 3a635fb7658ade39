"""Sequences and optionals: their types are kept as ONNX writes them."""

from __future__ import annotations

from collections.abc import Sequence

from onnx import TensorProto, TypeProto

from dmlc.inference.fact import Fact
from dmlc.inference.query import Query
from dmlc.inference.registry import rule


def _tensor(element: int) -> TypeProto:
    return TypeProto(tensor_type=TypeProto.Tensor(elem_type=element))


def _sequence(item: TypeProto) -> Fact:
    out = TypeProto()
    out.sequence_type.elem_type.CopyFrom(item)
    return Fact(proto=out.SerializeToString(deterministic=True))


def _of(element: int) -> Fact:
    return _sequence(_tensor(element)) if element else Fact()


def _proto(q: Query) -> TypeProto:
    return TypeProto.FromString(q.fact(0).proto)


@rule("SequenceConstruct")
def construct(q: Query) -> Sequence[Fact]:
    return [_of(q.element(0))]


@rule("SequenceEmpty")
def empty(q: Query) -> Sequence[Fact]:
    return [_of(q.integer("dtype", TensorProto.FLOAT))]


@rule("SequenceInsert", "SequenceErase")
def changed(q: Query) -> Sequence[Fact]:
    item = _proto(q).sequence_type.elem_type
    return [_of(item.tensor_type.elem_type)] if item.HasField("tensor_type") else [Fact()]


@rule("SplitToSequence")
def split(q: Query) -> Sequence[Fact]:
    return [_of(q.element(0))]


@rule("SequenceAt")
def at(q: Query) -> Sequence[Fact]:
    item = _proto(q).sequence_type.elem_type
    return [_held(item)]


@rule("OptionalGetElement")
def element(q: Query) -> Sequence[Fact]:
    if not q.fact(0).proto:
        return [q.fact(0)]
    proto = _proto(q)
    if proto.HasField("optional_type"):
        return [_held(proto.optional_type.elem_type)]
    return [q.fact(0)]


def _held(item: TypeProto) -> Fact:
    """The value in a container: its rank is that of no one item."""
    if item.HasField("tensor_type"):
        return Fact(item.tensor_type.elem_type)
    return Fact(proto=item.SerializeToString(deterministic=True))


@rule("Optional")
def optional(q: Query) -> Sequence[Fact]:
    fact = q.fact(0)
    if not fact.element and not fact.proto:
        return [Fact()]
    out = TypeProto()
    out.optional_type.elem_type.CopyFrom(TypeProto.FromString(fact.proto) if fact.proto else _tensor(fact.element))
    return [Fact(proto=out.SerializeToString(deterministic=True))]


@rule("SequenceLength")
def length(q: Query) -> Sequence[Fact]:
    return [Fact(TensorProto.INT64, ())]


@rule("ConcatFromSequence")
def concat(q: Query) -> Sequence[Fact]:
    item = _proto(q).sequence_type.elem_type if q.fact(0).proto else TypeProto()
    return [Fact(item.tensor_type.elem_type)]
