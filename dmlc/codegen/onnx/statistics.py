"""What a model costs, as far as its text tells: nodes, dispatches on DirectML, bytes moved. Estimates to compare by."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from onnx import GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, helper, numpy_helper

from dmlc.codegen.onnx.node_counts import is_constant, node_counts, subgraphs
from dmlc.codegen.onnx.skeleton import inferred
from dmlc.ir import Dim, TensorType, dim_names, product, symbol
from dmlc.records import dataclass
from dmlc.targets import dispatch_row, dispatches

#: Operators that read no more of their first operand than they write.
_READ_IN_PART = frozenset(("Gather", "GatherElements", "GatherND", "Slice"))
#: Names that tools make up for sizes nobody knows. Only at a model's inputs do they mean something to its user.
_MADE_UP = re.compile(r"unk__\d+|unknown_\d+|\?|")


@dataclass(slots=True)
class Statistics:
    """``nodes`` by operator are those of ``node_counts``.

    ``dispatches`` and ``bytes_moved`` may be expressions of the model's dims, or None where sizes are not known:
    ``unknown`` is the number of nodes which that is due to. ``external_bytes`` are weights outside of the file.
    """

    opset: int
    nodes: dict[str, int]
    dispatches: Dim | None
    bytes_moved: Dim | None
    unknown: int
    external_bytes: int

    @property
    def total(self) -> int:
        return sum(self.nodes.values())


def statistics(model: ModelProto, types: Mapping[str, TensorType] | None = None) -> Statistics:
    """The statistics of a model; calls of its functions count as the nodes of their bodies. It is not changed.

    ``types`` are those of its values, by name, where the caller knows them better than ONNX's inference.
    """
    bare = inferred(model, types)
    scope = _Scope()
    scope.given.update(types or {})
    scope.named.update(_dim_names(bare.graph, scope.given))
    count = _Count()
    count.graph(bare.graph, scope)
    return Statistics(
        opset=next((e.version for e in model.opset_import if e.domain in ("", "ai.onnx")), 0),
        nodes=dict(node_counts(model)),
        dispatches=None if count.unknown_dispatches else _total(count.dispatches),
        bytes_moved=None if count.unknown_bytes else _total(count.bytes_moved),
        unknown=count.unknown_bytes,
        external_bytes=sum(map(_external_bytes, _weights(model.graph))),
    )


def _weights(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        for inner in subgraphs(node):
            yield from _weights(inner)


def _external_bytes(tensor: TensorProto) -> int:
    if tensor.data_location != TensorProto.EXTERNAL:
        return 0
    length = next((e.value for e in tensor.external_data if e.key == "length"), "")
    if length.isdecimal():
        return int(length)
    bits = _bits(tensor.data_type) or 0
    elements = 1
    for size in tensor.dims:
        elements *= size
    return elements * bits // 8


# --- sizes


def _dim_names(graph: GraphProto, given: Mapping[str, TensorType]) -> set[str]:
    """The names of the dims that the model's inputs have."""
    out: set[str] = set()
    for info in graph.input:
        out |= {size.dim_param for size in info.type.tensor_type.shape.dim if size.dim_param}
        if info.name in given:
            out |= {name for size in given[info.name].shape for name in dim_names(size)}
    return out


@dataclass(slots=True)
class _Scope:
    """What is known of the values that a graph sees: bytes and shapes by name, small constants, and the names of what
    is computed on the CPU: constants, shapes, and what comes from those alone.

    ``given`` are types that the caller knows, ``named`` the dims that mean something, ``measured`` the bytes by shape
    and bits of an element.
    """

    given: dict[str, TensorType] = field(default_factory=dict)
    named: set[str] = field(default_factory=set)
    shapes: dict[str, tuple[Dim, ...]] = field(default_factory=dict)
    bytes: dict[str, Dim] = field(default_factory=dict)
    integers: dict[str, list[int]] = field(default_factory=dict)
    on_cpu: set[str] = field(default_factory=set)
    measured: dict[tuple[tuple[Dim, ...], int], Dim | None] = field(default_factory=dict)

    def inner(self) -> _Scope:
        copies = (dict(self.shapes), dict(self.bytes), dict(self.integers), set(self.on_cpu))
        return _Scope(self.given, self.named, *copies, self.measured)

    def declare(self, name: str, type: TypeProto) -> None:
        """The type that the model says."""
        if name in self.given:
            return
        tensor = type.tensor_type
        bits = _bits(tensor.elem_type)
        if not type.HasField("tensor_type") or bits is None or not tensor.HasField("shape"):
            return
        shape: list[Dim] = []
        for size in tensor.shape.dim:
            if size.HasField("dim_value"):
                shape.append(size.dim_value)
            else:
                shape.append(symbol(size.dim_param))
        self._know(name, shape, bits)

    def take_given(self, names: Iterable[str]) -> None:
        """The types that the caller knows."""
        for name in names:
            if name in self.given:
                self._know(name, self.given[name].shape, self.given[name].dtype.bits)

    def _know(self, name: str, shape: Sequence[Dim], bits: int) -> None:
        if bits == 0:  # not an element that ONNX's tensors hold in bytes
            return
        key = (tuple(shape), bits)
        if key not in self.measured:
            self.measured[key] = self._measure(*key)
        size = self.measured[key]
        if size is not None:
            self.shapes[name] = key[0]
            self.bytes[name] = size

    def _measure(self, shape: tuple[Dim, ...], bits: int) -> Dim | None:
        """The bytes of a tensor; None where a dim means nothing."""
        named = {n for size in shape for n in dim_names(size)}
        is_known = all(n in self.named or not _MADE_UP.fullmatch(n) for n in named)
        return _nbytes(shape, bits) if is_known else None

    def constant(self, name: str, tensor: TensorProto) -> None:
        self.on_cpu.add(name)
        bits = _bits(tensor.data_type)
        if bits is not None:
            self.shapes[name] = tuple(tensor.dims)
            self.bytes[name] = _nbytes(tensor.dims, bits)
        if (
            tensor.data_type == TensorProto.INT64
            and len(tensor.dims) < 2
            and tensor.data_location != TensorProto.EXTERNAL
        ):
            self.integers[name] = [int(number) for number in numpy_helper.to_array(tensor).reshape(-1)]


