"""Every operation of the language, by the name or sign that calls it."""

from dmlc.ir import Operation
from dmlc.ops import binary, choose, derived, elementwise, index, matmul, move, normalize, reduce, scan, select
from dmlc.ops.constant import CONSTANT

#: The operations of the language reference, in families.
FAMILIES: dict[str, tuple[Operation, ...]] = {
    "Selection": (*select.SELECTIONS, derived.SORT, derived.ARGSORT),
    "Reductions": (*reduce.REDUCTIONS, derived.REDUCE_ANY, derived.REDUCE_ALL),
    "Normalization": normalize.NORMALIZATIONS,
    "Scans": scan.SCANS,
    "Elementwise, one operand": elementwise.UNARY,
    "Elementwise, two operands": binary.BINARY,
    "Choosing and converting": choose.CHOICES,
    "Moving": (*move.MOVES, derived.STACK, derived.FLIP),
    "Indices and filled tensors": index.INDEXING,
    "Matrix product": (matmul.MATMUL,),
}

_LANGUAGE: tuple[Operation, ...] = tuple([op for family in FAMILIES.values() for op in family])

#: The infix operations, by sign.
INFIX: dict[str, Operation] = {op.symbol: op for op in binary.BINARY if op.symbol}

#: The prefix operations, by sign.
PREFIX: dict[str, Operation] = {"-": elementwise.NEG, "!": elementwise.NOT}

#: The operations that have a call form, by their name in programs; of the infix ones only pow.
OPERATIONS: dict[str, Operation] = {
    op.name: op for op in _LANGUAGE if op is binary.POW or INFIX.get(op.symbol or "") is not op
}

#: All operations that graphs hold, each once: those that stand for others become nodes of these.
ALL_OPERATIONS: tuple[Operation, ...] = (
    CONSTANT,
    *[op for op in _LANGUAGE if not isinstance(op, derived.DerivedOperation)],
)

__all__ = ["ALL_OPERATIONS", "FAMILIES", "INFIX", "OPERATIONS", "PREFIX"]
