"""argmax, argmin, top_k and hardmax."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.codegen.onnx.emitter import FAR, Emitter
from dmlc.codegen.onnx.registry import lowers
from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue.bugs import INTERNAL
from dmlc.ir import Dim, DType, Node, Shape, product
from dmlc.ir.dtype import i64
from dmlc.ops.select import ARGMAX, ARGMIN, HARDMAX, TOP_K, ArgAttributes, HardmaxAttributes, TopKAttributes


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
