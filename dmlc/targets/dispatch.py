"""How many compute dispatches a node issues on DirectML, as far as it was counted; an estimate for the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from dmlc.ir import Dim, product
from dmlc.targets.target import load_data


@dataclass(frozen=True, slots=True)
class DispatchRow:
    """What is known of an operator.

    ``per_row`` more are issued for each row along the operator's axis, ``apart`` more where its axes are no neighbours.
    """

    count: int
    source: str
    per_row: int = 0
    apart: int = 0


@lru_cache(maxsize=1)
def _table() -> tuple[DispatchRow, dict[str, DispatchRow]]:
    data = load_data("dispatch")
    rows: dict[str, DispatchRow] = {}
    for row in data["rows"]:
        facts = DispatchRow(**{key: value for key, value in row.items() if key != "operators"})
        rows |= dict.fromkeys(row["operators"], facts)
    return DispatchRow(**data["default"]), rows


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
