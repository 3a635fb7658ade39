"""Nodes in an order in which each comes after what it needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

from onnx import AttributeProto, GraphProto, NodeProto

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue import models as codes


@dataclass(slots=True)
class Listed:
    """A node of a model, its number there, and what is asked for most: each look into a proto makes new objects.

    ``is_plain`` is true where it has no attributes.
    """

    number: int
    proto: NodeProto
    op_type: str
    inputs: list[str]
    outputs: list[str]
    is_plain: bool


def in_order(nodes: Sequence[NodeProto], known: Collection[str]) -> list[Listed]:
    """The nodes, sorted. ONNX wants them sorted; where they are not, they are.

    Raises ``DmlcError`` E0431 for a cycle, two values of one name, or an operand that nothing makes.
    """
    listed: list[Listed] = []
    made: set[str] = set()
    ahead: set[str] = set()
    for number, proto in enumerate(nodes):
        node = Listed(number, proto, proto.op_type, proto.input[:], proto.output[:], not proto.attribute)
        listed.append(node)
        for name in node.inputs if node.is_plain else needed(proto):
            if name not in made:
                ahead.add(name)
        for name in node.outputs:
            if name and (name in made or name in known):
                raise fail(codes.BROKEN_MODEL, f"two values are named {name}", help="names must be unique in a graph")
            made.add(name)
    ahead.discard("")
    return listed if ahead.isdisjoint(made) else _sorted(listed)


def _sorted(listed: Sequence[Listed]) -> list[Listed]:
    maker = {name: node.number for node in listed for name in node.outputs if name}
    sorter = TopologicalSorter({n.number: {maker[m] for m in needed(n.proto) if m in maker} for n in listed})
    try:
        return [listed[number] for number in sorter.static_order()]
    except CycleError as error:
        cycle = [listed[i].proto.name or listed[i].op_type for i in error.args[1]]
        raise fail(codes.BROKEN_MODEL, f"nodes depend on one another: {', '.join(cycle)}") from None


def used_names(graph: GraphProto) -> set[str]:
    """The names that some node, a graph inside one, or an output uses."""
    used = {info.name for info in graph.output}
    for node in graph.node:
        used.update(node.input if not node.attribute else needed(node))
    used.discard("")
    return used


def needed(node: NodeProto) -> Iterator[str]:
    """The names that a node uses, those of the graphs inside it included."""
    yield from node.input
    for attribute in node.attribute:
        if attribute.type == AttributeProto.GRAPH:
            yield from _free_names(attribute.g)
        elif attribute.type == AttributeProto.GRAPHS:
            for graph in attribute.graphs:
                yield from _free_names(graph)


def _free_names(graph: GraphProto) -> Iterator[str]:
    own = {i.name for i in graph.input} | {t.name for t in graph.initializer}
    for node in graph.node:
        own.update(node.output)
    for node in graph.node:
        for name in needed(node):
            if name not in own:
                yield name
    for info in graph.output:
        if info.name not in own:
            yield info.name
