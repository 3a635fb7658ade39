"""Statistics of a model without running it: nodes, dispatches on DirectML, bytes moved. Estimates for comparisons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field
from onnx import GraphProto, ModelProto, NodeProto, TensorProto

from dmlc.inference.model_facts import GraphFacts, facts_of_model
from dmlc.ir import Dim, TensorType, dim_names
from dmlc.onnx_schema.domains import imported_versions
from dmlc.onnx_schema.nested import graphs_of
from dmlc.placement.activations import host_of
from dmlc.placement.costs import node_bytes, node_dispatches, total
from dmlc.placement.node_counts import is_constant, node_counts
from dmlc.placement.values import ValueScope, element_bits, told_names
from dmlc.targets import dispatch_row


class Statistics(Struct):
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

    ``types`` are those of its values, by name, where the caller knows them better than inference.
    """
    known = facts_of_model(model, types)
    count = _Count(known.named)
    count.graph(known.graph, known.facts, None)
    return Statistics(
        opset=imported_versions(model.opset_import).get("", 0),
        nodes=dict(node_counts(model)),
        dispatches=total(count.dispatches),
        bytes_moved=total(count.bytes_moved),
        unknown=count.bytes_moved.count(None),
        external_bytes=sum(map(_external_bytes, _weights(model.graph))),
    )


def _weights(graph: GraphProto) -> Iterator[TensorProto]:
    yield from graph.initializer
    for node in graph.node:
        for inner in graphs_of(node):
            yield from _weights(inner)


def _external_bytes(tensor: TensorProto) -> int:
    if tensor.data_location != TensorProto.EXTERNAL:
        return 0
    length = next((e.value for e in tensor.external_data if e.key == "length"), "")
    if length.isdecimal():
        return int(length)
    bits = element_bits(tensor.data_type) or 0
    elements = 1
    for size in tensor.dims:
        elements *= size
    return elements * bits // 8


# --- counting


class _Count(Struct):
    """The costs of the nodes on the device, None for each that is not known. ``named`` are the dims that mean something
    to the model's user."""

    named: frozenset[str]
    dispatches: list[Dim | None] = field(default_factory=list)
    bytes_moved: list[Dim | None] = field(default_factory=list)

    def graph(self, graph: GraphProto, facts: GraphFacts, outer: ValueScope | None) -> None:
        scope = ValueScope.of_graph(facts, outer)
        scope.on_cpu -= facts.inputs
        scope.on_cpu |= facts.weights
        scope.connect(graph, outermost=outer is None)
        for number, node in enumerate(graph.node):
            inner = facts.inner.get(number, ())
            for body, body_facts in zip(graphs_of(node) if inner else (), inner, strict=True):
                self.graph(body, body_facts, scope)
            self._node(node, scope, has_graphs=bool(inner))

    def _node(self, node: NodeProto, scope: ValueScope, *, has_graphs: bool) -> None:
        operands = [name for name in node.input if name]
        is_on_cpu = operands and not has_graphs and scope.on_cpu.issuperset(operands)
        if is_on_cpu or is_constant(node) or node.op_type in ("Shape", "Size"):
            scope.on_cpu.update(node.output)
            return
        scope.on_cpu.difference_update(node.output)  # a graph inside a node may use a name again
        row = dispatch_row(node.op_type)
        if (row.count or row.per_row) and host_of(node, scope) is None:
            self.dispatches.append(self._meaningful(node_dispatches(node, scope)))
            self.bytes_moved.append(self._meaningful(node_bytes(node, scope)))

    def _meaningful(self, amount: Dim | None) -> Dim | None:
        """The amount; None where it depends on a size whose name a tool made up."""
        if amount is None or isinstance(amount, int):
            return amount
        unknown = dim_names(amount) - self.named
        return amount if len(told_names(unknown)) == len(unknown) else None
