"""Operands and types of DirectML's operators: the tables of ``targets``, and tables of operators used only here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from dmlc.targets.directml import OperatorRow, feature_levels, operator_rows, parse_operators
from dmlc.targets.target import load_data

_MORE = "dxdispatch_operators"


@lru_cache(maxsize=1)
def rows() -> Mapping[str, OperatorRow]:
    """Every row by the operator's name without ``DML_OPERATOR_``."""
    return {**parse_operators(load_data(_MORE)), **operator_rows()}


def newest_level() -> str:
    """The feature level of the DirectML that DxDispatch brings along."""
    return feature_levels()[-1]
