"""Operands without an element, for which no DirectML operator is made: the provider leaves the result unwritten."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlc.ir import Dim, DType, Node
from dmlc.ir.dtype import bool_
from dmlc.ops import ALL_OPERATIONS
from dmlc.ops.constant import CONSTANT
from dmlc.ops.index import FULL, IOTA, SCATTER_ELEMENTS, is_written
from dmlc.ops.literals import attribute_array
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import CONCAT, PAD, ConcatAttributes, PadAttributes
from dmlc.ops.opaque import OPAQUE
from dmlc.ops.reduce import REDUCTIONS, ReduceAttributes, reduction_of
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import KEEP, Lowered, lowers


def _full(e: Sketch, shape: Sequence[Dim], value: float | int | bool, dtype: DType) -> Term:
    if is_written(shape):
        data = np.broadcast_to(attribute_array(value, dtype, "value"), shape)  # type: ignore[arg-type]
        return e.of(e.constant(data))
    return e.full(shape=tuple(shape), value=value, dtype=dtype)


@lowers(*[op for op in ALL_OPERATIONS if op not in (CONSTANT, FULL, IOTA)], OPAQUE, repairs=("empty",))
def nothing_to_compute(e: Sketch, node: Node, *_: Term | None) -> Lowered:
    """A node whose results are all empty becomes tensors of no element, so that nothing is asked of the provider."""
    if not all(0 in v.shape and v.type.is_static for v in node.results):
        return KEEP
    return [_full(e, v.shape, 0, v.type.dtype) for v in node.results]


@lowers(*REDUCTIONS, repairs=("empty",))
def reduction_of_nothing(e: Sketch, node: Node, x: Term) -> Lowered:
    """A reduction over an axis of no element becomes its identity.

    The sum is 0, the product 1, the largest the lowest of the type, the mean NaN, as the language says.
    """
    if all(x.shape[axis] != 0 for axis in node.attributes_as(ReduceAttributes).axes):
        return KEEP
    dtype = node.result.type.dtype
    value = reduction_of(node).of_nothing(dtype)
    return _full(e, node.result.shape, bool(value) if dtype is bool_ else value, dtype)


@lowers(MATMUL, repairs=("empty",))
def product_of_nothing(e: Sketch, node: Node, a: Term, b: Term) -> Lowered:
    """A matrix product over an axis of no element becomes zeros."""
    return _full(e, node.result.shape, 0, node.result.type.dtype) if a.shape[-1] == 0 else KEEP


@lowers(CONCAT, repairs=("empty",))
def concat_of_some(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """A concat leaves out operands that have no element."""
    axis = node.attributes_as(ConcatAttributes).axis
    left = [x for x in operands if x.shape[axis] != 0]
    if len(left) in (0, len(operands)):
        return KEEP
    return left[0] if len(left) == 1 else e.concat(*left, axis=axis)


@lowers(PAD, repairs=("empty",))
def pad_of_nothing(e: Sketch, node: Node, x: Term) -> Lowered:
    """A pad of a tensor that has no element is the value that it is padded with, everywhere."""
    result, value = node.result.type, node.attributes_as(PadAttributes).value
    return _full(e, result.shape, value, result.dtype) if 0 in x.shape else KEEP


@lowers(SCATTER_ELEMENTS, repairs=("empty",))
def scatter_of_nothing(e: Sketch, node: Node, x: Term, i: Term, updates: Term) -> Lowered:
    """A scatter of no updates is what it would have changed."""
    return x if 0 in updates.shape else KEEP
