"""Selection: argmax, argmin, top_k, hardmax."""

from __future__ import annotations

from dmlc.codegen.numpy import support
from dmlc.codegen.numpy.expr import Expr
from dmlc.codegen.numpy.registry import Call, axis_or_axes, lowers
from dmlc.ops import select as ops


@lowers(ops.ARGMAX, ops.ARGMIN, quiet=True)
def _arg(call: Call) -> Expr:
    a: ops.ArgAttributes = call.attributes
    largest = call.node.op is ops.ARGMAX
    if len(a.axes) == 1 and a.ties == "first":
        keep = {"keepdims": True} if a.keepdims else {}
        index = call.np("argmax" if largest else "argmin", call.operand(), axis=a.axes[0], **keep)
    else:
        index = call.support(support._arg, call.operand(), axes=a.axes, largest=largest, last=a.ties == "last")
        if a.keepdims:
            index = call.np("expand_dims", index, axis_or_axes(a.axes))
    return call.cast(index, a.dtype)


@lowers(ops.TOP_K, quiet=True)
def _top_k(call: Call) -> Expr:
    a: ops.TopKAttributes = call.attributes
    kind = call.dtype(a.dtype)
    return call.support(
        support._top_k, call.operand(), k=call.dim(a.k), axis=a.axis, largest=a.order == "largest", dtype=kind
    )


@lowers(ops.HARDMAX, quiet=True)
def _hardmax(call: Call) -> Expr:
    return call.support(support._hardmax, call.operand(), axes=call.attributes.axes)
