"""The place to cut a graph in two: as few values as possible, as near to the middle as the runs that are left ask."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import accumulate

import networkx as nx

from dmlc.debugging.submodels import NodeGraph

#: Minimum cuts are computed among at most this many nodes; above, only dominators and positions in an order are tried.
_MOST_NODES = 1500
#: So many of the dominators in reach are looked at, those nearest to the middle.
_MOST_DOMINATORS = 4
_SOURCE, _SINK = "source", "sink"


@dataclass(frozen=True, slots=True)
class Cut:
    """A set of nodes with all that they depend on, and the number of values that leave it."""

    part: frozenset[int]
    width: int


class CutChoice:
    """Cuts of one graph."""

    def __init__(self, graph: NodeGraph) -> None:
        self._graph = graph
        self._orders = (tuple(range(len(graph))), _depth_first(graph))
        self._dominators = _dominators(graph)

    def best(
        self, below: Set[int], above: Set[int], least: int, most: int, refused: Collection[Set[int]]
    ) -> Cut | None:
        """The narrowest cut that adds ``least`` to ``most`` nodes to ``below`` and stays within ``above``.

        Of equal ones the most even; ``refused`` are not taken. None where none is left.
        """
        middle = (len(above) - len(below)) / 2
        found: list[tuple[int, float, list[int], frozenset[int]]] = []
        for part in self._candidates(below, above, least, most, refused):
            added = len(part) - len(below)
            if least <= added <= most and part not in refused and below < part < above:
                found.append((self._graph.crossing(part), abs(added - middle), sorted(part - below), part))
        if not found:
            return None
        width, _, _, part = min(found)
        return Cut(part, width)

    def _candidates(
        self, below: Set[int], above: Set[int], least: int, most: int, refused: Collection[Set[int]]
    ) -> Iterator[frozenset[int]]:
        """Cuts at dominators; at each position of an order; the minimum cut between the ends of the window."""
        middle = (len(below) + len(above)) / 2
        near = [(size, node) for size, node in self._dominators if least <= size - len(below) <= most]
        for _, node in sorted(near, key=lambda found: abs(found[0] - middle))[:_MOST_DOMINATORS]:
            part = frozenset(self._graph.ancestors([node]))
            if below <= part <= above:
                yield part
        for order in self._orders:
            open_nodes = [number for number in order if number in above and number not in below]
            if most > least and len(open_nodes) <= _MOST_NODES:
                yield _minimum_cut(self._graph, below, open_nodes[:least], open_nodes[least:most])
            yield from self._at_positions(below, open_nodes, range(least, most + 1), refused)

    def _at_positions(
        self, below: Set[int], order: Sequence[int], sizes: range, refused: Collection[Set[int]]
    ) -> Iterator[frozenset[int]]:
        """The cut of an order at which the fewest values cross, and the one nearest to the middle."""
        widths = _widths(self._graph, below, order)
        middle = len(order) / 2
        for by_width in (True, False):
            for size in sorted(sizes, key=lambda size: (by_width and widths[size], abs(size - middle), size)):
                part = frozenset([*below, *order[:size]])
                if part not in refused:
                    yield part
                    break


def _widths(graph: NodeGraph, below: Set[int], order: Sequence[int]) -> list[int]:
    """Numbers of values that cross, after each number of nodes of an order."""
    inside = set(below)
    unread = {  # values made inside, and how many of their readers are not inside yet
        name: sum(reader not in inside for reader in graph.readers.get(name, ()))
        for number in inside
        for name in graph.makes[number]
    }
    width = sum(count > 0 for count in unread.values())
    out = [width]
    for number in order:
        for name in graph.reads[number]:
            unread[name] -= 1
            width -= unread[name] == 0
        for name in graph.makes[number]:
            unread[name] = len(graph.readers.get(name, ()))
            width += unread[name] > 0
        out.append(width)
    return out


def _depth_first(graph: NodeGraph) -> tuple[int, ...]:
    """A topological order that finishes one branch before the next."""
    seen: set[int] = set()
    out: list[int] = []
    ends = [n for n, names in enumerate(graph.makes) if any(map(graph.is_result, names))]
    pending = [(number, False) for number in reversed(ends)]
    while pending:
        number, is_done = pending.pop()
        if is_done:
            out.append(number)
        elif number not in seen:
            seen.add(number)
            pending.append((number, True))
            pending += [(graph.makers[name], False) for name in reversed(graph.reads[number])]
    return tuple(out)


def _dominators(graph: NodeGraph) -> list[tuple[int, int]]:
    """The nodes that every way to the outputs goes through, and how many nodes lie before each, itself included."""
    flow = nx.DiGraph()
    flow.add_nodes_from((_SOURCE, _SINK))
    for number, names in enumerate(graph.makes):
        if not graph.reads[number]:
            flow.add_edge(_SOURCE, number)
        for name in names:
            flow.add_edges_from((number, reader) for reader in graph.readers.get(name, ()))
            if graph.is_result(name):
                flow.add_edge(number, _SINK)
    parents = nx.immediate_dominators(flow, _SOURCE)
    chain: list[int] = []
    node = parents.get(_SINK, _SOURCE)
    while node != _SOURCE:
        chain.append(node)
        node = parents[node]
    chain.reverse()
    places = {node: place for place, node in enumerate(chain)}
    first: dict[int, int] = {}  # the first dominator that each node comes before
    counts = [0] * (len(chain) + 1)
    for number in reversed(range(len(graph))):
        readers = (first[reader] for name in graph.makes[number] for reader in graph.readers.get(name, ()))
        first[number] = min([places.get(number, len(chain)), *readers])
        counts[first[number]] += 1
    return list(zip(accumulate(counts), chain, strict=False))


def _minimum_cut(graph: NodeGraph, below: Set[int], first: Sequence[int], free: Sequence[int]) -> frozenset[int]:
    """The nodes on this side of the fewest values: ``below`` and ``first`` are, some of ``free``, and no others."""
    inside, between = {*below, *first}, set(free)
    flow = nx.DiGraph()
    flow.add_nodes_from((_SOURCE, _SINK))

    def end(number: int) -> int | str:
        return _SOURCE if number in inside else number if number in between else _SINK

    touched = {name for number in free for name in (*graph.makes[number], *graph.reads[number])}
    for name in sorted(touched):
        maker, readers = end(graph.makers[name]), {end(reader) for reader in graph.readers.get(name, ())}
        value = f"value {name}"
        flow.add_edge(maker, value, capacity=1)
        for reader in sorted(readers, key=str):
            flow.add_edge(value, reader)  # without a capacity it is not cut
            if isinstance(reader, int):
                flow.add_edge(reader, maker)  # a node on this side has its operands on this side
    _, (near, _) = nx.minimum_cut(flow, _SOURCE, _SINK)
    return frozenset(inside | {number for number in free if number in near})
