"""Pairs of nodes of two graphs: by the values that they make, by their names, then by their structure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from onnx import AttributeProto, NodeProto

from dmlc.onnx_schema.domains import operator_of
from dmlc.onnx_schema.nested import holds_graphs

#: Passes over the nodes at most; each takes the nodes behind one more change of nodes side by side.
_SWEEPS = 8


@dataclass(slots=True)
class NodePairs:
    """Positions of paired nodes, and for the values of the first graph the name that the second gives them."""

    nodes: dict[int, int] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)

    def name_of(self, value: str) -> str:
        return self.values.get(value, value)


def label_of(node: NodeProto) -> str:
    """The name of a node; one without a name is called by its first result."""
    return node.name or next((name for name in node.output if name), operator_of(node))


def plain_attributes(node: NodeProto) -> dict[str, AttributeProto]:
    """The attributes that are not graphs, by name."""
    return {entry.name: entry for entry in node.attribute if not holds_graphs(entry)}


def pair_nodes(a: Sequence[NodeProto], b: Sequence[NodeProto], shared: Mapping[str, str]) -> NodePairs:
    """Pair nodes of one operator. ``shared`` maps inputs and constants of the first graph to those of the second."""
    pairs = NodePairs(values=dict(shared))
    taken: set[int] = set()

    def pair(i: int, j: int) -> None:
        pairs.nodes[i] = j
        taken.add(j)
        pairs.values |= {x: y for x, y in zip(a[i].output, b[j].output, strict=False) if x and y}

    makers = {name: j for j, node in enumerate(b) for name in node.output if name}
    names = _unique_names(b)
    own_names = _unique_names(a)
    for i, node in enumerate(a):
        places = [makers[name] for name in node.output if name in makers]
        if places and places[0] not in taken and operator_of(b[places[0]]) == operator_of(node):
            pair(i, places[0])
    for i, node in enumerate(a):
        j = names.get(node.name) if node.name in own_names else None
        if i not in pairs.nodes and j is not None and j not in taken and operator_of(b[j]) == operator_of(node):
            pair(i, j)
    _pair_by_structure(a, b, pairs, taken, pair)
    return pairs


def _unique_names(nodes: Sequence[NodeProto]) -> dict[str, int]:
    places: dict[str, list[int]] = defaultdict(list)
    for i, node in enumerate(nodes):
        if node.name:
            places[node.name].append(i)
    return {name: found[0] for name, found in places.items() if len(found) == 1}


def _pair_by_structure(
    a: Sequence[NodeProto], b: Sequence[NodeProto], pairs: NodePairs, taken: set[int], pair: Any
) -> None:
    """Pair what is left where operator, attributes and operands are the same, so that other names are not changes.

    A node that has no such partner stands beside the only one left of the same operands: they are paired if they are of
    one operator. Their results are taken for the same values in either case, so that the nodes behind one change pair.
    """
    waiting: dict[tuple[Any, ...], list[int]] = defaultdict(list)
    beside: dict[tuple[Any, ...], set[int]] = defaultdict(set)
    for j in reversed(range(len(b))):
        if j not in taken:
            waiting[_structure(b[j], b[j].input)].append(j)
            beside[_operands(b[j], b[j].input)].add(j)
    for sweep in range(_SWEEPS):
        before = len(pairs.values), len(pairs.nodes)
        for i, node in enumerate(a):
            if i in pairs.nodes:
                continue
            inputs = [pairs.name_of(name) for name in node.input]
            found = waiting.get(_structure(node, inputs), [])
            while found and found[-1] in taken:
                found.pop()
            others = beside.get(_operands(node, inputs), set())
            partner = found[-1] if found else next(iter(others)) if sweep and len(others) == 1 else None
            if partner is None:
                continue
            if operator_of(b[partner]) == operator_of(node):
                pair(i, partner)
                beside[_operands(b[partner], b[partner].input)].discard(partner)
            elif not any(name in pairs.values for name in node.output):
                others.discard(partner)
                pairs.values |= {x: y for x, y in zip(node.output, b[partner].output, strict=True) if x and y}
        if sweep and before == (len(pairs.values), len(pairs.nodes)):
            return


def _operands(node: NodeProto, inputs: Sequence[str]) -> tuple[Any, ...]:
    return tuple(inputs), len(node.output)


def _structure(node: NodeProto, inputs: Sequence[str]) -> tuple[Any, ...]:
    attributes = sorted(entry.SerializeToString(deterministic=True) for entry in node.attribute)
    return operator_of(node), tuple(inputs), len(node.output), tuple(attributes)
