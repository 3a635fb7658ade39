"""Softmax, hardmax and the reductions that are a plain sum of something."""

from __future__ import annotations

from dmlc.ir import Node, product
from dmlc.ir.dtype import i64
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX, SoftmaxAttributes
from dmlc.ops.reduce import REDUCE_LOG_SUM_EXP, REDUCTIONS, ReduceAttributes, reduction_of
from dmlc.ops.select import HARDMAX, HardmaxAttributes
from dmlc.passes.decompose.decomposition import decomposes
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import Lowered
from dmlc.passes.manager import EXACT
from dmlc.passes.primitives import log_sum_exp, softmax, total_in_parts
from dmlc.passes.rewrite import Miss


@decomposes("Softmax", "LogSoftmax", roots=(SOFTMAX, LOG_SOFTMAX))
def decompose_softmax(e: Sketch, node: Node, x: Term) -> Lowered:
    """A softmax becomes a maximum, powers, their sum and a quotient; its logarithm subtracts the sum's logarithm.

    A group without elements is an error for ReduceMax on some runtimes.
    """
    axes = node.attributes_as(SoftmaxAttributes).axes
    return softmax(e, node.op, x.widened(), axes).cast(x.dtype) if axes else Miss("it is over no axis")


_NOT_PLAIN = tuple([op for op in REDUCTIONS if op.before or op.after])


@decomposes(*[op.onnx for op in _NOT_PLAIN], roots=_NOT_PLAIN)
def decompose_reduction(e: Sketch, node: Node, x: Term) -> Lowered:
    """A norm, a sum of squares or a logarithm of a sum becomes a plain sum between elementwise operations.

    Of a logarithm of a sum of exponentials the maximum is taken out first.
    """
    record = node.attributes_as(ReduceAttributes)
    if not record.axes:
        return Miss("it is over no axis")
    if node.op is REDUCE_LOG_SUM_EXP:
        return log_sum_exp(e, x, record.axes).with_ones(node.result.shape)
    return total_in_parts(e, reduction_of(node), x.widened(), record).cast(x.dtype)


@decomposes("Hardmax", roots=(HARDMAX,), gives=EXACT)
def decompose_hardmax(e: Sketch, node: Node, x: Term) -> Lowered:
    """A hardmax becomes argmax and one_hot."""
    axes, shape = node.attributes_as(HardmaxAttributes).axes, x.shape
    if not axes or axes != tuple(range(axes[0], axes[-1] + 1)):
        return Miss("its axes are not neighbours")
    axis, size = axes[0], product([shape[a] for a in axes])
    x = x.reshape((*shape[:axis], size, *shape[axes[-1] + 1 :]))  # one axis of all
    index = e.argmax(x, axes=(axis,), ties="first", dtype=i64, keepdims=False)
    return e.one_hot(index, depth=size, axis=axis, on=1, off=0, dtype=x.dtype).reshape(shape)
