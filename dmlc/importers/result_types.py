"""The types of an opaque node's results: what its own inference gives, completed by what the model declares.

A declaration that the inference contradicts is not believed (``dmlc.importers.claims`` reports it).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from onnx import TypeProto

from dmlc.importers.dim_text import simpler
from dmlc.importers.registry import Reading
from dmlc.importers.types import UNKNOWN, type_of
from dmlc.inference import Fact, protos
from dmlc.inference.claimed import claimed_types
from dmlc.ir import Dim, ForeignType, Region, TensorType, dim_names
from dmlc.onnx_schema.declared import common, contradicts
from dmlc.onnx_schema.values import type_proto


def result_types(
    reading: Reading, regions: Sequence[Region], facts: Sequence[Fact] | None, versions: Mapping[str, int]
) -> list[TensorType]:
    """The types of the results of the node, which holds the graphs ``regions``.

    ``facts`` are what the operator's rule gives. Where it has none, ONNX's inference of the node alone and what the
    model declares are claims.
    """
    scope = reading.scope
    path, names = scope.path, reading.outputs
    is_followed = bool(regions) and not reading.domain and reading.opset >= _FOLLOWED.get(reading.op_type, _NEVER)
    if facts is not None:
        own = list(map(protos.type_of, facts))
    else:
        own = [UNKNOWN] * len(names) if regions else _claimed(reading, versions)
    out: list[TensorType] = []
    for index, (name, type) in enumerate(zip(names, own, strict=True)):
        if not name:
            out.append(UNKNOWN)
            continue
        sources = _sources(reading, regions, index)
        if is_followed and sources:
            type = _seen_outside(reading, regions, _join(reading, sources))
        if _open_sizes(type):
            type = _completed(reading, type, scope.types.find(path, name), sources)
        out.append(type)
    return out


#: Operators whose results are typed by the graphs inside them, from these opsets on: Scan 8 has batches.
_FOLLOWED = {"If": 1, "Loop": 1, "Scan": 9, "SequenceMap": 17}
_NEVER = 1 << 62


def _completed(reading: Reading, own: TensorType, claim: TensorType, sources: Sequence[TensorType]) -> TensorType:
    """The type with what only the claim knows of it; the type alone where the claim is wrong."""
    if claim is UNKNOWN or any(differ(type, claim) for type in (own, *sources)):
        return own
    scope = reading.scope
    if isinstance(own, ForeignType):
        if type_proto(own).WhichOneof("value") not in (None, "tensor_type"):
            return own
        if isinstance(claim, ForeignType):
            return claim
        return claim.with_shape(tuple([scope.types.believed(said, scope.fresh()) for said in claim.shape]))
    if isinstance(claim, ForeignType):
        return own
    sizes = [
        simpler(mine, said) if not _is_open(mine) or _is_open(said) else scope.types.believed(said, mine)
        for mine, said in zip(own.shape, claim.shape, strict=True)
    ]
    return own.with_shape(tuple(sizes))


def differ(a: TensorType, b: TensorType) -> bool:
    """True if no value has both types."""
    return a is not UNKNOWN and b is not UNKNOWN and contradicts(type_proto(a), type_proto(b))


def _open_sizes(type: TensorType) -> float:
    """Return a score of the unknown part of a type: the number of unknown sizes, and more than any for an unknown
    rank."""
    if isinstance(type, ForeignType):
        return 100 if type is not UNKNOWN else 101
    return sum(2 if name.startswith("unk") else 1 for d in type.shape for name in dim_names(d))


def _is_open(size: Dim) -> bool:
    return any(name.startswith("unk") for name in dim_names(size))


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
            sizes[name] = reading.scope.fresh()
        return sizes[name]

    return type_of(proto, {}, reading.scope.fresh, named)


# --- nodes that hold graphs


def _sources(reading: Reading, regions: Sequence[Region], index: int) -> list[TensorType]:
    """The types of the values that one result of a node with graphs may be: of each branch, before and after a body."""
    if reading.proto.domain not in ("", "ai.onnx") or not regions:
        return []
    made = [[value.type for _, value in region.graph.outputs] for region in regions]
    if reading.op_type == "If":
        return [types[index] for types in made if index < len(types)]
    if reading.op_type == "SequenceMap":
        return [_sequence_of(types[index]) for types in made if index < len(types)]
    if reading.op_type not in ("Loop", "Scan"):
        return []
    body = made[0]
    states = carried_count(reading.op_type, reading.integer("num_scan_inputs", 0), len(regions[0].formals))
    first = 2 if reading.op_type == "Loop" else 0 if reading.opset >= 9 else 1
    number = index + (reading.op_type == "Loop")  # the body of a Loop gives a condition first
    if number >= len(body):
        return []
    if index >= states:
        return [_stacked(reading, body[number], index - states)]
    start = reading.input(first + index)
    return [body[number]] if start is None else [start.type, body[number]]


def carried_count(op_type: str, scanned: int, formals: int) -> int:
    """Return the number of values that a Loop or Scan passes from one iteration of its body to the next."""
    return max(formals - (2 if op_type == "Loop" else scanned), 0)


def _stacked(reading: Reading, type: TensorType, number: int) -> TensorType:
    """The results of all runs of a body as one tensor."""
    if isinstance(type, ForeignType):
        return UNKNOWN
    axes = reading.integers("scan_output_axes") or ()
    axis = axes[number] if number < len(axes) else 0
    axis = axis + type.rank + 1 if axis < 0 else axis
    return type.with_shape((*type.shape[:axis], reading.scope.fresh(), *type.shape[axis:]))


def _sequence_of(item: TensorType) -> TensorType:
    """The results of a body as a sequence; their sizes may differ."""
    proto = type_proto(item)
    if not proto.HasField("tensor_type"):
        return UNKNOWN
    proto.tensor_type.ClearField("shape")
    out = TypeProto()
    out.sequence_type.elem_type.CopyFrom(proto)
    return ForeignType(proto=out.SerializeToString(deterministic=True))


def _seen_outside(reading: Reading, regions: Sequence[Region], type: TensorType) -> TensorType:
    """The type with a new dim for each size that only a value inside the node's graphs tells."""
    if isinstance(type, ForeignType):
        return type
    around = [*reading.inputs, *reading.graph.inputs, *[value for region in regions for value in region.captured]]
    known = {name for value in around if value is not None for size in value.type.shape for name in dim_names(size)}
    sizes = [size if dim_names(size) <= known else reading.scope.fresh() for size in type.shape]
    return type.with_shape(tuple(sizes))


def _join(reading: Reading, types: Sequence[TensorType]) -> TensorType:
    """Join types: keep what all of them share."""
    first = types[0]
    if all(type == first for type in types):
        return first
    if any(isinstance(type, ForeignType) or type.rank != first.rank for type in types):
        return _common(types)
    if any(type.dtype is not first.dtype for type in types):
        return UNKNOWN
    fresh, equal = reading.scope.fresh, reading.graph.dims.equal
    rows = zip(*(type.shape for type in types), strict=True)
    return first.with_shape(tuple([row[0] if all(equal(row[0], size) for size in row) else fresh() for row in rows]))


def _common(types: Sequence[TensorType]) -> TensorType:
    """The type of values that need not be tensors of one rank."""
    found: TypeProto | None = type_proto(types[0])
    for type in types[1:]:
        found = None if found is None else common(found, type_proto(type))
    return UNKNOWN if found is None else ForeignType(proto=found.SerializeToString(deterministic=True))
