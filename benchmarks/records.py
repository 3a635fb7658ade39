"""The options and the results of a suite."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from typing import Any

#: The variant that is dmlc's own.
OURS = "dmlc"


@dataclass(frozen=True)
class Settings:
    """``quick`` takes sizes that only prove that a suite works."""

    threads: int
    rounds: int
    quick: bool
    peers: tuple[str, ...]


@dataclass
class Case:
    """``seconds`` is the least time of a round by variant. ``bound`` names the variant that only reads (or copies) the
    same bytes. ``wrong`` are the variants whose results differ; they are not timed. ``figures`` is what is no time.
    """

    suite: str
    name: str
    threads: int
    tags: tuple[str, ...] = ()
    bound: str | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    figures: dict[str, float] = field(default_factory=dict)
    wrong: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def ratio(self, other: str) -> float | None:
        """The time of another variant, in multiples of ours."""
        if OURS not in self.seconds or other not in self.seconds:
            return None
        return self.seconds[other] / self.seconds[OURS]

    def best(self, others: Iterable[str]) -> float | None:
        """The time of the best of others, in multiples of ours."""
        found = [r for r in map(self.ratio, others) if r is not None]
        return min(found) if found else None

    def over_bound(self, variant: str) -> float | None:
        """The time of a variant, in multiples of the bound."""
        if self.bound is None or self.bound not in self.seconds or variant not in self.seconds:
            return None
        return self.seconds[variant] / self.seconds[self.bound]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, row: dict[str, Any]) -> Case:
        return cls(**{**row, **{key: tuple(row[key]) for key in ("tags", "wrong", "notes")}})
