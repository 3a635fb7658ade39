"""Types that pass in and out of the graphs inside a node of a Graph: an If, a Loop, a Scan or a SequenceMap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from onnx import NodeProto, TypeProto, helper

from dmlc.inference.query import within
from dmlc.ir import UNKNOWN, Dim, DimTable, ForeignType, Region, TensorType, Value, dim_names
from dmlc.onnx_schema.declared import common, contradicts
from dmlc.onnx_schema.domains import plain_domain
from dmlc.onnx_schema.types import type_proto

#: The opset from which on the graphs inside a node give its results: Scan 8 has batches.
_SINCE = {"If": 1, "Loop": 1, "Scan": 9, "SequenceMap": 17}


class GraphsInside:
    """A node with the graphs that it runs: the types it feeds them, and those it makes of their outputs.

    ``inputs`` are the inputs of the node alone, ``around`` further values that a size of a result may be a size of.
    ``regions`` may be empty while the graphs are read; then only ``fed`` may be asked.
    """

    def __init__(
        self,
        proto: NodeProto,
        version: int,
        inputs: Sequence[Value | None],
        regions: Sequence[Region],
        dims: DimTable,
        around: Sequence[Value] = (),
    ) -> None:
        self.kind: str = "" if plain_domain(proto.domain) else proto.op_type
        self._attributes = proto.attribute
        self._version = version
        self._inputs = inputs
        self._regions = regions
        self._dims = dims
        self._around = around

    # --- into a body

    def fed(self, index: int, count: int) -> TensorType | None:
        """The type that input ``index`` of ``count`` of the body has in the first run; None where it is not known."""
        value = self._input(index if self.kind == "Loop" or self._version >= 9 else index + 1)
        if value is None or isinstance(value.type, ForeignType):
            return None
        if self.kind == "Loop":
            return value.type if index >= 2 else None
        if self.kind != "Scan" or self._version < 9:
            return None
        number = index - self._carried(count)
        if number < 0:
            return value.type
        axis = self._axis("scan_input_axes", number, value.type.rank)
        return None if axis is None else _without(value.type, axis)

    # --- out of them

    def joined(self, index: int, new_dim: Callable[[], Dim]) -> TensorType | None:
        """The type that a result has whatever runs; None where the graphs do not give it.

        ``new_dim`` makes a dim for each size that no value around the node has.
        """
        types = self.sources(index, new_dim) if self._version >= _SINCE.get(self.kind, 1 << 62) else ()
        if not types:
            return None
        type = _join(types, self._dims, new_dim)
        if isinstance(type, ForeignType):
            return type
        return type.with_shape(tuple([s if dim_names(s) <= self.dims_around else new_dim() for s in type.shape]))

    def sources(self, index: int, new_dim: Callable[[], Dim]) -> list[TensorType]:
        """The types of the values that a result may be: of each branch, before and after a body."""
        made = [[value.type for _, value in region.graph.outputs] for region in self._regions]
        if not made or self.kind not in _SINCE:
            return []
        if self.kind == "If":
            return [types[index] for types in made if index < len(types)]
        if self.kind == "SequenceMap":
            return [_sequence_of(types[index]) for types in made if index < len(types)]
        number = index + (self.kind == "Loop")  # the body of a Loop gives a condition first
        if number >= len(made[0]):
            return []
        body = made[0][number]
        states = self._carried(len(self._regions[0].formals))
        if index >= states:
            return [self._stacked(body, index - states, new_dim)]
        start = self._input(index + (2 if self.kind == "Loop" else 0 if self._version >= 9 else 1))
        return [body] if start is None else [start.type, body]

    @cached_property
    def dims_around(self) -> set[str]:
        """The dims of the values that the graph around the node passes to it."""
        around = [*self._inputs, *self._around, *[value for region in self._regions for value in region.captured]]
        return {name for value in around if value is not None for size in value.type.shape for name in dim_names(size)}

    def _stacked(self, type: TensorType, number: int, new_dim: Callable[[], Dim]) -> TensorType:
        """The outputs of all runs of a body as one tensor."""
        if isinstance(type, ForeignType):
            return _elements_alone(type)
        axis = self._axis("scan_output_axes", number, type.rank + 1)
        if axis is None:
            return UNKNOWN
        return type.with_shape((*type.shape[:axis], self._runs() or new_dim(), *type.shape[axis:]))

    def _runs(self) -> Dim | None:
        """The number of runs: the size of what a Scan takes apart."""
        if self.kind != "Scan" or self._version < 9:
            return None
        sizes: list[Dim] = []
        for number, value in enumerate(self._inputs[len(self._inputs) - self._attribute("num_scan_inputs", 0) :]):
            if value is not None and not isinstance(value.type, ForeignType):
                axis = self._axis("scan_input_axes", number, value.type.rank)
                sizes += [] if axis is None else [value.shape[axis]]
        return next((size for size in sizes if isinstance(size, int)), sizes[0] if sizes else None)

    # --- attributes

    def _input(self, index: int) -> Value | None:
        return self._inputs[index] if index < len(self._inputs) else None

    def _carried(self, formals: int) -> int:
        """The number of values that one run of the body hands to the next."""
        return max(formals - (2 if self.kind == "Loop" else self._attribute("num_scan_inputs", 0)), 0)

    def _axis(self, name: str, number: int, rank: int) -> int | None:
        axes = self._attribute(name, ())
        return within(axes[number] if number < len(axes) else 0, rank)

    def _attribute(self, name: str, default: Any) -> Any:
        found = next((a for a in self._attributes if a.name == name), None)
        return default if found is None else helper.get_attribute_value(found)


def _elements_alone(type: ForeignType) -> TensorType:
    """The type of a tensor without its shape; nothing is known of what is not a tensor."""
    proto = type_proto(type)
    if not proto.HasField("tensor_type"):
        return UNKNOWN
    proto.tensor_type.ClearField("shape")
    return ForeignType(proto=proto.SerializeToString(deterministic=True))


def differ(a: TensorType, b: TensorType) -> bool:
    """True if no value has both types."""
    return a != UNKNOWN and b != UNKNOWN and contradicts(type_proto(a), type_proto(b))


def narrower(declared: TensorType, fed: TensorType) -> TensorType:
    """The type of the input of a Scan's body, which keeps its shape from run to run: declared, and as it is fed."""
    if isinstance(declared, ForeignType) or differ(declared, fed):
        return fed
    sizes = [mine if isinstance(mine, int) else size for mine, size in zip(declared.shape, fed.shape, strict=True)]
    return fed.with_shape(tuple(sizes))


