"""Selection: argmax, argmin, top_k, hardmax."""

from __future__ import annotations

from dmlc.codegen.numpy import fast_selection, fast_top_k, support
from dmlc.codegen.numpy.expr import Expr, method
from dmlc.codegen.numpy.registry import NumpyCall, axis_or_axes, lowers
from dmlc.ir import product
from dmlc.ir.dtype import f16, i64
from dmlc.ops import select as ops


@lowers(ops.ARGMAX, ops.ARGMIN, quiet=True)
def _arg(call: NumpyCall) -> Expr:
    a: ops.ArgAttributes = call.attributes
    largest = call.node.op is ops.ARGMAX
    fast = call.is_fast()
    if len(a.axes) == 1 and a.ties == "first" and not (fast and _is_slow_for_numpy(call)):
        keep = {"keepdims": True} if a.keepdims else {}
        index = call.np("argmax" if largest else "argmin", call.operand(), axis=a.axes[0], **keep)
    else:
        function = fast_selection._arg if fast else support._arg
        index = call.support(function, call.operand(), axes=a.axes, largest=largest, last=a.ties == "last")
        if a.keepdims:
            index = call.np("expand_dims", index, axis_or_axes(a.axes))
    same = {"copy": False} if fast and a.dtype is i64 else {}  # indices are i64 already
    return method(index, "astype", call.dtype(a.dtype), **same)


def _is_slow_for_numpy(call: NumpyCall) -> bool:
    """Return whether NumPy's own function is slow here: it copies the data to reduce one axis, or compares halves."""
    behind = product(call.operand_shape[call.attributes.axes[0] + 1 :])
    return call.operand_dtype is f16 or behind != 1


@lowers(ops.TOP_K, quiet=True)
def _top_k(call: NumpyCall) -> Expr:
    a: ops.TopKAttributes = call.attributes
    kind = call.dtype(a.dtype)
    function = fast_top_k._top_k if call.is_fast() else support._top_k
    return call.support(
        function, call.operand(), k=call.dim(a.k), axis=a.axis, largest=a.order == "largest", dtype=kind
    )


@lowers(ops.HARDMAX, quiet=True)
def _hardmax(call: NumpyCall) -> Expr:
    function = fast_selection._hardmax if call.is_fast() else support._hardmax
    return call.support(function, call.operand(), axes=call.attributes.axes)
