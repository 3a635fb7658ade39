"""Nodes whose result may show that f16 was not rounded.

ONNX Runtime's CPU provider computes most f16 operators in f32 and removes the casts between two of them, so that
intermediate values are not rounded to f16. Selections and functions that jump can then differ from DirectML, and from
the reference.
"""

from __future__ import annotations

from dmlc.diagnostics.counted import first_of
from dmlc.ir import Node, Operation, Value
from dmlc.ir.dtype import f16
from dmlc.ops import binary, choose, elementwise, index, move, select
from dmlc.ops.constant import CONSTANT

#: Their results jump where an operand changes a little.
_JUMPS: frozenset[Operation] = frozenset((
    select.ARGMAX, select.ARGMIN, select.TOP_K, select.HARDMAX,
    *(op for op in elementwise.UNARY if op.jumps),
    binary.EQUAL, binary.NOT_EQUAL, binary.LESS, binary.LESS_EQUAL, binary.GREATER, binary.GREATER_EQUAL,
    binary.FLOORDIV, binary.MOD,
))  # fmt: skip
#: Their results are elements of their operands, or exact.
_EXACT: frozenset[Operation] = frozenset((
    move.RESHAPE, move.TRANSPOSE, move.SQUEEZE, move.UNSQUEEZE, move.EXPAND, move.CONCAT, move.SPLIT, move.SLICE,
    move.PAD, move.TILE, index.GATHER, index.GATHER_ELEMENTS, index.SCATTER_ELEMENTS, choose.WHERE, choose.CLIP,
    *(op for op in elementwise.UNARY if op.rounding == "exact"), binary.MIN, binary.MAX,
    select.TOP_K, select.HARDMAX, index.ONE_HOT, index.IOTA, index.FULL, CONSTANT,
))  # fmt: skip
#: More names than these do not help a reader.
_SHOWN = 8


class RoundingWatch:
    """Collects the nodes that see f16 which the CPU provider did not round. Nodes are visited in their order."""

    def __init__(self) -> None:
        self.found: list[str] = []
        self._unrounded: set[Value] = set()

    def visit(self, node: Node, name: str) -> None:
        sees = any(value in self._unrounded for value in node.operands)
        if sees and (node.op in _JUMPS or (node.op is choose.CAST and not node.result.type.dtype.is_float)):
            self.found.append(name)
        if sees or node.op not in _EXACT:
            self._unrounded.update([value for value in node.results if value.type.dtype is f16])

    def sentence(self) -> str:
        """Return the note for the artifact's report."""
        return (
            "ONNX Runtime's CPU provider does not round f16 between nodes: near ties and jumps of "
            f"{first_of(self.found, _SHOWN)} may fall otherwise there"
        )
