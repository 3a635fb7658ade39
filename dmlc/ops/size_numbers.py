"""Numbers with dims as scalars of a dtype: constants where they are known, else read from a shape at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dmlc.diagnostics import Span
from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.ir import DimExpr, DType, Graph, Operation, OpError, Place, Tensor, Value
from dmlc.ir.dtype import i64
from dmlc.ir.size_number import Arithmetic, SizeNumber
from dmlc.ops.binary import ADD, DIV, FLOORDIV, MOD, MUL, POW, SUB
from dmlc.ops.choose import CAST, CastAttributes
from dmlc.ops.constant import CONSTANT, ConstantAttributes, constant_of
from dmlc.ops.elementwise import NEG
from dmlc.ops.index import FULL, FullAttributes
from dmlc.ops.literals import literal_array

_INFIX: dict[str, Operation] = {op.symbol: op for op in (ADD, SUB, MUL, DIV, FLOORDIV, MOD, POW) if op.symbol}
#: An expression of more operations was hardly meant, and the nodes of each would be made anew.
_MOST_OPERATIONS = 200


def size_scalar(graph: Graph, number: Arithmetic, dtype: DType, at: Place, spans: Sequence[Span] = ()) -> Value:
    """Add the scalar that the number is, computed in the dtype. Raises ``OpError`` for one that has no value there.

    E0311: a quotient beside integers, or a size that never fits. E0309, E0319, E0320: as for tensors of that dtype.
    """
    return _Scalars(graph, dtype, at, tuple(spans)).of(number)


class _Scalars:
    def __init__(self, graph: Graph, dtype: DType, at: Place, spans: tuple[Span, ...]) -> None:
        self.graph = graph
        self.dtype = dtype
        self.at = at
        self.spans = spans

    def of(self, number: Any) -> Value:
        if isinstance(number, SizeNumber):
            return self.operation(number)
        if not isinstance(number, DimExpr):
            tensor = Tensor(literal_array(number, self.dtype, self.at))
            return self.graph.add(CONSTANT, (), ConstantAttributes(value=tensor), spans=self.spans).result
        is_truth = self.dtype.kind == "bool"  # a cast to bool, which is true unless the size is 0
        record = FullAttributes(shape=(), value=number, dtype=i64 if is_truth else self.dtype)
        try:
            value = self.graph.add(FULL, (), record, spans=self.spans).result
        except OpError as error:
            error.at = self.at
            raise
        return (
            self.graph.add(CAST, [value], CastAttributes(to=self.dtype), spans=self.spans).result if is_truth else value
        )

    def operation(self, number: SizeNumber) -> Value:
        if number.count > _MOST_OPERATIONS:
            message = f"{number} on dims is too long: at most {_MOST_OPERATIONS} are computed with a tensor"
            raise OpError(codes.WRONG_SIZE, message, at=self.at, help="make a tensor of a part of it: W as f32")
        op = _INFIX[number.sign] if len(number.operands) == 2 else NEG
        if number.sign == "/" and self.dtype.is_integer:
            left, right = number.operands
            message = f"{number} does not fit {self.dtype.name}: / with a dim is the real quotient"
            help = f"// gives an integer: {left} // {right}; for x * ({number}) write x * {left} // {right}"
            help = help.replace("x * 1 // ", "x // ")
            raise OpError(codes.LITERAL_DOES_NOT_FIT, message, at=self.at, under="it is not an integer", help=help)
        if self.dtype not in op.operands[0].dtypes:
            raise OpError(codes.OPERAND_DTYPE, f"{number.sign} does not take {self.dtype.name}", at=self.at)
        operands = [self.of(operand) for operand in number.operands]
        if op.check is not None:
            try:
                op.check([constant_of(value) for value in operands])
            except OpError as error:
                error.at = self.at
                raise
        return self.graph.add(op, operands, op.attributes(), spans=self.spans).result
