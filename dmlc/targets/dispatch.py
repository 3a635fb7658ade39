"""Compute dispatches per node on DirectML: counts where they were measured, an estimate for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import lru_cache
from typing import Any

from dmlc.ir import Dim, product
from dmlc.records import dataclass
from dmlc.targets.schema import is_count, is_name, is_number, list_of, map_of, need, need_fields
from dmlc.targets.target import load_data


@dataclass(frozen=True, slots=True)
class DispatchRow:
    """Dispatch count of an operator, with its source.

    ``per_row`` more are issued for each row along the operator's axis, ``apart`` more if its axes are not adjacent.
    ``operands`` are the numbers of optional operands, each with how many more it takes.
    """

    count: int
    source: str
    per_row: int = 0
    apart: int = 0
    operands: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DispatchCost:
    """Estimated time of work on the device, to compare ways of computing the same result."""

    dispatch_us: float
    bytes_per_us: float
    source: str

    def microseconds(self, dispatches: float, bytes: float) -> float:
        """Return the time of a number of dispatches that read and write ``bytes`` in all."""
        return dispatches * self.dispatch_us + bytes / self.bytes_per_us


_COST = {"dispatch_us": is_number, "bytes_per_us": is_number, "source": is_name}
_ROW = {**dict.fromkeys(("count", "per_row", "apart"), is_count), "source": is_name, "operands": map_of(is_count)}


def parse_cost(document: dict[str, Any], file: str = "dispatch.json") -> DispatchCost:
    """The cost of a dispatch and of a byte. Raises ``DmlcError`` E0590."""
    data = document.get("cost", {})
    need_fields(data, _COST, file, "cost")
    need(data.keys() == _COST.keys(), file, "cost and its source must be said")
    cost = DispatchCost(**data)
    need(min(cost.dispatch_us, cost.bytes_per_us) > 0, file, "what work costs is above 0")
    return cost


@lru_cache(maxsize=1)
def dispatch_cost() -> DispatchCost:
    """The cost of a dispatch and of a byte. Raises ``DmlcError`` E0590."""
    return parse_cost(load_data("dispatch"))


def parse_rows(data: dict[str, Any], file: str = "dispatch.json") -> tuple[DispatchRow, dict[str, DispatchRow]]:
    """The row of operators that have none, and the rows by operator. Raises ``DmlcError`` E0590."""
    need(isinstance(data.get("rows"), list), file, "rows is a list")
    rows: dict[str, DispatchRow] = {}
    for row in data["rows"]:
        need(isinstance(row, dict) and list_of(is_name)(row.get("operators")), file, "a row has operators")
        facts = _row({key: value for key, value in row.items() if key != "operators"}, file)
        twice = [op for op in row["operators"] if op in rows]
        need(not twice, file, f"{', '.join(twice)} has two rows")
        rows |= dict.fromkeys(row["operators"], facts)
    return _row(data.get("default"), file), rows


def _row(facts: Any, file: str) -> DispatchRow:
    need_fields(facts, _ROW, file, "a row")
    need({"count", "source"} <= facts.keys() <= _ROW.keys(), file, "a row has a count and a source")
    return DispatchRow(**facts)


@lru_cache(maxsize=1)
def _table() -> tuple[DispatchRow, dict[str, DispatchRow]]:
    return parse_rows(load_data("dispatch"))


def dispatch_row(op_type: str) -> DispatchRow:
    """The facts of an ONNX operator; one dispatch where nothing else was counted."""
    default, rows = _table()
    return rows.get(op_type, default)


def dispatches(op_type: str, shape: Sequence[Dim] | None, axes: Sequence[int] | None) -> Dim | None:
    """The dispatches of a node over ``axes`` of an operand of that shape; None where they depend on what is not known.

    ``axes`` may be negative; None means that they are not known.
    """
    row = dispatch_row(op_type)
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
    return count
