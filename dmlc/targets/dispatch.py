"""Compute dispatches per node on a provider: counts where they were measured, an estimate for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec import Struct, field

from dmlc.ir import Dim, product
from dmlc.targets.target import load_data


class DispatchRow(Struct, frozen=True):
    """Dispatch count of an operator, with its source.

    ``per_row`` more are issued for each row along the operator's axis, ``apart`` more if its axes are not adjacent,
    ``before`` more if they are not the last ones in their order, ``unprepared`` more for weights
    that no session prepares.
    ``operands`` are the numbers of optional operands, each with how many more it takes.
    """

    count: int
    source: str
    per_row: int = 0
    apart: int = 0
    before: int = 0
    unprepared: int = 0
    operands: Mapping[str, int] = field(default_factory=dict)


class DispatchCost(Struct, frozen=True):
    """Estimated time of work on the device, to compare ways of computing the same result."""

    dispatch_us: float
    bytes_per_us: float
    source: str

    def microseconds(self, dispatches: float, bytes: float) -> float:
        """Return the time of a number of dispatches that read and write ``bytes`` in all."""
        return dispatches * self.dispatch_us + bytes / self.bytes_per_us


@lru_cache(maxsize=1)
def dispatch_cost() -> DispatchCost:
    """The cost of a dispatch and of a byte."""
    return DispatchCost(**load_data("dispatch")["cost"])


def parse_rows(data: Mapping[str, Any]) -> tuple[DispatchRow, dict[str, DispatchRow]]:
    """The row of operators that have none, and the rows by operator."""
    rows: dict[str, DispatchRow] = {}
    for row in data["rows"]:
        facts = DispatchRow(**{key: value for key, value in row.items() if key != "operators"})
        rows |= dict.fromkeys(row["operators"], facts)
    return DispatchRow(**data["default"]), rows


#: The table of DirectML.
DIRECTML = "dispatch"


@lru_cache(maxsize=4)
def _table(name: str) -> tuple[DispatchRow, dict[str, DispatchRow]]:
    return parse_rows(load_data(name))


def dispatch_row(op_type: str, table: str = DIRECTML) -> DispatchRow:
    """The facts of an ONNX operator in a table; one dispatch where nothing else was counted."""
    default, rows = _table(table)
    return rows.get(op_type, default)


def dispatches(
    op_type: str, shape: Sequence[Dim] | None, axes: Sequence[int] | None, table: str = DIRECTML
) -> Dim | None:
    """The dispatches of a node over ``axes`` of an operand of that shape; None where they depend on what is not known.

    ``axes`` may be negative; None means that they are not known.
    """
    row = dispatch_row(op_type, table)
    count: Dim = row.count
    if row.per_row:
        if shape is None or axes is None or not all(-len(shape) <= a < len(shape) for a in axes):
            return None
        along = {a % len(shape) for a in axes}
        count = count + row.per_row * product([d for i, d in enumerate(shape) if i not in along])
    if row.apart and shape and axes:
        numbers = {a % len(shape) for a in axes}
        between = [i for i in range(min(numbers), max(numbers)) if i not in numbers and shape[i] != 1]
        count = count + row.apart * bool(between)
    if row.before and shape and axes:
        given = [a % len(shape) for a in axes]
        count = count + row.before * (given != [*range(len(shape) - len(given), len(shape))])
    return count
