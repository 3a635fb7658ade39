"""Registry of the function that reads each ONNX operator, and the data that it reads from."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from msgspec import Struct
from onnx import AttributeProto, NodeProto

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue import models as codes
from dmlc.importers.order import Listed
from dmlc.importers.scope import GraphScope
from dmlc.importers.weights import attribute_data
from dmlc.ir import Array, Attributes, Dim, Graph, Operation, Tensor, Value
from dmlc.onnx_schema.domains import plain_domain
from dmlc.ops.constant import constant_of


class Made(Struct):
    """An operation that says what the ONNX node says, with its operands and attributes.

    ``inputs`` are those of a node that says the same, where constants stand for what this one's nodes compute.
    """

    op: Operation
    operands: Sequence[Value]
    attributes: Attributes | None = None
    inputs: Sequence[Value | Tensor | None] | None = None


class Same(Struct):
    """The node's results are values that exist already; None for a result that nothing may use."""

    values: Sequence[Value | None]


class Data(Struct):
    """The node's only result is a constant."""

    array: Array


#: The result of a reader; None if the language has no equivalent of the node.
Found: TypeAlias = "Made | Same | Data | None"


class Reading:
    """The ONNX node at work: its inputs, its attributes, the opset. One object serves all nodes of a graph in turn."""

    __slots__ = ("_ints", "attributes", "graph", "inputs", "op_type", "opset", "outputs", "proto", "scope")

    proto: NodeProto
    op_type: str
    inputs: list[Value | None]
    outputs: list[str]
    attributes: Mapping[str, AttributeProto]
    opset: int

    def __init__(self, scope: GraphScope) -> None:
        self.scope: GraphScope = scope
        self.graph: Graph = scope.graph
        self._ints: dict[Value, tuple[int, ...] | None] = {}

    def turn_to(self, node: Listed, inputs: list[Value | None], opset: int) -> None:
        """Take the next node."""
        self.proto = node.proto
        self.op_type = node.op_type
        self.inputs = inputs
        self.outputs = node.outputs
        self.attributes = node.attributes
        self.opset = opset

    @property
    def domain(self) -> str:
        """The operator's domain, empty for ONNX's own."""
        return plain_domain(self.proto.domain)

    # --- inputs

    def input(self, index: int) -> Value | None:
        """The input; None where it is absent."""
        return self.inputs[index] if index < len(self.inputs) else None

    @property
    def x(self) -> Value:
        value = self.inputs[0] if self.inputs else None
        if value is None:
            raise fail(codes.BROKEN_MODEL, f"a {self.op_type} has no first input")
        return value

    def array(self, index: int) -> Array | None:
        """The data of a constant input of few elements."""
        tensor = constant_of(self.input(index))
        return None if tensor is None or tensor.size > 1024 else tensor.array

    def ints(self, index: int) -> tuple[int, ...] | None:
        """A constant input as integers, a scalar as one of them."""
        value = self.input(index)
        if value is None:
            return None
        if value not in self._ints:  # many nodes share their axes
            array = self.array(index)
            known = None if array is None or array.dtype.kind not in "iu" else tuple(array.reshape(-1).tolist())
            self._ints[value] = known
        return self._ints[value]

    def sizes(self, index: int) -> tuple[Dim, ...] | None:
        """An input of which each element is known as a size, if not as a number."""
        value = self.input(index)
        return None if value is None else self.scope.facts.sizes(value)

    # --- attributes

    def attribute(self, name: str) -> AttributeProto | None:
        return self.attributes.get(name)

    def integer(self, name: str, default: int) -> int:
        found = self.attributes.get(name)
        return default if found is None else int(found.i)

    def real(self, name: str, default: float) -> float:
        found = self.attributes.get(name)
        return default if found is None else float(found.f)

    def word(self, name: str, default: str) -> str:
        found = self.attributes.get(name)
        return default if found is None else found.s.decode("utf-8", "replace")

    def integers(self, name: str) -> tuple[int, ...] | None:
        found = self.attributes.get(name)
        return None if found is None else tuple(found.ints[:])

    def tensor(self, name: str) -> Any:
        found = self.attributes.get(name)
        return None if found is None else attribute_data(found, self.op_type)

    # --- results

    def wants(self, index: int) -> bool:
        """Return whether the node names that result and something uses it."""
        return index < len(self.outputs) and self.outputs[index] in self.scope.used

    def axes(self, axes: Sequence[int], rank: int) -> tuple[int, ...] | None:
        """The axes sorted, each once; None where one does not exist."""
        found = sorted({a + rank if a < 0 else a for a in axes})
        return None if found and not 0 <= found[0] <= found[-1] < rank else tuple(found)


Reader: TypeAlias = Callable[[Reading], Found]
READERS: dict[tuple[str, str], Reader] = {}


def reads(*names: str, domain: str = "") -> Callable[[Reader], Reader]:
    """Register a function as the reader of the operators."""

    def register(function: Reader) -> Reader:
        for name in names:
            if (domain, name) in READERS:
                raise ValueError(f"{name} has two readers")
            READERS[domain, name] = function
        return function

    return register
