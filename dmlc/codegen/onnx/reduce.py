"""Reductions. Integers are rewritten by ``legalize`` where kernels are missing or wrong."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.codegen.onnx.emitter import Emitter
from dmlc.codegen.onnx.registry import lowers
from dmlc.ir import Node, product
from dmlc.ir.dtype import i64
from dmlc.ops import reduce as r


def reduce(emitter: Emitter, op_type: str, name: str, axes: Sequence[int], keepdims: bool) -> str:
    """An ONNX reduction over at least one axis: the axes are an attribute below opset 18 (ReduceSum: 13)."""
    keep = int(keepdims)
    if emitter.opset < (13 if op_type == "ReduceSum" else 18):
        return emitter.op(op_type, [name], axes=tuple(axes), keepdims=keep)
    return emitter.op(op_type, [name, emitter.ints(axes)], keepdims=keep)


@lowers(*(op for op in r.REDUCTIONS if op is not r.REDUCE_LOG_SUM_EXP))
def reduction(emitter: Emitter, node: Node) -> str:
    a, name = node.attributes_as(r.ReduceAttributes), emitter.operand(node, 0)
    if not a.axes:
        return _elementwise(emitter, node, name)
    if node.op is r.REDUCE_MEAN and _may_be_empty(emitter, node):
        return _mean(emitter, node, name)
    return reduce(emitter, r.reduction_of(node).onnx, name, a.axes, a.keepdims)


def _elementwise(emitter: Emitter, node: Node, name: str) -> str:
    if node.op is r.REDUCE_SUM_SQUARE:
        return emitter.op("Mul", [name, name])
    alone = r.reduction_of(node).alone
    return emitter.op(alone.name.title(), [name]) if alone else name


def _may_be_empty(emitter: Emitter, node: Node) -> bool:
    shape = node.operand("x").shape
    axes = node.attributes_as(r.ReduceAttributes).axes
    return any(emitter.graph.dims.promises_empty(shape[axis]) for axis in axes)


def _mean(emitter: Emitter, node: Node, name: str) -> str:
    """The mean of no element is NaN; ONNX Runtime's ReduceMean gives 0. 0 / 0 is NaN."""
    a, x = node.attributes_as(r.ReduceAttributes), node.operand("x")
    home = x.type.dtype.accumulator
    total = reduce(emitter, "ReduceSum", emitter.cast(name, home, have=x.type.dtype), a.axes, a.keepdims)
    count = emitter.cast(emitter.size_scalar(product([x.shape[i] for i in a.axes])), home, have=i64)
    return emitter.cast(emitter.op("Div", [total, count]), x.type.dtype, have=home)


@lowers(r.REDUCE_LOG_SUM_EXP)
def log_sum_exp(emitter: Emitter, node: Node) -> str:
    """A log-sum-exp that no pass has taken the maximum out of."""
    a, x = node.attributes_as(r.ReduceAttributes), node.operand("x")
    if not a.axes:
        return emitter.of(x)
    emitter.note("ReduceLogSumExp of nothing but -inf is NaN on ONNX Runtime up to 1.26")
    return reduce(emitter, "ReduceLogSumExp", emitter.of(x), a.axes, a.keepdims)
