"""Kernel tables: which operator runs on which element types at which opset."""

from __future__ import annotations

from functools import lru_cache

from dmlc.ir import DTYPE_BY_NAME, DType
from dmlc.ir.dtype import f16
from dmlc.targets.target import Target, load_data

#: In the data: f16 that ONNX Runtime computes in f32.
_INSERTED = "(f16)"
_NONE: frozenset[DType] = frozenset()


class KernelTable:
    """The kernels of one execution provider. A row holds for a range of model opsets."""

    def __init__(self, name: str) -> None:
        data = load_data(name)
        self.source: str = data["source"]
        self._types: dict[tuple[str, str, int], frozenset[DType]] = {}
        self._inserted: set[tuple[str, str, int]] = set()
        self._last = max(last for rows in data["operators"].values() for _, last, _ in rows)
        for op, rows in data["operators"].items():
            for first, last, parameters in rows:
                for parameter, names in parameters.items():
                    words = names.split()
                    dtypes = frozenset([DTYPE_BY_NAME[n] for n in words if n != _INSERTED])
                    for opset in range(first, last + 1):
                        self._types[op, parameter, opset] = dtypes
                        if _INSERTED in words:
                            self._inserted.add((op, parameter, opset))

    def dtypes(self, op: str, opset: int, parameter: str = "T", *, inserted: bool = False) -> frozenset[DType]:
        """The element types of the operator's type parameter at a model opset; empty where it has no kernel.

        With ``inserted`` also f16 where ONNX Runtime computes it in f32 with casts of its own. It takes out such casts
        between two nodes, so that what lies between is not rounded to f16. Kernels stay: what the last opset of the
        table has, later ones have.
        """
        opset = min(opset, self._last)
        found = self._types.get((op, parameter, opset), _NONE)
        return found | {f16} if inserted and (op, parameter, opset) in self._inserted else found

    def rows(self) -> list[tuple[str, str, int, frozenset[DType]]]:
        """(operator, type parameter, opset, types) of the whole table."""
        return [(*key, types) for key, types in self._types.items()]


@lru_cache(maxsize=4)
def _table(name: str) -> KernelTable:
    return KernelTable(name)


def kernel_table(target: Target) -> KernelTable | None:
    """The table that a target's nodes must be legal for; None where it has none."""
    return None if target.kernels is None else _table(target.kernels)
