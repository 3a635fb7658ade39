"""Reductions, selections, running sums and products. ``legalize`` rewrote integers that kernels lack or get wrong."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from onnx import GraphProto, NodeProto

from dmlc.codegen.onnx.emitter import FAR, Emitter
from dmlc.codegen.onnx.move import slice_of
from dmlc.codegen.onnx.registry import lowers
from dmlc.codegen.onnx.writer import tensor_proto, value_info
from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue.bugs import INTERNAL
from dmlc.ir import Dim, DType, Node, Shape, TensorType, product
from dmlc.ir.dtype import i64
from dmlc.ops import reduce as r
from dmlc.ops.scan import CUMPROD, CUMSUM, ScanAttributes
from dmlc.ops.select import ARGMAX, ARGMIN, HARDMAX, TOP_K, ArgAttributes, HardmaxAttributes, TopKAttributes


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


# --- argmax, argmin, top_k and hardmax


@lowers(ARGMAX, ARGMIN)
def arg(emitter: Emitter, node: Node) -> str:
    """One axis is ArgMax as it stands. ONNX has no node for several (TopK takes one axis too, MaxPool counts over the
    whole tensor): neighbouring ones become one by a reshape, which moves nothing; others are brought together by a
    transpose."""
    a, x = node.attributes_as(ArgAttributes), node.operand("x")
    op_type = "ArgMax" if node.op is ARGMAX else "ArgMin"
    name, shape, axes = emitter.of(x), x.shape, _without_ones(x.shape, a.axes)
    if len(axes) == 1 and len(a.axes) == 1:
        index = _search(emitter, op_type, name, shape[axes[0]], axes[0], a.ties, a.keepdims)
        return emitter.cast(index, a.dtype, have=i64)
    blocks = [(axes[0], axes[-1]), (a.axes[0], a.axes[-1])]
    if any(i not in axes and shape[i] != 1 for i in range(axes[0], axes[-1])):
        kept = [i for i in range(x.type.rank) if i not in axes]
        name = emitter.op("Transpose", [name], perm=(*kept, *axes))
        shape = tuple([shape[i] for i in (*kept, *axes)])
        blocks = [(len(kept), x.type.rank - 1)]
    first, last, keep = _block(shape, blocks, node.result.shape)
    size = product(shape[first : last + 1])
    name = _merge(emitter, name, shape, first, last, x.type.dtype)
    index = _search(emitter, op_type, name, size, first, a.ties, keep)
    index = emitter.cast(index, a.dtype, have=i64)
    return emitter.reshape(index, _left(shape, first, last, keep), node.result.shape, a.dtype)


def _block(shape: Shape, blocks: Sequence[tuple[int, int]], target: Shape) -> tuple[int, int, bool]:
    """The block of axes to merge, and whether to keep it as size 1: so that nothing remains to be reshaped, if such a
    choice is there. The blocks differ by axes of size 1 at their ends."""
    for first, last in blocks:
        for keep in (False, True):
            if _left(shape, first, last, keep) == target:
                return first, last, keep
    return *blocks[0], False


def _left(shape: Shape, first: int, last: int, keep: bool) -> Shape:
    return (*shape[:first], *((1,) if keep else ()), *shape[last + 1 :])


def _merge(emitter: Emitter, name: str, shape: Shape, first: int, last: int, dtype: DType) -> str:
    """The axes ``first`` to ``last`` as one. Flatten needs no sizes, so it serves where they are not known."""
    merged: Shape = (*shape[:first], product(shape[first : last + 1]), *shape[last + 1 :])
    if first == 1 and first < last == len(shape) - 1 and not all(isinstance(d, int) for d in merged):
        return emitter.op("Flatten", [name], axis=1)
    return emitter.reshape(name, shape, merged, dtype)


def _without_ones(shape: Shape, axes: Sequence[int]) -> tuple[int, ...]:
    """The axes that hold more than one element; the first one where none does."""
    return tuple([i for i in axes if shape[i] != 1]) or (axes[0],)


def _search(emitter: Emitter, op_type: str, name: str, size: Dim, axis: int, ties: str, keepdims: bool) -> str:
    keep = int(keepdims)
    if ties == "first":
        return emitter.op(op_type, [name], axis=axis, keepdims=keep)
    if emitter.opset >= 12:
        return emitter.op(op_type, [name], axis=axis, keepdims=keep, select_last_index=1)
    # The last of equal elements is the first one of the axis read backwards.
    minus, ends = emitter.ints([-1]), emitter.ints([-FAR])
    flipped = emitter.op("Slice", [name, minus, ends, emitter.ints([axis]), minus])
    index = emitter.op(op_type, [flipped], axis=axis, keepdims=keep)
    return emitter.op("Sub", [emitter.size_scalar(size - 1), index])


@lowers(TOP_K)
def top_k(emitter: Emitter, node: Node) -> Sequence[str]:
    """ONNX orders equal values by ascending index too."""
    a = node.attributes_as(TopKAttributes)
    largest = int(a.order == "largest")
    operands = [emitter.operand(node, 0), emitter.size(a.k)]
    values, indices = emitter.ops("TopK", operands, 2, axis=a.axis, largest=largest, sorted=1)
    return values, emitter.cast(indices, a.dtype, have=i64) if node.results[1].uses else indices


@lowers(HARDMAX)
def hardmax(emitter: Emitter, node: Node) -> str:
    """Below opset 13 ONNX's Hardmax takes all axes from ``axis`` on together, so the axis must be the last one."""
    axes = node.attributes_as(HardmaxAttributes).axes
    if len(axes) != 1:
        raise fail(INTERNAL, "hardmax over several axes was not lowered", exit_code=3)
    (axis,) = axes
    name, rank = emitter.operand(node, 0), node.result.type.rank
    if emitter.opset >= 13 or axis == rank - 1:
        return emitter.op("Hardmax", [name], axis=axis)
    perm = (*[i for i in range(rank) if i != axis], axis)
    back = (*range(axis), rank - 1, *range(axis, rank - 1))
    moved = emitter.op("Hardmax", [emitter.op("Transpose", [name], perm=perm)], axis=rank - 1)
    return emitter.op("Transpose", [moved], perm=back)


