"""Matrix products."""

from __future__ import annotations

from dmlc.codegen.numpy.expr import Expr, infix
from dmlc.codegen.numpy.registry import NumpyCall, lowers
from dmlc.ir.dtype import f16
from dmlc.ops import matmul as ops


@lowers(ops.MATMUL)
def _matmul(call: NumpyCall) -> Expr:
    left, right = call.operand(0), call.operand(1)
    if call.operand_dtype is f16:
        return call.narrow(call.np("matmul", call.wide(left), call.wide(right)))
    return infix("@", left, right)
