"""Operations on the elements of two tensors."""

from __future__ import annotations

from dmlc.codegen.numpy import support
from dmlc.codegen.numpy.expr import Expr, infix, name
from dmlc.codegen.numpy.registry import Lower, NumpyCall, lowers
from dmlc.ops import binary as ops
from dmlc.ops.constant import constant_of

#: The largest exponent that reads better as an integer; beyond, floats do not hold all of them.
_EXACT = 2**11


def _infix(sign: str) -> Lower:
    def lower(call: NumpyCall) -> Expr:
        return infix(sign, *call.pair())

    return lower


def _function(name: str) -> Lower:
    def lower(call: NumpyCall) -> Expr:
        return call.np(name, *call.pair())

    return lower


def _comparison(sign: str, function: str) -> Lower:
    def lower(call: NumpyCall) -> Expr:
        left, right = call.pair()
        # `x == x` asks for NaN, and linters take it for a slip.
        return call.np(function, left, right) if left == right else infix(sign, left, right)

    return lower


for _operation, _sign in ((ops.ADD, "+"), (ops.SUB, "-"), (ops.MUL, "*"), (ops.MOD, "%")):
    lowers(_operation)(_infix(_sign))
for _operation, _sign in ((ops.AND, "&"), (ops.OR, "|"), (ops.XOR, "^")):
    lowers(_operation, quiet=True)(_infix(_sign))
for _operation in (ops.EQUAL, ops.NOT_EQUAL, ops.LESS, ops.LESS_EQUAL, ops.GREATER, ops.GREATER_EQUAL):
    assert _operation.symbol is not None
    lowers(_operation)(_comparison(_operation.symbol, _operation.name))
lowers(ops.MIN)(_function("minimum"))
lowers(ops.MAX)(_function("maximum"))


@lowers(ops.DIV)
def _div(call: NumpyCall) -> Expr:
    dtype = call.operand_dtype
    if dtype.is_float:
        return infix("/", *call.pair())
    if dtype.kind == "uint":
        return infix("//", *call.pair())
    return call.support(support._divide, *call.pair())


@lowers(ops.FLOORDIV)
def _floordiv(call: NumpyCall) -> Expr:
    if not call.operand_dtype.is_float:
        return infix("//", *call.pair())
    # The floor of the rounded quotient, which is not what // of floats is.
    return call.np("floor", infix("/", *call.pair()))


@lowers(ops.POW)
def _pow(call: NumpyCall) -> Expr:
    left, right = call.pair()
    exponent = constant_of(call.node.operand("b"))
    if not call.operand_dtype.is_float:
        negative = call.operand_dtype.kind == "int" and (exponent is None or bool((exponent.array < 0).any()))
        return call.support(support._power, call.operand(0), call.operand(1)) if negative else infix("**", left, right)
    if exponent is not None and exponent.array.size == 1 and right.is_name:
        power = float(exponent.array.reshape(-1)[0])
        if power.is_integer() and 0 <= power < _EXACT and right.text == repr(power):
            right = name(str(int(power)))
    return infix("**", left, right)
