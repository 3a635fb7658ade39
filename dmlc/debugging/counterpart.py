"""Another model that says how a model is right: its values have the names of those that they stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from onnx import ModelProto, NodeProto

from dmlc.debugging.insides import inside_model
from dmlc.debugging.submodels import NodeGraph
from dmlc.debugging.value_pairs import value_pairs
from dmlc.onnx_schema.nested import graphs_of


class ModelCounterpart:
    """A right model beside the one that is searched.

    Raises ``NotRunnable`` where ONNX Runtime loads one of them not.
    """

    def __init__(self, searched: NodeGraph, model: ModelProto, folder: Path | None) -> None:
        outputs = [info.name for info in searched.model.graph.output]
        inside = _under_outputs(NodeGraph(model, folder).model, outputs)
        pairs = value_pairs(inside_model(inside, None), inside_model(searched.model, None), outputs)
        held = _held(inside)
        pairs = [pair for pair in pairs if pair.a in held]
        names = {pair.a: pair.b for pair in pairs if pair.a == pair.b or pair.b not in held}
        self.names: frozenset[str] = frozenset(names.values())
        self.graph: NodeGraph = NodeGraph(_renamed(inside, names))

    def part(self, model: ModelProto) -> ModelProto:
        """The part that computes the outputs of a part of the searched model from its inputs.

        Raises ``LookupError`` for a value that this model does not hold.
        """
        graph = self.graph
        given = {info.name for info in model.graph.input}
        outputs = [info.name for info in model.graph.output]
        for name in outputs:
            if name not in self.names:
                raise LookupError(f"the other model has no value {name}")
        nodes = self._between(given, outputs)
        out = graph.part(nodes, outputs=outputs, all_inputs=False)
        read = [info.name for info in out.graph.input]
        unknown = [name for name in read if name not in given]
        if unknown:
            raise LookupError(f"the other model reads {unknown[0]} too")
        declared = {info.name: info for info in out.graph.input if info.type.WhichOneof("value")}
        kept = [declared.get(info.name, info) for info in model.graph.input]
        del out.graph.input[:]
        out.graph.input.extend(kept)
        return out

    def _between(self, given: Iterable[str], outputs: Iterable[str]) -> set[int]:
        """The nodes that outputs depend on, up to values that are given."""
        makers = self.graph.makers
        return self.graph.ancestors([makers[name] for name in outputs if name in makers], set(given))


def _held(model: ModelProto) -> set[str]:
    """The names of the values of the outermost graph."""
    graph = model.graph
    made = {name for node in graph.node for name in node.output}
    return made | {tensor.name for tensor in graph.initializer} | {info.name for info in graph.input}


def _under_outputs(model: ModelProto, outputs: Sequence[str]) -> ModelProto:
    """The model with outputs of these names, by position; itself where it has them, or has more or fewer."""
    own, held = [info.name for info in model.graph.output], _held(model)
    if len(own) != len(outputs) or sorted(own) == sorted(outputs):
        return model
    return _renamed(model, {a: b for a, b in zip(own, outputs, strict=True) if b not in held})


def _renamed(model: ModelProto, names: Mapping[str, str]) -> ModelProto:
    """A copy with other names of values."""
    out = ModelProto()
    out.CopyFrom(model)

    def rename(nodes: Iterable[NodeProto]) -> None:
        for node in nodes:
            node.input[:] = [names.get(name, name) for name in node.input]
            node.output[:] = [names.get(name, name) for name in node.output]
            for graph in graphs_of(node):
                rename(graph.node)
                for info in graph.output:
                    info.name = names.get(info.name, info.name)

    rename(out.graph.node)
    for entry in (*out.graph.initializer, *out.graph.value_info, *out.graph.output):
        entry.name = names.get(entry.name, entry.name)
    for sparse in out.graph.sparse_initializer:
        sparse.values.name = names.get(sparse.values.name, sparse.values.name)
    return out
