"""Running sums and products."""

from __future__ import annotations

from dmlc.codegen.numpy import support
from dmlc.codegen.numpy.expr import Expr
from dmlc.codegen.numpy.registry import NumpyCall, lowers
from dmlc.ops import scan as ops


@lowers(ops.CUMSUM, ops.CUMPROD)
def _scan(call: NumpyCall) -> Expr:
    a: ops.ScanAttributes = call.attributes
    is_sum = call.node.op is ops.CUMSUM
    if not (a.exclusive or a.reverse):
        accumulator = call.operand_dtype.accumulator
        function = "cumsum" if is_sum else "cumprod"
        return call.narrow(call.np(function, call.operand(), axis=a.axis, dtype=call.dtype(accumulator)))
    return call.narrow(
        call.support(
            support._scan,
            call.ufunc("add" if is_sum else "multiply"),
            call.wide(call.operand()),
            axis=a.axis,
            exclusive=a.exclusive,
            reverse=a.reverse,
        )
    )
