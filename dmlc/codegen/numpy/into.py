"""Results that the fast style writes to their place at once, where a copy would follow."""

from __future__ import annotations

from dmlc.codegen.numpy.expr import Expr, name, with_keyword
from dmlc.codegen.numpy.registry import LOWERINGS, Call
from dmlc.ir import Value
from dmlc.ir.dtype import f32, f64
from dmlc.ops import binary, elementwise, normalize

_BINARY = {
    binary.ADD: "add",
    binary.SUB: "subtract",
    binary.MUL: "multiply",
    binary.DIV: "divide",
}
#: Those that are one call of a function that takes ``out``.
_CALLS = frozenset(
    (
        *(binary.MIN, binary.MAX, elementwise.RELU, elementwise.ABS),
        *(elementwise.EXP, elementwise.LOG, elementwise.SQRT, elementwise.TANH),
        *(normalize.SOFTMAX, normalize.LOG_SOFTMAX),
    )
)


def may_be_written_into(value: Value) -> bool:
    """Whether the operation that gives a value may be told where to write it."""
    node = value.producer
    known = node is not None and (node.op in _BINARY or node.op in _CALLS)
    return known and value.type.dtype in (f32, f64) and value.type.rank > 0


def lower_into(call: Call, target: str) -> Expr:
    """The expression of such a node, which also writes its result to ``target``, unless that is ``None``."""
    function = _BINARY.get(call.node.op)
    if function is not None:
        return call.np(function, *call.pair(), out=name(target))
    return with_keyword(LOWERINGS[call.node.op].lower(call), "out", name(target))
