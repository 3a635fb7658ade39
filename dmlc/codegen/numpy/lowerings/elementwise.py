"""Operations on each element of one tensor."""

from __future__ import annotations

from dmlc.codegen.numpy import support
from dmlc.codegen.numpy.expr import Expr, prefix
from dmlc.codegen.numpy.registry import Lower, NumpyCall, lowers
from dmlc.ops import elementwise as ops


def _unary(op: ops.UnaryOperation) -> Lower:
    """A function of NumPy, which computes f16 in f32 by itself, or a copy of the operation's own."""

    def lower(call: NumpyCall) -> Expr:
        if op.numpy:
            return call.np(op.numpy, call.operand())
        return call.narrow(
            call.support(op.function, call.wide(call.operand()), **ops.attributes_of(op, call.attributes))
        )

    return lower


for _op in ops.UNARY:
    if _op not in (ops.NEG, ops.NOT, ops.RELU, ops.ERF, ops.GELU):
        lowers(_op, quiet=_op in (ops.IS_NAN, ops.IS_INF))(_unary(_op))


@lowers(ops.NEG)
def _neg(call: NumpyCall) -> Expr:
    return prefix("-", call.operand())


@lowers(ops.NOT, quiet=True)
def _not(call: NumpyCall) -> Expr:
    return prefix("~", call.operand())


@lowers(ops.RELU)
def _relu(call: NumpyCall) -> Expr:
    zero = call.operand_dtype.numpy.type(0)
    return call.np("maximum", call.operand(), call.literal(zero))


@lowers(ops.ERF)
def _erf(call: NumpyCall) -> Expr:
    return call.cast(call.support(support._erf, call.operand()), call.operand_dtype)


@lowers(ops.GELU)
def _gelu(call: NumpyCall) -> Expr:
    is_erf = call.attributes.approximate == "none"
    return call.cast(call.support(support._gelu if is_erf else support._tanh_gelu, call.operand()), call.operand_dtype)
