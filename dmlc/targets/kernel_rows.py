"""The rows of a kernel table: which operator runs on which element types at which opset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dmlc.ir import DTYPE_BY_NAME, DType
from dmlc.ir.dtype import f16

#: In rows: f16 that ONNX Runtime computes in f32, with casts that it inserts by itself.
INSERTED = "(f16)"
_NONE: frozenset[DType] = frozenset()


class KernelTable:
    """The kernels of one execution provider, per operator as rows ``[first model opset, last, {parameter: types}]``.

    ``source`` says where they are from. ``wrong`` are operators and types that the release of the provider computes
    wrongly, as far as that release is known.
    """

    def __init__(
        self,
        source: str,
        operators: Mapping[str, Sequence[Sequence[Any]]],
        wrong: frozenset[tuple[str, str]] = frozenset(),
    ) -> None:
        self.source = source
        self._wrong = wrong
        self._operators = frozenset(operators)
        self._types: dict[tuple[str, str, int], frozenset[DType]] = {}
        self._inserted: set[tuple[str, str, int]] = set()
        self._last = max(last for rows in operators.values() for _, last, _ in rows)
        for op, rows in operators.items():
            for first, last, parameters in rows:
                for parameter, names in parameters.items():
                    words = names.split()
                    dtypes = frozenset([DTYPE_BY_NAME[n] for n in words if n != INSERTED])
                    for opset in range(first, last + 1):
                        self._types[op, parameter, opset] = dtypes
                        if INSERTED in words:
                            self._inserted.add((op, parameter, opset))

    def knows(self, op: str) -> bool:
        """True if the table has rows of the operator; it says nothing of others."""
        return op in self._operators

    def dtypes(self, op: str, opset: int, parameter: str = "T", *, inserted: bool = False) -> frozenset[DType]:
        """The element types of the operator's type parameter at a model opset; empty where it has no kernel.

        With ``inserted`` also f16 where ONNX Runtime computes it in f32 with casts of its own. It takes out such casts
        between two nodes, so that what lies between is not rounded to f16. Kernels stay: what the last opset of the
        table has, later ones have.
        """
        opset = min(opset, self._last)
        found = self._types.get((op, parameter, opset), _NONE)
        return found | {f16} if inserted and (op, parameter, opset) in self._inserted else found

    def is_wrong(self, op: str, dtype: DType) -> bool:
        """True if the release of the provider is known to compute the operator wrongly on the type."""
        return (op, dtype.name) in self._wrong

    def rows(self) -> list[tuple[str, str, int, frozenset[DType]]]:
        """(operator, type parameter, opset, types) of the whole table."""
        return [(*key, types) for key, types in self._types.items()]
