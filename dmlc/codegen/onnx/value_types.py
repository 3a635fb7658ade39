"""Types of the values of an emitted model: of the graph's values, and of what a lowering makes between them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any

from onnx import GraphProto, NodeProto, TensorProto, TypeProto, ValueInfoProto

from dmlc.inference import NOTHING, Fact, Query, infer
from dmlc.inference.protos import asked_attributes, of_tensor, of_type, type_of
from dmlc.ir import Dim, DimTable, ForeignType, TensorType, dim_names, symbol
from dmlc.onnx_schema.types import type_proto

_NEW = ValueInfoProto()
#: ONNX Runtime's CPU kernel of it reads the sign of an operand that it has overwritten, if the result takes the
#: operand's memory. ONNX Runtime plans so where it knows that both have one shape (1.32; ONNX infers none).
_WRONG_IN_PLACE = ("ai.onnx.ml", "Normalizer")


class ValueTypes:
    """The types of an emitted model by the names of its values; the graphs inside its nodes share them.

    ``weights`` are the model's initializers, which grow while it is emitted. ``named`` are the dims that its inputs
    declare.
    """

    def __init__(self, dims: DimTable, weights: Sequence[TensorProto], named: Iterable[str]) -> None:
        self.types: dict[str, TensorType] = {}
        self._named = frozenset(named)
        self._dims = dims
        self._facts: dict[str, Fact] = {}
        self._weights = weights
        self._weight_facts: dict[str, Fact] = {}
        self._seen_weights = 0
        self._numbers = count()

    def infer(self, nodes: Iterable[NodeProto], opset_of: Callable[[str], int]) -> list[str]:
        """Type the results of nodes that no value of the graph stands for; their names."""
        out = []
        for node in nodes:
            names = node.output[:]
            if all(name in self.types for name in names):
                continue
            query = Query(
                node.op_type,
                [self.fact_of(name) if name else None for name in node.input],
                opset=opset_of(node.domain),
                results=len(names),
                domain=node.domain,
                attributes=asked_attributes(node.attribute),
                dims=self._dims,
                new_dim=self._new_dim,
            )
            for name, fact in zip(names, infer(query), strict=True):
                if name and name not in self.types:
                    self._facts[name] = fact
                    self.types[name] = type_of(fact)
                    out.append(name)
        return out

    @contextmanager
    def hiding(self, names: Iterable[str]) -> Iterator[None]:
        """Forget the types of these names while a graph inside a node has values of its own by them."""
        hidden = [(name, table, table.pop(name)) for name in names for table in self._tables() if name in table]
        yield
        for name in names:
            for table in self._tables():
                table.pop(name, None)
        for name, table, entry in hidden:
            table[name] = entry

    def _tables(self) -> tuple[dict[str, Any], ...]:
        return self.types, self._facts

    def _new_dim(self) -> Dim:
        return symbol(f"?{next(self._numbers)}")

    def fact_of(self, name: str) -> Fact:
        """The fact about a value or a weight of the model; ``NOTHING`` where it is unknown."""
        found = self._facts.get(name)
        if found is None:
            type = self.types.get(name)
            found = self._weight(name) if type is None else of_type(type, self._new_dim)
            self._facts[name] = found
        return found

    def _weight(self, name: str) -> Fact:
        for tensor in self._weights[self._seen_weights :]:
            self._weight_facts[tensor.name] = of_tensor(tensor)
        self._seen_weights = len(self._weights)
        return self._weight_facts.get(name, NOTHING)

    def declare(self, graph: GraphProto, names: Iterable[str], domains: Collection[str]) -> None:
        """Write the types of the values of these names into the graph's ``value_info``.

        ``domains`` are the domains of the model's operators, ONNX's own left out.
        """
        infos = graph.value_info
        made: dict[TensorType, ValueInfoProto | None] = {}
        last: TensorType | None = None
        info: ValueInfoProto | None = None
        for name in names:
            type = self.types[name]
            if type is not last:  # most are of the type of the one before
                last, info = type, made.get(type, _NEW)
            if info is _NEW:
                proto = self._proto(type)
                info = made[type] = None if proto is None else ValueInfoProto(type=proto)
            if info is not None:
                info.name = name
                infos.append(info)  # a copy
        domain, op_type = _WRONG_IN_PLACE
        if domain in domains:
            wrong = {name for n in graph.node if n.domain == domain and n.op_type == op_type for name in n.output}
            for info in infos:
                if info.name in wrong:
                    info.type.tensor_type.ClearField("shape")

    def _proto(self, type: TensorType) -> TypeProto | None:
        """The type as ONNX declares it; None where nothing is known.

        A size stays open where it depends on a dim that no input declares. The name of such a dim is made up, or a
        claim of the model that nothing proves. ONNX Runtime plans memory for sizes of one name as for equal ones.
        """
        if isinstance(type, ForeignType):
            return type_proto(type) if type.proto else None
        proto = type_proto(type)
        for dim, size in zip(proto.tensor_type.shape.dim, type.shape, strict=True):
            if not dim_names(size) <= self._named:
                dim.ClearField("dim_param")
        return proto
