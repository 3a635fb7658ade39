"""Pairs of values that two models hold: by name, by nodes in metadata, by lines of a source, by structure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from onnx import GraphProto

from dmlc.debugging.constants import constant_of
from dmlc.debugging.insides import Inside, NodeRecord
from dmlc.debugging.node_pairs import PairedSide, structure_pairs


@dataclass(frozen=True, slots=True)
class ValuePair:
    """The name of a value in A and in B. A pair that is not ``certain`` counts only if types and shapes agree."""

    a: str
    b: str
    certain: bool = True


def value_pairs(a: Inside, b: Inside, outputs: Iterable[str]) -> list[ValuePair]:
    """The pairs on the way to these outputs of A, in its topological order; the outputs are among them."""
    wanted = list(outputs)
    found = _by_name(a, b)
    extras = [_by_sources(a, b), _by_sources(b, a, swapped=True), _by_places(a, b)]
    if a.model is not None and b.model is not None and found.keys() <= {*a.subject.outputs}:
        extras.append(
            _by_structure(a, b, a.model.graph, b.model.graph)
        )  # the weights of a model are read only where names say nothing
    for extra in extras:
        taken = {pair.b for pair in found.values()}
        found |= {name: pair for name, pair in extra.items() if name not in found and pair.b not in taken}
    found |= {name: ValuePair(name, name) for name in wanted}
    needed = ancestors(a.nodes, wanted) if a.nodes else ancestors(b.nodes, wanted)
    order = {name: number for number, name in enumerate(n for node in a.nodes or b.nodes for n in node.outputs)}
    return sorted(
        (pair for name, pair in found.items() if name in needed or name in wanted),
        key=lambda pair: order.get(pair.a, len(order)),
    )


def ancestors(nodes: Sequence[NodeRecord], values: Iterable[str]) -> set[str]:
    """The values that these depend on, and they themselves."""
    makers = {name: node for node in nodes for name in node.outputs}
    found: set[str] = set()
    pending = list(values)
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += makers[name].inputs if name in makers else ()
    return found


def _by_name(a: Inside, b: Inside) -> dict[str, ValuePair]:
    """Values of one name; what a function holds turns out when it has run."""
    if a.names is None or b.names is None:
        return {name: ValuePair(name, name, certain=False) for name in a.names or b.names or ()}
    return {name: ValuePair(name, name) for name in a.names & b.names}


def _by_sources(a: Inside, b: Inside, *, swapped: bool = False) -> dict[str, ValuePair]:
    """Values of nodes of B that name nodes of A in ``dmlc.from``.

    Nodes that share a source form a group; its result is the one value that nodes outside it read, on either side.
    """
    by_name = {node.name: node for node in a.nodes}
    groups: list[tuple[set[str], list[NodeRecord]]] = []
    places: dict[str, int] = {}
    for node in b.nodes:
        sources = {name for name in node.sources if name in by_name}
        if not sources:
            continue
        joined = {places[name] for name in sources if name in places}
        target = min(joined, default=len(groups))
        if target == len(groups):
            groups.append((set(), []))
        for other in joined - {target}:
            groups[target][0].update(groups[other][0])
            groups[target][1].extend(groups[other][1])
            groups[other] = (set(), [])
        groups[target][0].update(sources)
        groups[target][1].append(node)
        places |= dict.fromkeys(groups[target][0], target)
    readers = [_readers(side.nodes) for side in (a, b)]
    out = {}
    for names, nodes in groups:
        ends = [_ends([by_name[name] for name in sorted(names)], readers[0]), _ends(nodes, readers[1])]
        if len(ends[0]) == len(ends[1]) == 1:
            x, y = (ends[1][0], ends[0][0]) if swapped else (ends[0][0], ends[1][0])
            out[x] = ValuePair(x, y, certain=False)
    return out


def _by_structure(a: Inside, b: Inside, first: GraphProto, second: GraphProto) -> dict[str, ValuePair]:
    """Values that the same operators compute of the same inputs."""
    fed = {info.name for info in second.input} - b.constants.keys()
    inputs = {info.name: info.name for info in first.input if info.name in fed}
    nodes = [[node for node in graph.node if constant_of(node) is None] for graph in (first, second)]
    found = structure_pairs(PairedSide(nodes[0], a.constants), PairedSide(nodes[1], b.constants), inputs)
    return {x: ValuePair(x, y, certain=False) for x, y in found.values.items() if a.names is None or x in a.names}


def _readers(nodes: Sequence[NodeRecord]) -> Mapping[str, list[NodeRecord]]:
    found: dict[str, list[NodeRecord]] = defaultdict(list)
    for node in nodes:
        for name in node.inputs:
            found[name].append(node)
    return found


def _ends(group: Sequence[NodeRecord], readers: Mapping[str, list[NodeRecord]]) -> list[str]:
    """The results of the group that nodes outside it, or nobody, read."""
    inside = {id(node) for node in group}
    made = [name for node in group for name in node.outputs]
    return [name for name in made if not readers.get(name) or any(id(node) not in inside for node in readers[name])]


def _by_places(a: Inside, b: Inside) -> dict[str, ValuePair]:
    """Values of the only two nodes of one operator that come from one place in a source, and from no other."""
    left, right = (_at_places(side.nodes) for side in (a, b))
    pairs = [(left[key], right[key]) for key in left.keys() & right.keys()]
    return {x[0]: ValuePair(x[0], y[0], certain=False) for x, y in pairs if x and y}


def _at_places(nodes: Sequence[NodeRecord]) -> dict[tuple[str, str], tuple[str, ...]]:
    """The result of each operator at each place; empty if several are there."""
    found: dict[tuple[str, str], tuple[str, ...]] = {}
    for node in nodes:
        if len(node.places) == 1:
            key = node.places[0], node.key
            found[key] = () if key in found or len(node.outputs) != 1 else node.outputs
    return found
