"""An elementwise operation before a reduction, taken apart: what is reduced, and what stays the same meanwhile."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dmlc.ir import Graph, Node, Operation, Tensor, Value
from dmlc.ops.binary import ADD, DIV, MAX, MIN, MUL, SUB
from dmlc.ops.choose import CLIP
from dmlc.ops.constant import CONSTANT, ConstantAttributes, constant_of
from dmlc.ops.elementwise import RELU, SIGMOID, TANH
from dmlc.ops.matmul import MATMUL
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes
from dmlc.ops.reduce import ReduceAttributes
from dmlc.passes.hoist_rules.scales import Steps, elementwise_step, reduction_steps
from dmlc.passes.lowering_plans.plan import Sizes, Work
from dmlc.passes.reduce_rules.moves import is_unit
from dmlc.passes.rewrite import Match, Miss, Rewriter, used_elsewhere
from dmlc.passes.selection_rules.views import name_of
from dmlc.records import dataclass

#: Elementwise operations of two operands that rules take apart.
PAIRS = (ADD, SUB, MUL, DIV, MIN, MAX)

#: What runtimes compute together with the node before it, at no cost.
_ABSORBED = frozenset((RELU, CLIP, SIGMOID, TANH, ADD))
_ABSORBING = frozenset(("Conv", "ConvTranspose", "Gemm", "BatchNormalization", "InstanceNormalization"))


@dataclass(slots=True, eq=False)
class Split(Match):
    """The elementwise node, what it is of, and of two operands the one that is the same for all that is reduced.

    ``varies`` is a reduced axis along which ``fixed`` is not the same: then nothing can be hoisted. ``first`` says that
    ``x`` is the first operand.
    """

    inner: Node | None = None
    x: Value | None = None
    fixed: Value | None = None
    first: bool = True
    varies: int | None = None

    @property
    def node(self) -> Node:
        assert self.inner is not None
        return self.inner

    @property
    def operand(self) -> Value:
        assert self.x is not None
        return self.x

    @property
    def number(self) -> np.ndarray[Any, Any] | None:
        """The numbers of a constant ``fixed``."""
        tensor = constant_of(self.fixed)
        return None if tensor is None else tensor.array


def split_one(root: Node, inner: Node) -> Split:
    """An operation of one operand."""
    return Split(root, (inner,), inner, inner.operand(0))


def split_two(root: Node, inner: Node, graph: Graph) -> Split | None:
    """An operation of two operands, one of which is the same along all reduced axes, or at least a constant."""
    axes = root.attributes_as(ReduceAttributes).axes
    rank = inner.result.type.rank
    a, b = inner.operand(0), inner.operand(1)
    if not axes:
        return None
    for x, fixed in ((a, b), (b, a)):
        if _varies(x, axes, rank, graph, everywhere=True) is None:
            varies = _varies(fixed, axes, rank, graph)
            if varies is None or (constant_of(fixed) is not None and constant_of(x) is None):
                return Split(root, (inner,), inner, x, fixed, x is a, varies)
    return None


def _varies(value: Value, axes: Sequence[int], rank: int, graph: Graph, *, everywhere: bool = False) -> int | None:
    """An axis along which the value has more than one element; with ``everywhere`` one along which it has not."""
    offset = rank - value.type.rank
    for axis in axes:
        long = axis >= offset and not is_unit(graph, value.shape[axis - offset])
        if long is not everywhere:
            return axis
    return None


def why_not_hoisted(match: Split) -> Miss | None:
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


def _dropped(match: Split) -> tuple[int, ...]:
    """The axes of ``fixed`` that the reduction takes out."""
    record = match.root.attributes_as(ReduceAttributes)
    if match.fixed is None or record.keepdims:
        return ()
    offset = match.node.result.type.rank - match.fixed.type.rank
    return tuple([a - offset for a in record.axes if a >= offset])


def forms(match: Split) -> tuple[Steps, Steps]:
    """The elementwise node before the reduction, and after it."""
    root, op, x = match.root, match.node.op, match.operand
    whole, dtype, axes = match.node.result, x.type.dtype, root.attributes_as(ReduceAttributes).axes
    offset = whole.type.rank - x.type.rank

    def before(sizes: Sizes) -> list[Work]:
        shape = sizes.of(whole)
        return [
            elementwise_step(op, dtype, math.prod(shape)),
            *reduction_steps(root.op, whole.type.dtype, shape, axes),
        ]

    def after(sizes: Sizes) -> list[Work]:
        total = reduction_steps(root.op, dtype, sizes.of(x), [a - offset for a in axes])
        return [*total, elementwise_step(op, dtype, math.prod(sizes.of(root.result)))]

    return before, after


def reduced(match: Split, rewriter: Rewriter, op: Operation) -> Value:
    """``op`` over the same axes, of what was before the elementwise operation."""
    record = match.root.attributes_as(ReduceAttributes)
    offset = match.node.result.type.rank - match.operand.type.rank
    axes = tuple([a - offset for a in record.axes])
    return rewriter.add(op, [match.operand], replace(record, axes=axes))


def again(match: Split, rewriter: Rewriter, value: Value) -> Value:
    """The elementwise operation, of the reduced value."""
    return with_fixed(match, rewriter, value, match.number if _dropped(match) else None)


def with_fixed(match: Split, rewriter: Rewriter, value: Value, numbers: np.ndarray[Any, Any] | None) -> Value:
    """The same with these numbers, of the constant's shape, in the place of the constant."""
    node, fixed = match.node, match.fixed
    if fixed is None:
        return rewriter.add(node.op, [value], node.attributes)
    if numbers is not None:
        tensor = Tensor(np.squeeze(numbers, axis=_dropped(match)))
        fixed = rewriter.add(CONSTANT, (), ConstantAttributes(value=tensor))
    return rewriter.add(node.op, [value, fixed] if match.first else [fixed, value], node.attributes)
