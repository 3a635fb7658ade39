"""The kernel table of a target: one that was handed in with it, or else the data file's."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from dmlc.ir import DTYPE_BY_NAME
from dmlc.targets.kernel_rows import INSERTED, KernelTable
from dmlc.targets.schema import is_name, is_range, is_text, need
from dmlc.targets.target import Target, load_data

#: Each opset of a row is looked up by itself, so that a row has few.
_MOST_OPSET = 1000


def parse_kernels(data: dict[str, Any], file: str) -> KernelTable:
    """The kernel table of a document. Raises ``DmlcError`` E0590."""
    need(is_name(data.get("source")), file, "it has a source")
    operators = data.get("operators")
    need(isinstance(operators, dict) and bool(operators), file, "operators are an object")
    for op, rows in dict(operators or {}).items():
        need(is_text(op) and isinstance(rows, list) and bool(rows), file, f"{op}: rows are a list")
        for row in rows:
            fine = isinstance(row, list) and len(row) == 3 and is_range(row[:2]) and row[1] <= _MOST_OPSET
            need(fine and isinstance(row[2], dict), file, f"{op}: a row is two opsets and types by parameter")
            for parameter, names in row[2].items():
                need(is_text(parameter) and is_text(names), file, f"{op}: types are one text")
                unknown = sorted(set(names.split()) - DTYPE_BY_NAME.keys() - {INSERTED})
                need(not unknown, file, f"{op}: there is no type {', '.join(unknown)}")
    return KernelTable(data["source"], operators)  # type: ignore[arg-type]


@lru_cache(maxsize=4)
def _table(name: str) -> KernelTable:
    return parse_kernels(load_data(name), f"{name}.json")


def operators_of(name: str) -> dict[str, list[list[Any]]]:
    """The rows of a data file by operator."""
    operators: dict[str, list[list[Any]]] = load_data(name)["operators"]
    return operators


def kernel_table(target: Target) -> KernelTable | None:
    """The table that a target's nodes must be legal for; None where it has none."""
    if target.table is not None:
        return target.table
    return None if target.kernels is None else _table(target.kernels)
