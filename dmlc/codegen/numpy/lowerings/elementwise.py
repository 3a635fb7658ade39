"""Operations on each element of one tensor."""

from __future__ import annotations

from dmlc.codegen.numpy import support
from dmlc.codegen.numpy.expr import Expr, prefix
from dmlc.codegen.numpy.registry import Call, Lower, lowers
from dmlc.ops import elementwise as ops


def _function(name: str) -> Lower:
    """One function of NumPy, which computes f16 in f32 by itself."""

    def lower(call: Call) -> Expr:
        return call.np(name, call.operand())

    return lower


for _operation, _name in (
    (ops.ABS, "abs"),
    (ops.EXP, "exp"),
    (ops.LOG, "log"),
    (ops.SQRT, "sqrt"),
    (ops.RECIPROCAL, "reciprocal"),
    (ops.SIGN, "sign"),
    (ops.FLOOR, "floor"),
    (ops.CEIL, "ceil"),
    (ops.ROUND, "rint"),
    (ops.SIN, "sin"),
    (ops.COS, "cos"),
    (ops.TANH, "tanh"),
):
    lowers(_operation)(_function(_name))
lowers(ops.IS_NAN, quiet=True)(_function("isnan"))
lowers(ops.IS_INF, quiet=True)(_function("isinf"))


@lowers(ops.NEG)
def _neg(call: Call) -> Expr:
    return prefix("-", call.operand())


@lowers(ops.NOT, quiet=True)
def _not(call: Call) -> Expr:
    return prefix("~", call.operand())


@lowers(ops.RELU)
def _relu(call: Call) -> Expr:
    zero = call.dtype_of().numpy.type(0)
    return call.np("maximum", call.operand(), call.literal(zero, beside=0))


@lowers(ops.SIGMOID)
def _sigmoid(call: Call) -> Expr:
    return call.narrow(call.support(support._sigmoid, call.wide(call.operand())))


@lowers(ops.ERF)
def _erf(call: Call) -> Expr:
    return call.cast(call.support(support._erf, call.operand()), call.dtype_of())
