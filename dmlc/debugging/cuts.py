"""The place to cut a graph in two: as few values as possible, as near to the middle as the runs that are left ask."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence, Set
from dataclasses import dataclass

from dmlc.debugging.submodels import NodeGraph


@dataclass(frozen=True, slots=True)
class Cut:
    """A set of nodes with all that they depend on, and the number of values that leave it."""

    part: frozenset[int]
    width: int


class CutChoice:
    """Cuts of one graph: positions in two orders of its nodes. Every order has such a position behind a node that all
    ways to the outputs go through."""

    def __init__(self, graph: NodeGraph) -> None:
        self._graph = graph
        self._orders = (tuple(range(len(graph))), _depth_first(graph))

    def best(
        self, below: Set[int], above: Set[int], least: int, most: int, refused: Collection[Set[int]]
    ) -> Cut | None:
        """The narrowest cut that adds ``least`` to ``most`` nodes to ``below`` and stays within ``above``.

        Of equal ones the most even; ``refused`` are not taken. None where none is left.
        """
        middle = (len(above) - len(below)) / 2
        found: list[tuple[int, float, list[int], frozenset[int]]] = []
        for order in self._orders:
            open_nodes = [number for number in order if number in above and number not in below]
            parts = self._at_positions(below, open_nodes, range(least, most + 1), refused)
            found += [
                (self._graph.crossing(part), abs(len(part) - len(below) - middle), sorted(part), part)
                for part in parts
                if below < part < above
            ]
        if not found:
            return None
        width, _, _, part = min(found)
        return Cut(part, width)

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
