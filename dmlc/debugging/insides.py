"""Models and programs whose inner values can be read, one batch at a time, on the backend of choice."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from onnx import ModelProto

from dmlc import api
from dmlc.codegen.onnx.annotations import read_annotations
from dmlc.debugging.constants import Constant, constant_of, constants_of
from dmlc.debugging.node_pairs import label_of
from dmlc.diagnostics import DmlcError
from dmlc.ir import Graph, Value
from dmlc.ir.answers import Answer
from dmlc.onnx_schema.domains import operator_of
from dmlc.onnx_schema.nested import values_read_by
from dmlc.runtime.graph_model import names_in
from dmlc.runtime.opaque_nodes import OpaqueNodes
from dmlc.runtime.runnable import RunFailed
from dmlc.verifying.graph_subject import GraphSubject
from dmlc.verifying.inputs import Feeds
from dmlc.verifying.models import CodeSubject, RunnableSubject
from dmlc.verifying.onnx_interface import interfaces
from dmlc.verifying.onnx_subject import OnnxSubject
from dmlc.verifying.subject import Subject, op_key


class NodeRecord(Answer, frozen=True, rename={"sources": "from"}):
    """A node: its name (or its first result), operator, operands and results, and its origin: ``places`` in the source,
    ``sources``, the nodes of an imported model that it came from, and ``rules``, the rewrites that made it."""

    name: str
    operator: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    places: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The operator in the form that ONNX and the language share."""
        return op_key(self.operator.rpartition(".")[2])

    def __str__(self) -> str:
        found = f"{self.operator} {self.name}"
        found += f" at {', '.join(self.places[:3])}" if self.places else ""
        return found + (f", made by {', '.join(self.rules)}" if self.rules else "")


@dataclass(slots=True, eq=False)
class Inside:
    """A subject whose values can be read. ``nodes`` are in topological order, none for a function.

    ``names`` are values that another model may hold under the same name, not names that dmlc made up; None for a
    function, whose local variables are not known before it runs. ``model`` is an ONNX model, whose external data lies
    in ``folder``.
    """

    subject: Subject
    nodes: Sequence[NodeRecord]
    names: frozenset[str] | None
    model: ModelProto | None = None
    folder: Path | None = None
    _constants: Mapping[str, Constant] | None = None

    @property
    def constants(self) -> Mapping[str, Constant]:
        """The constants of an ONNX model, read when they are first asked for."""
        if self._constants is None:
            self._constants = {} if self.model is None else constants_of(self.model.graph, self.folder)
        return self._constants

    def values(self, feeds: Feeds, names: Sequence[str]) -> dict[str, Any]:
        """The tensors among the values of these names. Raises ``RunFailed``, ``NotRunnable``."""
        return self.subject.run(feeds, names)


def inside_model(
    model: ModelProto, folder: Path | None, backend: str = "", names: Iterable[str] | None = None
) -> Inside:
    """An ONNX model on a backend. ``names`` restricts the values that are known elsewhere, by default all."""
    return _of_model(OnnxSubject(model, folder, backend), model, folder, names)


def inside_reference(model: ModelProto, folder: Path | None) -> Inside:
    """An ONNX model by ONNX's own reference."""
    from dmlc.runtime.onnx_reference import OnnxReference

    subject = RunnableSubject(OnnxReference(model, folder), made_up=lambda: interfaces(model))
    return _of_model(subject, model, folder, None)


def _of_model(subject: Subject, model: ModelProto, folder: Path | None, names: Iterable[str] | None) -> Inside:
    nodes = [record_of(node) for node in model.graph.node if constant_of(node) is None]
    made = frozenset(name for node in nodes for name in node.outputs)
    return Inside(subject, nodes, made if names is None else made & frozenset(names), model, folder)


def record_of(node: Any) -> NodeRecord:
    """The record of an ONNX node."""
    notes = read_annotations(node)
    return NodeRecord(
        label_of(node),
        operator_of(node),
        tuple(dict.fromkeys(values_read_by(node))),
        tuple(name for name in node.output if name),
        *(tuple(notes.get(key, ())) for key in ("source", "from", "rules")),
    )


def inside_graph(graph: Graph, opaque: OpaqueNodes | None = None) -> Inside:
    """A graph by the references of its operations; ``opaque`` runs the nodes without one."""
    subject = GraphSubject(graph, opaque)
    return Inside(subject, _records(graph, subject.model.names), names_of(graph))


def inside_code(program: api.Program) -> Inside:
    """A program as NumPy code."""
    graph = program.source_graph
    return Inside(_NumpySubject(program), _records(graph, names_in(graph)), names_of(graph))


def names_of(graph: Graph) -> frozenset[str]:
    """The names that the source of a program gives to values."""
    named = {value.name for node in graph for value in node.results if value.name}
    return frozenset(named | {name for name, _ in graph.outputs})


def _records(graph: Graph, names: Mapping[Value, str]) -> list[NodeRecord]:
    out = []
    for node in graph:
        if not node.operands and node.op.name == "constant":
            continue
        outputs = tuple(names[value] for value in node.results)
        inputs = tuple(names[value] for value in node.operands if value is not None)
        operator = getattr(node.attributes, "op_type", node.op.name)
        places = tuple(dict.fromkeys(span.place for span in node.spans))
        out.append(NodeRecord(getattr(node, "name", "") or outputs[0], operator, inputs, outputs, places))
    return out


class _NumpySubject(CodeSubject):
    """NumPy code, made with other results if inner values are asked for."""

    def __init__(self, program: api.Program) -> None:
        super().__init__(program.source_graph, lambda feeds: program.run(feeds, "numpy"))
        self._program = program

    def run(self, feeds: Feeds, wanted: Sequence[str] | None = None) -> dict[str, Any]:
        if wanted is None:
            return super().run(feeds)
        names = names_of(self._program.source_graph)
        known = [name for name in wanted if name in names]
        try:
            return api.with_results(self._program, known).run(feeds, "numpy") if known else {}
        except DmlcError as error:
            raise RunFailed(str(error.diagnostics[0].message)) from None
