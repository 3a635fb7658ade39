"""Matchers of a reduction with the operation before it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec.structs import replace

from dmlc.ir import Graph, Node, Operation, Value
from dmlc.ops.binary import ADD, DIV, MAX, MIN, MUL, SUB
from dmlc.ops.choose import CLIP
from dmlc.ops.constant import constant_of
from dmlc.ops.elementwise import RELU, SIGMOID, TANH
from dmlc.ops.matmul import MATMUL
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes
from dmlc.ops.reduce import (
    ReduceAttributes,
)
from dmlc.passes.fuse_selection.selections import name_of
from dmlc.passes.layouts import is_unit
from dmlc.passes.rewrite import Match, Miss, Rewriter, used_elsewhere

#: Elementwise operations of two operands that rules take apart.
PAIRS = (ADD, SUB, MUL, DIV, MIN, MAX)

#: Operations that runtimes compute together with the node before them, at no cost.
_ABSORBED = frozenset((RELU, CLIP, SIGMOID, TANH, ADD))
_ABSORBING = frozenset(("Conv", "ConvTranspose", "Gemm", "BatchNormalization", "InstanceNormalization"))


class SplitMatch(Match, eq=False, kw_only=True):
    """The elementwise node, what it is of, and of two operands the one that is the same for all that is reduced.

    ``varies`` is a reduced axis along which ``fixed`` is not the same: then nothing can be hoisted. ``first`` is true
    if ``operand`` is the first operand. ``sign`` is that of ``fixed`` where a promised range says it, else 0.
    """

    node: Node
    operand: Value
    fixed: Value | None
    first: bool
    varies: int | None
    sign: int

    @property
    def number(self) -> np.ndarray[Any, Any] | None:
        """The numbers of a constant ``fixed``."""
        tensor = constant_of(self.fixed)
        return None if tensor is None else tensor.array


def split_one(root: Node, inner: Node) -> SplitMatch:
    """An operation of one operand."""
    x = inner.operand("x")
    return SplitMatch(root, (inner,), node=inner, operand=x, fixed=None, first=True, varies=None, sign=0)


def split_two(root: Node, inner: Node, graph: Graph) -> SplitMatch | None:
    """An operation of two operands, one of which is the same along all reduced axes, or at least a constant."""
    axes = root.attributes_as(ReduceAttributes).axes
    rank = inner.result.type.rank
    a, b = inner.operand("a"), inner.operand("b")
    if not axes:
        return None
    for x, fixed in ((a, b), (b, a)):
        if _varies(x, axes, rank, graph, everywhere=True) is None:
            varies = _varies(fixed, axes, rank, graph)
            if varies is None or (constant_of(fixed) is not None and constant_of(x) is None):
                return SplitMatch(
                    root, (inner,), node=inner, operand=x, fixed=fixed, first=x is a, varies=varies, sign=0
                )
    return None


def _varies(value: Value, axes: Sequence[int], rank: int, graph: Graph, *, everywhere: bool = False) -> int | None:
    """An axis along which the value has more than one element; with ``everywhere`` one along which it has not."""
    offset = rank - value.type.rank
    for axis in axes:
        long = axis >= offset and not is_unit(graph, value.shape[axis - offset])
        if long is not everywhere:
            return axis
    return None


def why_not_hoisted(match: SplitMatch) -> Miss | None:
    """The reasons that all rules share."""
    node = match.node
    if match.varies is not None:
        assert match.fixed is not None
        return Miss("{0} varies along axis {1}, which is reduced", (name_of(match.fixed), match.varies), match.fixed)
    absorbed = why_absorbed(node, match.operand)
    if absorbed is not None:
        return absorbed
    if match.fixed is not None and _dropped(match) and constant_of(match.fixed) is None:
        return Miss("{0} would have to be squeezed, one node more", (name_of(match.fixed),), match.fixed)
    return used_elsewhere(node.result)


def why_absorbed(node: Node, x: Value) -> Miss | None:
    """The reason against moving an elementwise node that costs nothing where it stands, behind what makes ``x``."""
    producer = x.producer
    if node.op in _ABSORBED and producer is not None and producer.results[0].is_used_once and _absorbs(producer):
        return Miss("{0} is computed together with the {1} before it", (node.op.name, _title(producer)), node.result)
    return None


def _absorbs(node: Node) -> bool:
    return node.op is MATMUL or (node.op is OPAQUE and node.attributes_as(OpaqueAttributes).op_type in _ABSORBING)


def _title(node: Node) -> str:
    return node.attributes_as(OpaqueAttributes).op_type if node.op is OPAQUE else node.op.name


def _dropped(match: SplitMatch) -> tuple[int, ...]:
    """The axes of ``fixed`` that the reduction takes out."""
    record = match.root.attributes_as(ReduceAttributes)
    if match.fixed is None or record.keepdims:
        return ()
    offset = match.node.result.type.rank - match.fixed.type.rank
    return tuple([a - offset for a in record.axes if a >= offset])


def reduced(match: SplitMatch, rewriter: Rewriter, op: Operation) -> Value:
    """``op`` over the same axes, of what was before the elementwise operation."""
    record = match.root.attributes_as(ReduceAttributes)
    offset = match.node.result.type.rank - match.operand.type.rank
    axes = tuple([a - offset for a in record.axes])
    return rewriter.add(op, [match.operand], replace(record, axes=axes))


def again(match: SplitMatch, rewriter: Rewriter, value: Value) -> Value:
    """The elementwise operation, of the reduced value."""
    return with_fixed(match, rewriter, value, match.number if _dropped(match) else None)


def with_fixed(match: SplitMatch, rewriter: Rewriter, value: Value, numbers: np.ndarray[Any, Any] | None) -> Value:
    """The same with these numbers, of the constant's shape, in the place of the constant."""
    node, fixed = match.node, match.fixed
    if fixed is None:
        return rewriter.add(node.op, [value], node.attributes)
    if numbers is not None:
        fixed = rewriter.constant(np.squeeze(numbers, axis=_dropped(match)))
    return rewriter.add(node.op, [value, fixed] if match.first else [fixed, value], node.attributes)
