"""Pickling of graphs as lists in which values are numbers: to follow the nodes nests as deep as a graph is long."""

from __future__ import annotations

import copyreg
from collections.abc import Iterator
from typing import Any

from dmlc.ir.graph import Graph, Node, Value
from dmlc.ir.tensor import Tensor


def _reduced(graph: Graph) -> tuple[Any, ...]:
    return _restored, tuple(_flat(graph))


def _flat(graph: Graph) -> Iterator[Any]:
    """Return the arguments of ``_restored``."""
    numbers: dict[Value | None, int] = {None: -1}
    for value in graph.inputs:
        numbers[value] = len(numbers) - 1
    nodes = []
    for node in graph:
        for value in node.results:
            numbers[value] = len(numbers) - 1
        head = (node.op, [numbers[v] for v in node.operands], node.attributes, [v.type for v in node.results])
        names = [v.name for v in node.results]
        nodes.append((*head, node.spans, node.history, node.name, node.origin, names, node.regions))
    yield {
        "name": graph.name,
        "opset": graph.opset,
        "dims": graph.dims,
        "conditions": graph.conditions,
        "metadata": graph.metadata,
        "ranges": graph.ranges,
        "origin": graph.origin,
        "joined": graph.joined,
        "notes": graph.notes,
        "removed": graph.removed,
        "reader": graph.reader,
    }
    yield [(v.type, v.name, v.span) for v in graph.inputs]
    yield nodes
    yield [(name, numbers[value]) for name, value in graph.outputs]
    yield [(numbers[value], data) for value, data in graph.defaults.items()]


def _restored(
    fields: dict[str, Any],
    inputs: list[Any],
    nodes: list[Any],
    outputs: list[tuple[str, int]],
    defaults: list[tuple[int, Tensor]],
) -> Graph:
    graph = Graph(fields["name"])
    for field, content in fields.items():
        setattr(graph, field, content)
    graph.inputs = [Value(type, None, i, name, span) for i, (type, name, span) in enumerate(inputs)]
    values: list[Value | None] = list(graph.inputs)
    for op, operands, attributes, types, spans, history, name, origin, names, regions in nodes:
        node = Node(op, tuple([None if n < 0 else values[n] for n in operands]), attributes, types, spans, history)
        node.name, node.origin, node.regions = name, origin, regions
        graph._link(node, None)
        for value, given in zip(node.results, names, strict=True):
            value.name = given
        values.extend(node.results)
    made = {number: value for number, value in enumerate(values) if value is not None}
    graph.set_outputs([(name, made[number]) for name, number in outputs])
    graph.defaults = {made[number]: data for number, data in defaults}
    return graph


copyreg.pickle(Graph, _reduced)
