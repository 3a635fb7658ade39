"""Partitions: the nodes of a graph that the DirectML provider compiles together.

The algorithm is that of onnxruntime's GraphPartitioner: neighbours are merged in topological order, and a partition is
closed when it feeds a node outside of it.
"""

from __future__ import annotations

from msgspec import Struct, field
from onnx import NodeProto


class Partitions(Struct):
    """``first`` is the number of partitions that other graphs have; ``off`` says that a node with a graph inside stands
    in this one, which turns fusion off."""

    first: int
    off: bool
    _parents: list[int] = field(default_factory=list)
    _closed: set[int] = field(default_factory=set)
    _made_by: dict[str, int] = field(default_factory=dict)

    def add(self, node: NodeProto, joins: bool) -> tuple[int | None, str]:
        """The number of the node's partition while they are built, or why it has none."""
        before = {self._root(self._made_by[name]) for name in node.input if name in self._made_by}
        if not joins:
            self._closed |= before
            return None, ""
        if self.off:
            return None, "a node with a graph inside (If, Loop, Scan) turns fusion off"
        open_ones = sorted(before - self._closed)
        self._closed |= before & self._closed
        if open_ones:
            number = open_ones[0]
            for other in open_ones[1:]:
                self._parents[other] = number
        else:
            number = len(self._parents)
            self._parents.append(number)
        self._made_by.update(dict.fromkeys(filter(None, node.output), number))
        return -1 - number, ""

    def _root(self, number: int) -> int:
        parents = self._parents
        while parents[number] != number:
            parents[number] = number = parents[parents[number]]  # halves the way for whoever asks next
        return number

    def finish(self) -> dict[int | None, int]:
        """The final number, from ``first`` on, of each that was given."""
        roots = sorted({self._root(number) for number in range(len(self._parents))})
        place = {root: self.first + index for index, root in enumerate(roots)}
        return {-1 - number: place[self._root(number)] for number in range(len(self._parents))}

    @property
    def total(self) -> int:
        return self.first + len({self._root(number) for number in range(len(self._parents))})
