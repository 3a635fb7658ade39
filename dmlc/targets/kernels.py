"""Kernel tables: which operator runs on which element types at which opset."""

from __future__ import annotations

from functools import lru_cache

from dmlc.ir import DTYPE_BY_NAME, DType
from dmlc.targets.target import Target, load_data

_NONE: frozenset[DType] = frozenset()


class KernelTable:
    """The kernels of one execution provider. A row holds for a range of model opsets.

    f16 stands where the provider has the f32 kernel and ONNX's schema allows f16: ONNX Runtime puts casts around
    such a node by itself.
    """

    def __init__(self, name: str) -> None:
        data = load_data(name)
        self.source: str = data["source"]
        self._types: dict[tuple[str, str, int], frozenset[DType]] = {}
        for op, rows in data["operators"].items():
            for first, last, parameters in rows:
                for parameter, names in parameters.items():
                    dtypes = frozenset(DTYPE_BY_NAME[n] for n in names.split())
                    for opset in range(first, last + 1):
                        self._types[op, parameter, opset] = dtypes

    def dtypes(self, op: str, opset: int, parameter: str = "T") -> frozenset[DType]:
        """The element types of the operator's type parameter at a model opset; empty where it has no kernel."""
        return self._types.get((op, parameter, opset), _NONE)

    def rows(self) -> list[tuple[str, str, int, frozenset[DType]]]:
        """(operator, type parameter, opset, types) of the whole table."""
        return [(*key, types) for key, types in self._types.items()]


@lru_cache(maxsize=4)
def _table(name: str) -> KernelTable:
    return KernelTable(name)


def kernel_table(target: Target) -> KernelTable | None:
    """The table that a target's nodes must be legal for; None where it has none."""
    return None if target.kernels is None else _table(target.kernels)
