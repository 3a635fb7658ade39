"""Normalisation along axes. f16 is computed in f32 and rounded once."""

from __future__ import annotations

from dmlc.codegen.numpy import support
from dmlc.codegen.numpy.expr import Expr, infix
from dmlc.codegen.numpy.registry import NumpyCall, axis_or_axes, lowers
from dmlc.ops import normalize as ops


@lowers(ops.SOFTMAX, ops.LOG_SOFTMAX)
def _softmax(call: NumpyCall) -> Expr:
    function = support._softmax if call.node.op is ops.SOFTMAX else support._log_softmax
    return call.narrow(call.support(function, call.wide(call.operand()), axes=axis_or_axes(call.attributes.axes)))


@lowers(ops.MEAN_VARIANCE_NORM)
def _mean_variance_norm(call: NumpyCall) -> Expr:
    a: ops.MeanVarianceAttributes = call.attributes
    if a.variance:
        return call.narrow(
            call.support(support._standardize, call.wide(call.operand()), axes=a.axes, epsilon=a.epsilon)
        )
    x = call.operand(often=True)
    return call.narrow(infix("-", x, call.support(support._mean, call.wide(x), axes=a.axes)))


def _trailing(call: NumpyCall) -> tuple[int, ...]:
    return tuple(range(call.attributes.axis, call.node.operand("x").type.rank))


@lowers(ops.LAYER_NORM)
def _layer_norm(call: NumpyCall) -> Expr:
    x = call.support(
        support._standardize, call.wide(call.operand()), axes=_trailing(call), epsilon=call.attributes.epsilon
    )
    out = infix("*", x, call.operand(1))
    absent = call.node.operands[2:] in ((), (None,))  # a model may leave it out
    return call.narrow(out if absent else infix("+", out, call.operand(2)))


@lowers(ops.RMS_NORM)
def _rms_norm(call: NumpyCall) -> Expr:
    x = call.operand(often=True)
    root = call.support(support._root_mean_square, call.wide(x), axes=_trailing(call), epsilon=call.attributes.epsilon)
    return call.narrow(infix("*", infix("/", x, root), call.operand(1)))


@lowers(ops.LP_NORM)
def _lp_norm(call: NumpyCall) -> Expr:
    a: ops.LpNormAttributes = call.attributes
    x = call.operand(often=True)
    length = call.support(support._length, call.wide(x), order=a.p, axis=a.axis)
    return call.narrow(infix("/", x, length))