def _bits(elem_type: int) -> int | None:
    """The bits of an element; None for strings and what is no tensor."""
    if elem_type in (TensorProto.UNDEFINED, TensorProto.STRING):
        return None
    if elem_type in (TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT4E2M1):
        return 4
    try:
        return int(helper.tensor_dtype_to_np_dtype(elem_type).itemsize) * 8
    except KeyError:  # a type that this onnx does not know
        return None


def _nbytes(shape: Sequence[Dim], bits: int) -> Dim:
    count = product(shape)
    return count * (bits // 8) if bits >= 8 else count // (8 // bits)


# --- counting


@dataclass(slots=True)
class _Count:
    dispatches: Counter[Dim] = field(default_factory=Counter)
    bytes_moved: Counter[Dim] = field(default_factory=Counter)
    unknown_dispatches: int = 0
    unknown_bytes: int = 0

    def graph(self, graph: GraphProto, scope: _Scope) -> None:
        inputs = {info.name for info in graph.input}
        for infos in (graph.input, graph.output, graph.value_info):
            for info in infos:
                scope.on_cpu.discard(info.name)
                scope.declare(info.name, info.type)
        scope.take_given([info.name for info in graph.input])
        for tensor in graph.initializer:
            if tensor.name not in inputs:
                scope.constant(tensor.name, tensor)
        for node in graph.node:
            scope.take_given(node.output)
            self._node(node, scope)

    def _node(self, node: NodeProto, scope: _Scope) -> None:
        inner = subgraphs(node)
        for graph in inner:
            self.graph(graph, scope.inner())
        if is_constant(node):
            for attribute in node.attribute:
                if attribute.name == "value":
                    scope.constant(node.output[0], attribute.t)
            scope.on_cpu.update(node.output)
            return
        operands = list(dict.fromkeys(name for name in node.input if name))
        if node.op_type in ("Shape", "Size") or (operands and not inner and scope.on_cpu.issuperset(operands)):
            scope.on_cpu.update(node.output)
            return
        self._device(node, operands, scope)

    def _device(self, node: NodeProto, operands: list[str], scope: _Scope) -> None:
        """Add what a node does on the device."""
        if not (dispatch_row(node.op_type).count or dispatch_row(node.op_type).per_row):
            return
        shape = scope.shapes.get(operands[0]) if operands else None
        number = dispatches(node.op_type, shape, _axes(node, shape, scope))
        if number is None:
            self.unknown_dispatches += 1
        else:
            self.dispatches[number] += 1
        results = [name for name in node.output if name]
        if node.op_type in _READ_IN_PART and operands:
            operands = [*results[:1], *operands[1:]]
        if all(name in scope.bytes for name in (*operands, *results)):
            for name in (*operands, *results):
                self.bytes_moved[scope.bytes[name]] += 1
        else:
            self.unknown_bytes += 1


def _total(sizes: Counter[Dim]) -> Dim:
    out: Dim = 0
    for size, count in sizes.items():
        out = out + size * count
    return out


def _axes(node: NodeProto, shape: tuple[Dim, ...] | None, scope: _Scope) -> list[int] | None:
    """The axes that a node works over; None where they are not known."""
    attributes = {a.name: a for a in node.attribute}
    if node.op_type == "TopK":
        return [attributes["axis"].i if "axis" in attributes else -1]
    if "axes" in attributes:
        return list(attributes["axes"].ints)
    if len(node.input) > 1 and node.input[1]:
        return scope.integers.get(node.input[1])
    return None if shape is None else list(range(len(shape)))
