"""Models and programs whose inner values can be read, one batch at a time, on the backend of choice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from onnx import ModelProto

from dmlc import api
from dmlc.codegen.onnx.annotations import read_annotations
from dmlc.debugging.constants import Constant, constant_of, constants_of
from dmlc.debugging.node_changes import NodeSummary
from dmlc.debugging.node_pairs import label_of
from dmlc.diagnostics import DmlcError
from dmlc.ir import Graph, Value
from dmlc.onnx_schema.domains import operator_of
from dmlc.onnx_schema.nested import graphs_of
from dmlc.verify.graph_side import GraphSide
from dmlc.verify.inputs import Feeds
from dmlc.verify.models import CodeSide
from dmlc.verify.onnx_reference import ReferenceSide
from dmlc.verify.onnx_side import OnnxSide
from dmlc.verify.opaque_nodes import OpaqueNodes
from dmlc.verify.trace import RunFailed, Side, op_key


@dataclass(frozen=True, slots=True)
class NodeRecord(NodeSummary):
    """A node and its origin: ``sources`` are the nodes of an imported model that it stands for, ``rules`` the rewrites
    that made it."""

    sources: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The operator in the form that ONNX and the language share."""
        return op_key(self.operator.rpartition(".")[2])

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {**NodeSummary.to_json(self), "from": list(self.sources), "rules": list(self.rules)}

    def __str__(self) -> str:
        found = f"{self.operator} {self.name}"
        found += f" at {', '.join(self.places[:3])}" if self.places else ""
        return found + (f", made by {', '.join(self.rules)}" if self.rules else "")


class ValueSide(Protocol):
    """A side of a comparison whose values can be read; ``nodes`` are in topological order."""

    @property
    def side(self) -> Side: ...

    @property
    def nodes(self) -> Sequence[NodeRecord]: ...

    @property
    def names(self) -> frozenset[str] | None:
        """Values that another model may hold under the same name: not names that dmlc made up.

        None for a function, whose local variables are not known before it runs.
        """

    @property
    def constants(self) -> Mapping[str, Constant]: ...

    def values(self, feeds: Feeds, names: Sequence[str]) -> dict[str, Any]:
        """The tensors among the values of these names. Raises ``RunFailed``, ``NotVerifiable``."""


class OnnxValues:
    """An ONNX model on a backend, or with a ``side`` of its own.

    ``names`` restricts the values that are known under one name elsewhere, by default all.
    """

    def __init__(
        self,
        model: ModelProto,
        folder: Path | None,
        backend: str = "",
        names: Iterable[str] | None = None,
        side: OnnxSide | ReferenceSide | None = None,
    ) -> None:
        self.model = model
        self._side = side or OnnxSide(model, folder, backend)
        self.side: Side = self._side
        self.nodes = [record_of(node) for node in model.graph.node if constant_of(node) is None]
        made = frozenset(name for node in self.nodes for name in node.outputs)
        self.names = made if names is None else made & frozenset(names)
        self._folder = folder

    @cached_property
    def constants(self) -> Mapping[str, Constant]:
        return constants_of(self.model.graph, self._folder)

    def values(self, feeds: Feeds, names: Sequence[str]) -> dict[str, Any]:
        return self._side.values(feeds, names)


def record_of(node: Any) -> NodeRecord:
    """The record of an ONNX node."""
    notes = read_annotations(node)
    captured = [name for graph in graphs_of(node) for inner in graph.node for name in _reads(inner)]
    return NodeRecord(
        label_of(node),
        operator_of(node),
        tuple(dict.fromkeys(name for name in (*node.input, *captured) if name)),
        tuple(name for name in node.output if name),
        *(tuple(notes.get(key, ())) for key in ("source", "from", "rules")),
    )


def _reads(node: Any) -> Iterator[str]:
    yield from node.input
    for graph in graphs_of(node):
        for inner in graph.node:
            yield from _reads(inner)


class GraphValues:
    """A graph by the references of its operations, or the NumPy code of its program, if that is given.

    ``opaque`` runs the nodes without a reference.
    """

    constants: Mapping[str, Constant] = {}

    def __init__(self, graph: Graph, program: api.Program | None = None, opaque: OpaqueNodes | None = None) -> None:
        self.graph, self._program = graph, program
        self.side: Side = GraphSide(graph, opaque) if program is None else code_side(program)
        self._names = _names_of(graph)
        self.nodes = list(self._records(graph))
        named = {value.name for node in graph for value in node.results if value.name}
        self.names = frozenset(named | {name for name, _ in graph.outputs})

    def _records(self, graph: Graph) -> Iterator[NodeRecord]:
        for node in graph:
            if not node.operands and node.op.name == "constant":
                continue
            outputs = tuple(self._names[value] for value in node.results)
            inputs = tuple(self._names[value] for value in node.operands if value is not None)
            operator = getattr(node.attributes, "op_type", node.op.name)
            places = tuple(dict.fromkeys(span.place for span in node.spans))
            yield NodeRecord(getattr(node, "name", "") or outputs[0], operator, inputs, outputs, places)

    def values(self, feeds: Feeds, names: Sequence[str]) -> dict[str, Any]:
        if self._program is None:
            assert isinstance(self.side, GraphSide)
            wanted = set(names)
            found = self.side.all_values(feeds)
            return {self._names[value]: array for value, array in found.items() if self._names[value] in wanted}
        known = [name for name in names if name in self.names]
        try:
            return api.with_results(self._program, known).run(feeds, "numpy") if known else {}
        except DmlcError as error:
            raise RunFailed(str(error.diagnostics[0].message)) from None


def _names_of(graph: Graph) -> dict[Value, str]:
    """A name for each value; one that the source does not name is called ``%`` and its number."""
    values = [*graph.inputs, *(value for node in graph for value in node.results)]
    names = {value: value.name or f"%{number}" for number, value in enumerate(values)}
    # an output may have another name than its value; the first one is what other models know
    return names | {value: name for name, value in reversed(graph.outputs) if value.producer is not None}


def code_side(program: api.Program) -> CodeSide:
    """A program as NumPy code, without a look inside."""
    return CodeSide(program.source_graph, lambda feeds: program.run(feeds, "numpy"))
