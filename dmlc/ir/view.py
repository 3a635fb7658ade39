"""A graph as a networkx ``DiGraph``: for drawing, dominators, and as the oracle of our own order in tests.

A copy, not storage: the graph's own use lists are far faster to walk. Import this module only where it is wanted,
because it loads networkx.
"""

from __future__ import annotations

from typing import TypeAlias

import networkx as nx

from dmlc.ir.graph import Graph, Node, Value

Vertex: TypeAlias = "Node | Value"


def to_networkx(graph: Graph) -> nx.DiGraph:
    """Vertices are the nodes, the output node, and the input values; an edge runs from producer to user.

    A vertex has a ``label``; an edge has ``operands``, the list of (result number, operand number) it stands for.
    """
    view = nx.DiGraph(name=graph.name)
    for value in graph.inputs:
        view.add_node(value, label=f"{value.name}: {value.type}")
    for node in (*graph, graph.output):
        types = ", ".join(str(r.type) for r in node.results)
        view.add_node(node, label=f"{node.op.name}: {types}" if types else node.op.name)
        for number, operand in enumerate(node.operands):
            if operand is None:
                continue
            source: Vertex = operand if operand.producer is None else operand.producer
            if not view.has_edge(source, node):
                view.add_edge(source, node, operands=[])
            view.edges[source, node]["operands"].append((operand.index, number))
    return view
