"""The types of an opaque node's results: what its own inference gives, completed by what the model declares.

A declaration that the inference contradicts is not believed (``dmlc.importers.claims`` reports it).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from onnx import TypeProto

from dmlc.importers.registry import Reading
from dmlc.importers.types import simpler, type_of
from dmlc.inference import Fact, counts_elements, protos
from dmlc.inference.claimed import claimed_types
from dmlc.inference.joins import GraphsInside, differ
from dmlc.ir import UNKNOWN, Dim, DimExpr, ForeignType, Graph, Region, TensorType, Value, dim_names
from dmlc.ir.dtype import i32, i64
from dmlc.onnx_schema.types import type_proto
from dmlc.ops.opaque import is_opaque

#: A number is followed back over this many values before it counts as one that depends on data.
_MOST_VALUES = 256


def result_types(
    reading: Reading, regions: Sequence[Region], facts: Sequence[Fact] | None, versions: Mapping[str, int]
) -> list[TensorType]:
    """The types of the results of the node, which holds the graphs ``regions``.

    ``facts`` are what the operator's rule gives. Where it has none, ONNX's inference of the node alone and what the
    model declares are claims.
    """
    scope = reading.scope
    path, names = scope.path, reading.outputs
    inside = _graphs_inside(reading, regions) if regions else None
    if facts is not None:
        own = list(map(protos.type_of, facts))
    else:
        own = [UNKNOWN] * len(names) if regions else _claimed(reading, versions)
    new_dim = _new_sizes(reading, own, by_data=inside is not None)
    out: list[TensorType] = []
    for index, (name, type) in enumerate(zip(names, own, strict=True)):
        if not name:
            out.append(UNKNOWN)
            continue
        if inside is not None:
            type = inside.joined(index, new_dim) or type
        if _open_sizes(type):
            sources = [] if inside is None else inside.sources(index, new_dim)
            type = _completed(reading, type, scope.types.find(path, name), sources, new_dim)
        out.append(type)
    return out


def _new_sizes(reading: Reading, own: Sequence[TensorType], *, by_data: bool) -> Callable[[], Dim]:
    """Return what makes the dims of sizes that only this node provides; those of ``own`` are made already.

    They depend on data (``by_data``) if the node counts elements, if a size of an operand depends on data, if an
    operand that may be sizes counts elements, or if the node holds graphs: a condition decides which of them runs, or
    how often.
    """
    scope = reading.scope
    operands = [value for value in reading.inputs if value is not None]
    by_data = by_data or counts_elements(reading.domain, reading.op_type)
    by_data = by_data or any(scope.types.is_by_data(size) for value in operands for size in value.shape)
    by_data = by_data or (any(map(_open_sizes, own)) and any(_counts(reading.graph, v) for v in operands))
    if not by_data:
        return scope.new_dim
    known = {name for value in operands for size in value.shape for name in dim_names(size)}
    scope.types.depend_on_data({name for type in own for size in type.shape for name in dim_names(size)} - known)

    def new_dim() -> Dim:
        dim = scope.new_dim()
        scope.types.depend_on_data(dim_names(dim))
        return dim

    return new_dim


def _counts(graph: Graph, value: Value) -> bool:
    """Return whether numbers that may be sizes depend on the elements of an input.

    Shapes, and sizes that are fed, are what exporters mean by a declared size.
    """
    if not _may_be_sizes(value):
        return False
    pending, seen = [value], {value}
    while pending and len(seen) <= _MOST_VALUES:
        found = pending.pop()
        if found.producer is None and found in graph.inputs and not _may_be_sizes(found):
            return True
        if found.producer is None or is_opaque(found.producer, "Shape") or is_opaque(found.producer, "Size"):
            continue
        new = {operand for operand in found.producer.operands if operand is not None} - seen
        seen |= new
        pending += new
    return bool(pending)


def _may_be_sizes(value: Value) -> bool:
    return value.type.dtype in (i32, i64) and not isinstance(value.type, ForeignType) and value.type.rank <= 1


def _graphs_inside(reading: Reading, regions: Sequence[Region]) -> GraphsInside:
    graph = reading.graph
    return GraphsInside(reading.proto, reading.opset, reading.inputs, regions, graph.dims, graph.inputs)


def _completed(
    reading: Reading,
    own: TensorType,
    claim: TensorType,
    sources: Sequence[TensorType],
    new_dim: Callable[[], Dim],
) -> TensorType:
    """The type with what only the claim knows of it; the type alone where the claim is wrong."""
    if claim is UNKNOWN or any(differ(type, claim) for type in (own, *sources)):
        return own
    scope = reading.scope
    if isinstance(own, ForeignType):
        if type_proto(own).WhichOneof("value") not in (None, "tensor_type"):
            return own
        if isinstance(claim, ForeignType):
            return claim
        return claim.with_shape(tuple([scope.types.believed(said, new_dim()) for said in claim.shape]))
    if isinstance(claim, ForeignType):
        return own
    operands = {size for value in reading.inputs if value is not None for size in value.shape}
    sizes = [
        simpler(mine, said)
        if not (_is_open(mine) or _may_be(mine, said)) or _is_open(said)
        else scope.types.believed(said, mine, is_new=mine not in operands)
        for mine, said in zip(own.shape, claim.shape, strict=True)
    ]
    return own.with_shape(tuple(sizes))


def _open_sizes(type: TensorType) -> float:
    """Return a score of the unknown part of a type: the number of unknown sizes, and more than any for an unknown
    rank."""
    if isinstance(type, ForeignType):
        return 100 if type is not UNKNOWN else 101
    return sum(2 if name.startswith("unk") else 1 for d in type.shape for name in dim_names(d))


def _is_open(size: Dim) -> bool:
    return any(name.startswith("unk") for name in dim_names(size))


def _may_be(size: Dim, said: Dim) -> bool:
    """Return whether the size is the smaller or larger of two of which ``said`` is one. A number above 1 is not taken
    for such a size: it may be the one that the model was traced with."""
    clamp = size.as_clamp() if isinstance(size, DimExpr) else None
    return clamp is not None and said in clamp[1:] and (said == 1 or isinstance(said, DimExpr))


# --- operators without a rule


def _claimed(reading: Reading, versions: Mapping[str, int]) -> list[TensorType]:
    """The types of the results that ONNX's inference of this node alone claims, asked in a process of its own."""
    if any(value is not None and value.type is UNKNOWN for value in reading.inputs):
        return [UNKNOWN] * len(reading.outputs)
    operands = [None if value is None else type_proto(value.type) for value in reading.inputs]
    found = claimed_types(reading.proto, operands, versions)
    return [_typed(reading, proto) if name else UNKNOWN for name, proto in zip(reading.outputs, found, strict=True)]


def _typed(reading: Reading, proto: TypeProto | None) -> TensorType:
    """The type, in which a text that is an operand's size is that size again; other names were made up by ONNX for
    this node alone."""
    sizes: dict[str, Dim] = {str(d): d for v in reading.inputs if v is not None for d in v.shape}

    def named(name: str) -> Dim:
        if name not in sizes:
            sizes[name] = reading.scope.new_dim()
        return sizes[name]

    return type_of(proto, {}, reading.scope.new_dim, named)
