"""Sides whose inputs or outputs have other names: they are compared by position."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dmlc.runtime.runnable import NoEvidence
from dmlc.verifying.inputs import Feeds, Interface
from dmlc.verifying.subject import Subject, unlike_names


def by_position(first: Subject, second: Subject) -> Subject:
    """Return the second side under the names of the first; itself where it has these names, in any order.

    Raises ``NoEvidence`` where the numbers of inputs or outputs differ.
    """
    pairs = (("inputs", first.inputs, second.inputs), ("outputs", first.outputs, second.outputs))
    if all(sorted(a) == sorted(b) for _, a, b in pairs):
        return second
    for what, a, b in pairs:
        if len(a) != len(b):
            raise NoEvidence(f"nothing was compared: {unlike_names(what, a, b)}")
    return _Positioned(first, second)


def renaming_note(second: Subject) -> str:
    """The sentence on the names that ``by_position`` changed; empty where it changed none."""
    if not isinstance(second, _Positioned):
        return ""
    changed = [f"{mine} is {name} in B" for mine, name in second.names.items() if mine != name]
    return f"compared by position: {', '.join(changed)}"


class _Positioned(Subject):
    """A model run under the value names of another model. ``names`` maps the other's names to its own."""

    def __init__(self, like: Subject, side: Subject) -> None:
        super().__init__(like.inputs, like.outputs, side.size, is_program=side.is_program)
        self._side = side
        self.names: dict[str, str] = dict(
            zip((*like.inputs, *like.outputs), (*side.inputs, *side.outputs), strict=True)
        )
        self._back = {name: mine for mine, name in self.names.items()}
        self.kinds, self.composites = self._renamed(side.kinds), self._renamed(side.composites)
        self.types: dict[str, str] = self._renamed(getattr(side, "types", {}))

    def _renamed(self, values: Mapping[str, Any]) -> dict[str, Any]:
        return {self._back.get(name, name): value for name, value in values.items()}

    def _given(self, feeds: Feeds) -> Feeds:
        return {self.names.get(name, name): value for name, value in feeds.items()}

    def interfaces(self) -> list[Interface]:
        found = self._side.interfaces()
        return [
            replace(
                one, inputs=tuple([replace(spec, name=self._back.get(spec.name, spec.name)) for spec in one.inputs])
            )
            for one in found
        ]

    def run(self, feeds: Feeds, wanted: Sequence[str] | None = None) -> dict[str, Any]:
        names = None if wanted is None else [self.names.get(name, name) for name in wanted]
        return self._renamed(self._side.run(self._given(feeds), names))

    def run_optimized(self, feeds: Feeds, without: Sequence[str] = ()) -> dict[str, Any] | None:
        found = self._side.run_optimized(self._given(feeds), without)
        return None if found is None else self._renamed(found)
