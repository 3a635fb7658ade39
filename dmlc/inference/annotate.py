"""Types of all values of an ONNX model, written into its ``value_info``: what placement, costs and viewers read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TypeProto

from dmlc.inference.fact import NOTHING, Fact
from dmlc.inference.protos import asked_attributes, of_proto, of_tensor, of_type, type_proto_of
from dmlc.inference.query import Query
from dmlc.inference.registry import infer
from dmlc.ir import Dim, DimTable, TensorType, symbol
from dmlc.onnx_schema.declared import common

#: How sizes are named that nothing names.
_MADE_UP = "unk__"


def annotate(model: ModelProto, given: Mapping[str, TensorType] | None = None) -> None:
    """Declare the types of all values that the rules tell, in graphs inside nodes too.

    ``given`` are types of values of the main graph, by name, that are known better. Declarations of the model stay
    where no rule says more. ``model`` is changed.
    """
    opsets = {("" if e.domain == "ai.onnx" else e.domain): int(e.version) for e in model.opset_import}
    walk = _Walk(opsets)
    walk.given = {name: of_type(type, walk.new_dim) for name, type in (given or {}).items()}
    walk.graph(model.graph, {})


class _Walk:
    """One walk over a model. ``given`` are facts that are known better than what rules find."""

    def __init__(self, opsets: Mapping[str, int]) -> None:
        self.opsets = opsets
        self.given: Mapping[str, Fact] = {}
        self.dims = DimTable(least=0)
        self._names = count()

    def new_dim(self) -> Dim:
        return symbol(f"{_MADE_UP}{next(self._names)}")

    def graph(self, graph: GraphProto, outer: Mapping[str, Fact]) -> list[Fact]:
        """Annotate a graph that sees the values of ``outer``; the facts about its outputs."""
        facts = dict(outer)
        declared = {info.name: of_proto(info.type, self.new_dim) for info in (*graph.output, *graph.value_info)}
        for info in graph.input:
            facts[info.name] = of_proto(info.type, self.new_dim)
        inputs = {info.name for info in graph.input}
        for tensor in graph.initializer:
            if tensor.name not in inputs:
                facts[tensor.name] = of_tensor(tensor)
        for node in graph.node:
            for name, fact in zip(node.output, self.node(node, facts), strict=True):
                facts[name] = self._best(name, fact, declared.get(name, NOTHING))
        self._declare(graph, facts)
        return [facts.get(info.name, NOTHING) for info in graph.output]

    def _best(self, name: str, fact: Fact, declared: Fact) -> Fact:
        better = self.given.get(name)
        if better is not None and better.shape is not None:
            return Fact(better.element, better.shape, fact.elements)
        if fact.shape is None and declared.shape is not None and fact.element in (0, declared.element):
            return declared
        return fact if fact.element or fact.proto else declared

    def node(self, node: NodeProto, facts: Mapping[str, Fact]) -> list[Fact]:
        """The facts about a node's results; its graphs are annotated."""
        inner = [self.graph(graph, facts) for graph in graphs_of(node)]
        if inner:
            return _joined(node, inner, self.new_dim)
        domain = "" if node.domain == "ai.onnx" else node.domain
        query = Query(
            node.op_type,
            [facts.get(name, NOTHING) if name else None for name in node.input],
            opset=self.opsets.get(domain, 1),
            results=len(node.output),
            domain=domain,
            attributes=asked_attributes(node.attribute),
            dims=self.dims,
            new_dim=self.new_dim,
        )
        return infer(query)

    def _declare(self, graph: GraphProto, facts: Mapping[str, Fact]) -> None:
        interface = {info.name for info in (*graph.input, *graph.output)}
        del graph.value_info[:]
        for node in graph.node:
            for name in node.output:
                fact = facts.get(name, NOTHING)
                if name and name not in interface and (fact.element or fact.proto):
                    graph.value_info.add(name=name).type.CopyFrom(type_proto_of(fact))
        for info in graph.output:
            fact = facts.get(info.name, NOTHING)
            if fact.element and fact.shape is not None and not info.type.tensor_type.HasField("shape"):
                info.type.CopyFrom(type_proto_of(fact))


def _joined(node: NodeProto, inner: Sequence[Sequence[Fact]], new_dim: Callable[[], Dim]) -> list[Fact]:
    """The facts about the results of an If: what both branches say. Other nodes with graphs are not followed."""
    if node.op_type != "If" or len(inner) != 2 or any(len(part) != len(node.output) for part in inner):
        return [NOTHING] * len(node.output)
    return [_either(a, b, new_dim) for a, b in zip(*inner, strict=True)]


def _either(a: Fact, b: Fact, new_dim: Callable[[], Dim]) -> Fact:
    if a.proto and b.proto:
        held = common(TypeProto.FromString(a.proto), TypeProto.FromString(b.proto))
        return NOTHING if held is None else Fact(proto=held.SerializeToString(deterministic=True))
    if a.element != b.element or a.proto != b.proto:
        return NOTHING
    if a.shape is None or b.shape is None or len(a.shape) != len(b.shape):
        return Fact(a.element)
    sizes = [x if x == y else new_dim() for x, y in zip(a.shape, b.shape, strict=True)]
    return Fact(a.element, tuple(sizes))


def graphs_of(node: NodeProto) -> list[GraphProto]:
    """The graphs inside a node."""
    out: list[GraphProto] = []
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            out.append(attribute.g)
        elif attribute.type == AttributeProto.GRAPHS:
            out.extend(attribute.graphs)
    return out
