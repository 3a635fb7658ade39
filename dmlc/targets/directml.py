"""DirectML's own tables: which tensors each operator takes at which feature level."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from dmlc.targets.rows import Rows
from dmlc.targets.target import load_data

#: The feature levels, for type checkers.
FeatureLevel: TypeAlias = Literal[
    "1.0", "2.0", "2.1", "3.0", "3.1", "4.0", "4.1", "5.0", "5.1", "5.2", "6.0", "6.1", "6.2", "6.3", "6.4"
]  # fmt: skip
_FILE, _LEVELS_FILE = "directml_operators", "feature_levels"
#: DirectML has no type of its own for it (FACTS: bool is UINT8).
_AS = {"bool": "u8"}


#: GEMM takes so many matrices along an axis (DirectML issue 650).
LARGEST_BATCH = 65535
#: So many f16 ones were summed to the right number (DirectML 1.15.4 on a software device); nobody measured more.
MEASURED_SUM = 4096


class TensorRow(Struct, frozen=True):
    """Ranks and element types that one tensor of an operator may have."""

    least: int
    most: int
    types: frozenset[str]


class OperatorRow(Struct, frozen=True):
    """An operator, or a function of REDUCE (``REDUCE.SUM``). ``levels`` are newest first; each holds from there on."""

    name: str
    introduced: str
    source: str
    levels: tuple[tuple[str, Mapping[str, TensorRow]], ...]
    measured: str = ""

    def at(self, level: str) -> Mapping[str, TensorRow] | None:
        """The tensors at a feature level; None where the operator does not exist yet."""
        asked = level_key(level)
        return next((tensors for since, tensors in self.levels if level_key(since) <= asked), None)


class Refusal(Struct, frozen=True):
    """A reason why DirectML does not take a tensor: the limit in words, its row, the first level without it."""

    operator: str
    limit: str
    source: str
    first_level: str | None


#: A tensor as a caller knows it: its element type and rank, None for what is not known.
Tensor = tuple["str | None", "int | None"]


@lru_cache(maxsize=64)
def level_key(level: str) -> tuple[int, ...]:
    """Feature levels in order. Raises ``ValueError`` for what is none."""
    return tuple(map(int, level.split(".")))


@lru_cache(maxsize=1)
def _levels() -> tuple[tuple[str, ...], str]:
    data = load_data(_LEVELS_FILE)
    return tuple([row["level"] for row in data["levels"]]), data["least"]


def feature_levels() -> tuple[str, ...]:
    """All of them, oldest first."""
    return _levels()[0]


def least_feature_level() -> str:
    """Return the feature level that ONNX Runtime's execution provider requires of a device."""
    return _levels()[1]


def parse_operators(data: dict[str, Any]) -> Mapping[str, OperatorRow]:
    """The rows of the document by name; few of them are asked for."""
    raw: dict[str, dict[str, Any]] = {}
    for row in data["rows"]:
        base = row["operator"]
        for function in row.get("functions", "").split() or [""]:
            raw[f"{base}.{function}" if function else base] = row
    return Rows(raw, _operator)


def _operator(name: str, row: dict[str, Any]) -> OperatorRow:
    levels = tuple((level, _tensors(tensors)) for level, tensors in row["levels"])
    return OperatorRow(name, row["introduced"], row["source"], levels, row.get("measured", ""))


def _tensors(tensors: Mapping[str, Any]) -> dict[str, TensorRow]:
    return {name: TensorRow(least, most, frozenset(types.split())) for name, (least, most, types) in tensors.items()}


@lru_cache(maxsize=1)
def operator_rows() -> Mapping[str, OperatorRow]:
    """Every row of the table."""
    return parse_operators(load_data(_FILE))


def refusal(row: OperatorRow, tensors: Mapping[str, Tensor], level: str) -> Refusal | None:
    """Return the reason why DirectML refuses the operator at the level with these tensors, or None.

    An unknown type or rank is not refused. A rank below the least one is allowed: axes of size 1 are put in front.
    """
    limit = _limit(row, tensors, level)
    return None if limit is None else Refusal(row.name, limit, row.source, first_level(row, tensors))


def first_level(row: OperatorRow, tensors: Mapping[str, Tensor]) -> str | None:
    """The first feature level at which DirectML takes these tensors; None where none does."""
    return next((level for level in feature_levels() if _limit(row, tensors, level) is None), None)


def _limit(row: OperatorRow, tensors: Mapping[str, Tensor], level: str) -> str | None:
    allowed = row.at(level)
    if allowed is None:
        return f"{row.name} exists from feature level {row.introduced} on, not at {level}"
    for name, (dtype, rank) in tensors.items():
        cell = allowed.get(name)
        if cell is None:
            continue
        if dtype is not None and _AS.get(dtype, dtype) not in cell.types:
            listed = " ".join(sorted(cell.types))
            return f"{name} of {row.name} takes {listed} at feature level {level}, not {dtype}"
        if rank is not None and rank > cell.most:
            return f"{name} of {row.name} takes up to {cell.most} axes at feature level {level}, not {rank}"
    return None
