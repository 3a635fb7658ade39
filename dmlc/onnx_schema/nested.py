"""Graphs inside nodes: the one set of walks over the nested graphs of ONNX models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from onnx import AttributeProto, GraphProto, NodeProto

#: The types of attributes that are a graph or a list of graphs.
KINDS_OF_GRAPHS = frozenset((AttributeProto.GRAPH, AttributeProto.GRAPHS))
_HOLDERS = frozenset(("If", "Loop", "Scan", "SequenceMap"))
_PLAIN = frozenset(("", "ai.onnx"))


def may_hold_graphs(domain: str, op_type: str) -> bool:
    """Return whether nodes of the operator may have graphs inside: of ONNX's own operators only four do."""
    return op_type in _HOLDERS or domain not in _PLAIN


def holds_graphs(attribute: AttributeProto) -> bool:
    """Return whether the attribute is a graph or a list of graphs."""
    return attribute.type in KINDS_OF_GRAPHS


def graphs_in(attribute: AttributeProto) -> Sequence[GraphProto]:
    """Return the graph, or the graphs, of an attribute; none if it holds something else."""
    if attribute.type == AttributeProto.GRAPH:
        return (attribute.g,)
    return attribute.graphs if attribute.type == AttributeProto.GRAPHS else ()


def graphs_of(node: NodeProto) -> list[GraphProto]:
    """Return the graphs inside a node, in the order of its attributes. Operators that hold none are not searched."""
    if not may_hold_graphs(node.domain, node.op_type):
        return []
    return [graph for attribute in node.attribute for graph in graphs_in(attribute)]


def inner_graphs(nodes: Iterable[NodeProto]) -> list[GraphProto]:
    """Return the graphs inside nodes, without those nested in them."""
    holders = [node for node in nodes if node.op_type in _HOLDERS or node.domain not in _PLAIN]
    return [graph for node in holders for graph in graphs_of(node)]


def all_graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """Yield the graph, and the graphs nested in it at any depth."""
    waiting = [graph]
    while waiting:
        found = waiting.pop()
        yield found
        waiting += reversed(inner_graphs(found.node))


def all_nodes(nodes: Iterable[NodeProto]) -> Iterator[NodeProto]:
    """Yield the nodes, each followed by the nodes of the graphs nested in it."""
    waiting = [iter(nodes)]
    while waiting:
        node = next(waiting[-1], None)
        if node is None:
            waiting.pop()
            continue
        yield node
        waiting += [iter(graph.node) for graph in reversed(graphs_of(node))]


def values_read_by(node: NodeProto) -> Iterator[str]:
    """Yield the name of a value for each time that a node, or a graph inside it, reads it."""
    yield from filter(None, node.input)
    for graph in graphs_of(node):
        for inner in graph.node:
            yield from values_read_by(inner)
        yield from (info.name for info in graph.output)
