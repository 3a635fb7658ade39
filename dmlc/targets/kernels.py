"""The kernel table of a target: one that was handed in with it, or else the data file's."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from dmlc.targets.kernel_rows import KernelTable
from dmlc.targets.target import Target, load_data


@lru_cache(maxsize=4)
def _table(name: str) -> KernelTable:
    data = load_data(name)
    return KernelTable(data["source"], data["operators"])


def operators_of(name: str) -> dict[str, list[list[Any]]]:
    """The rows of a data file by operator."""
    operators: dict[str, list[list[Any]]] = load_data(name)["operators"]
    return operators


def kernel_table(target: Target) -> KernelTable | None:
    """The table that a target's nodes must be legal for; None where it has none."""
    if target.table is not None:
        return target.table
    return None if target.kernels is None else _table(target.kernels)
