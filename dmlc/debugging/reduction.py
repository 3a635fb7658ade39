"""The fewest nodes of a model that still show a fault: nodes are dropped, and values that they made are fed instead."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from dmlc.debugging.checks import BAD
from dmlc.debugging.search_setup import SearchSetup


@dataclass(frozen=True, slots=True)
class ModelPart:
    """Nodes of a model by number, and the values that are outputs."""

    nodes: frozenset[int]
    outputs: tuple[str, ...]


class NodeReduction:
    """Reduction by delta debugging, as Zeller and Hildebrandt describe it (https://doi.org/10.1109/32.988498)."""

    def __init__(self, setup: SearchSetup, most_runs: int) -> None:
        self._setup, self._most_runs = setup, most_runs
        self._graph = setup.graph

    def around(self, number: int, regions: Sequence[Collection[int]] = ()) -> ModelPart | None:
        """A part with the fault: one node, else one of the regions, else the node and more and more around it.

        None if none of them has it.
        """
        for nodes in self._growing(number, regions):
            part = ModelPart(nodes, tuple(self._graph.leaving(nodes)))
            if self._is_bad(part):
                return part
        return None

    def _growing(self, number: int, regions: Sequence[Collection[int]]) -> Iterator[frozenset[int]]:
        """The node; the regions; nodes up to 1, 2, 4, ... steps before it, and as far from it in any direction."""
        yield frozenset([number])
        yield from map(frozenset, regions)
        before, around, step = {number}, {number}, 1
        while len(around) < len(self._graph):
            seen = len(before), len(around)
            for _ in range(step):
                before |= self._operands(before)
                around |= self._operands(around) | self._readers(around)
            if (len(before), len(around)) == seen:
                break
            step *= 2
            yield frozenset(before)
            yield frozenset(around)
        yield frozenset(range(len(self._graph)))

    def _operands(self, part: Collection[int]) -> set[int]:
        return {self._graph.makers[name] for node in part for name in self._graph.reads[node]}

    def _readers(self, part: Collection[int]) -> set[int]:
        readers = self._graph.readers
        return {reader for node in part for name in self._graph.makes[node] for reader in readers.get(name, ())}

    def reduced(self, part: ModelPart) -> ModelPart:
        """A part with the fault from which no node can be dropped, nor an output."""
        part = self._with_fewer_outputs(part)
        size = max(1, len(part.nodes) // 2)
        while True:
            before = part
            part = self._without_chunks(part, size)
            if size == 1 and part == before:
                return self._with_fewer_outputs(part)
            size = max(1, min(size // 2, len(part.nodes) // 2))

    def _without_chunks(self, part: ModelPart, size: int) -> ModelPart:
        """Drop runs of so many nodes, from the start on, wherever the fault stays."""
        left, start = sorted(part.nodes), 0
        while start < len(left) and len(left) > 1:
            kept = left[:start] + left[start + size :]
            found = self._kept(part, frozenset(kept)) if kept else None
            if found is not None:
                part, left = found, kept
            else:
                start += size
        return part

    def _kept(self, part: ModelPart, nodes: frozenset[int]) -> ModelPart | None:
        """The part with these nodes alone, if it has the fault."""
        made = {name for number in nodes for name in self._graph.makes[number]}
        outputs = [name for name in part.outputs if name in made]
        outputs += [name for name in self._ends(nodes) if name not in outputs]
        found = ModelPart(nodes, tuple(outputs))
        return found if self._is_bad(found) else None

    def _ends(self, nodes: Collection[int]) -> list[str]:
        """Values that leave a part and that no node inside reads."""
        read = {name for number in nodes for name in self._graph.reads[number]}
        return [name for name in self._graph.leaving(nodes) if name not in read]

    def _with_fewer_outputs(self, part: ModelPart) -> ModelPart:
        """The part with one output, else with those alone that no node inside reads, if the fault stays."""
        if len(part.outputs) == 1:
            return part
        ends = tuple(self._ends(part.nodes))
        tries = [*((name,) for name in (*ends, *part.outputs)), ends]
        for outputs in dict.fromkeys(tries):
            found = ModelPart(part.nodes & self._needed(outputs), outputs)
            if outputs and found != part and self._is_bad(found):
                return found
        return part

    def _needed(self, outputs: Collection[str]) -> set[int]:
        return self._graph.ancestors(self._graph.makers[name] for name in outputs)

    def _is_bad(self, part: ModelPart) -> bool:
        setup = self._setup
        if setup.runs >= self._most_runs:
            return False
        setup.progress(f"run {setup.runs + 1}, {len(part.nodes)} of {len(self._graph)} nodes")
        found = setup.checked_part(part.nodes, fed=True, outputs=part.outputs, all_inputs=False)
        return found.status == BAD