def _without(type: TensorType, axis: int) -> TensorType:
    return type.with_shape((*type.shape[:axis], *type.shape[axis + 1 :]))


def _sequence_of(item: TensorType) -> TensorType:
    """The results of a body as a sequence; their sizes may differ."""
    proto = type_proto(item)
    if not proto.HasField("tensor_type"):
        return UNKNOWN
    proto.tensor_type.ClearField("shape")
    out = TypeProto()
    out.sequence_type.elem_type.CopyFrom(proto)
    return ForeignType(proto=out.SerializeToString(deterministic=True))


def _join(types: Sequence[TensorType], dims: DimTable, new_dim: Callable[[], Dim]) -> TensorType:
    """Join types: keep what all of them share."""
    first = types[0]
    if all(type == first for type in types):
        return first
    if any(isinstance(type, ForeignType) or type.rank != first.rank for type in types):
        return _common(types)
    if any(type.dtype is not first.dtype for type in types):
        return UNKNOWN
    rows = zip(*(type.shape for type in types), strict=True)
    return first.with_shape(
        tuple([row[0] if all(dims.equal(row[0], size) for size in row) else new_dim() for row in rows])
    )


def _common(types: Sequence[TensorType]) -> TensorType:
    """The type of values that need not be tensors of one rank."""
    found: TypeProto | None = type_proto(types[0])
    for type in types[1:]:
        found = None if found is None else common(found, type_proto(type))
    return UNKNOWN if found is None else ForeignType(proto=found.SerializeToString(deterministic=True))
