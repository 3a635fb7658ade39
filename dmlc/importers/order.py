"""Nodes in an order in which each comes after what it needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from graphlib import CycleError, TopologicalSorter

from onnx import AttributeProto, GraphProto, NodeProto

from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue import models as codes


def in_order(nodes: Sequence[NodeProto], known: Collection[str]) -> Iterator[tuple[int, NodeProto]]:
    """The nodes with their numbers in the model. ONNX wants them sorted; where they are not, they are.

    Raises ``DmlcError`` E0431 for a cycle, two
    values of one name, or an operand that nothing makes.
    """
    made: set[str] = set()
    for node in nodes:
        for name in node.output:
            if name and (name in made or name in known):
                raise fail(codes.BROKEN_MODEL, f"two values are named {name}", help="names must be unique in a graph")
            made.add(name)
    seen: set[str] = set()
    sorted_already = True
    for node in nodes:
        for name in node.input if not node.attribute else needed(node):
            if name in made and name not in seen and name:
                sorted_already = False
        seen.update(node.output)
    if sorted_already:
        yield from enumerate(nodes)
        return
    maker = {name: number for number, node in enumerate(nodes) for name in node.output if name}
    sorter = TopologicalSorter({i: {maker[n] for n in needed(node) if n in maker} for i, node in enumerate(nodes)})
    try:
        for number in sorter.static_order():
            yield number, nodes[number]
    except CycleError as error:
        cycle = [nodes[i].name or nodes[i].op_type for i in error.args[1]]
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