# --- Running sums and products


@lowers(CUMSUM)
def cumsum(emitter: Emitter, node: Node) -> str:
    a = node.attributes_as(ScanAttributes)
    operands = [emitter.operand(node, 0), emitter.scalar(a.axis, i64)]
    return emitter.op("CumSum", operands, exclusive=int(a.exclusive), reverse=int(a.reverse))


@lowers(CUMPROD)
def cumprod(emitter: Emitter, node: Node) -> str:
    """ONNX has none below opset 26. Over a known size it is made by doubling: after the step of size s each element
    holds the product of the last 2 s ones. Over a symbolic size it is a Scan, one element after another."""
    a, x = node.attributes_as(ScanAttributes), node.operand("x")
    home = x.type.dtype.accumulator
    name = emitter.cast(emitter.of(x), home, have=x.type.dtype)
    size = x.shape[a.axis]
    if isinstance(size, int):
        out = _by_doubling(emitter, name, x.shape, size, a, home)
    else:
        empty = [axis for axis, size in enumerate(x.shape) if emitter.graph.dims.promises_empty(size)]
        out = _by_longer_scan(emitter, name, x.shape, empty, a, home)
    return emitter.cast(out, x.type.dtype, have=home)


def _by_doubling(emitter: Emitter, name: str, shape: Shape, size: int, a: ScanAttributes, dtype: DType) -> str:
    if a.exclusive and size:
        name = _moved(emitter, name, shape, 1, a, dtype)
    step = 1
    while step < size:
        name = emitter.op("Mul", [name, _moved(emitter, name, shape, step, a, dtype)])
        step *= 2
    return name


def _moved(emitter: Emitter, name: str, shape: Shape, step: int, a: ScanAttributes, dtype: DType) -> str:
    """The elements ``step`` places further on, ones in front of them.

    Where no element stays the ones come first: DirectML's provider computes nothing from an empty slice.
    """
    size = shape[a.axis]
    start, pads = step if a.reverse else 0, [0] * (2 * len(shape))
    pads[len(shape) + a.axis if a.reverse else a.axis] = step
    ones = [emitter.ints(pads), emitter.scalar(1, dtype)]
    if step == size:
        return slice_of(emitter, emitter.op("Pad", [name, *ones]), size + step, a.axis, start, start + size)
    kept = slice_of(emitter, name, size, a.axis, start, start + size - step)
    return emitter.op("Pad", [kept, *ones])


def _by_longer_scan(
    emitter: Emitter, name: str, shape: Shape, empty: list[int], a: ScanAttributes, dtype: DType
) -> str:
    """ONNX Runtime's Scan fails on no element and ends the process where an element holds nothing: along axes that
    may be ``empty`` one more is put where it runs last, and is cut off again."""
    grown, pads, starts = list(shape), [0] * (2 * len(shape)), [0] * len(shape)
    for axis in empty:
        grown[axis] = shape[axis] + 1
        starts[axis] = int(a.reverse and axis == a.axis)
        pads[axis if starts[axis] else len(shape) + axis] = 1
    if empty:
        name = emitter.op("Pad", [name, emitter.ints(pads), emitter.scalar(1, dtype)])
    out = _by_scan(emitter, name, tuple(grown), a, dtype)
    for axis in empty:
        out = slice_of(emitter, out, grown[axis], axis, starts[axis], starts[axis] + shape[axis])
    return out


def _by_scan(emitter: Emitter, name: str, shape: Shape, a: ScanAttributes, dtype: DType) -> str:
    rest = (*shape[: a.axis], *shape[a.axis + 1 :])
    ones = emitter.op("ConstantOfShape", [emitter.sizes(rest)], value=tensor_proto(np.ones(1, dtype=dtype.numpy)))
    if not rest:
        ones = emitter.scalar(1, dtype)
    _, out = emitter.ops(
        "Scan",
        [ones, name],
        2,
        body=_body(emitter, TensorType(dtype, rest), a.exclusive),
        num_scan_inputs=1,
        scan_input_axes=(a.axis,),
        scan_input_directions=(int(a.reverse),),
        scan_output_axes=(a.axis,),
        scan_output_directions=(int(a.reverse),),
    )
    return out


def _body(emitter: Emitter, type: TensorType, exclusive: bool) -> GraphProto:
    new = emitter.values.new
    before, element, after, running = new("before"), new("element"), new("after"), new("running")
    body = GraphProto(name="running_product")
    body.input.extend([value_info(before, type), value_info(element, type)])
    body.node.append(NodeProto(op_type="Mul", input=[before, element], output=[after]))
    body.node.append(NodeProto(op_type="Identity", input=[before if exclusive else after], output=[running]))
    body.output.extend([value_info(after, type), value_info(running, type)])
    return body
