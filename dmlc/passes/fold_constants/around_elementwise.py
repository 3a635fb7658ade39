"""Elementwise operations between layout operations that cancel are computed in the other layout."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from dmlc.ir import Graph, Node, Operation, Shape, StoredTensor, Value
from dmlc.onnx_schema.domains import MICROSOFT
from dmlc.ops.binary import BINARY
from dmlc.ops.choose import CAST, CLIP, WHERE
from dmlc.ops.constant import constant_of
from dmlc.ops.elementwise import UNARY
from dmlc.ops.move import RESHAPES, TRANSPOSE, TransposeAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes
from dmlc.passes.rewrite import Match, Rewriter, Rule

_ELEMENTWISE = frozenset((*UNARY, *BINARY, CAST, CLIP, WHERE))
#: Operators of ONNX that work on each element of their only tensor (onnx, docs/Operators.md).
_OPAQUE_ELEMENTWISE = frozenset(
    ("Gelu", "Elu", "Selu", "Celu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Softplus", "Softsign", "Swish")
)
#: Operators of ``com.microsoft`` that are elementwise as long as they add no bias.
_MICROSOFT_ELEMENTWISE = frozenset(("FastGelu", "Gelu", "QuickGelu"))
#: Elementwise nodes between the two layout operations.
MOST_NODES = 24
#: A constant of more elements is not transposed: the model would hold it twice where others need it as it was.
_MOST_ELEMENTS = 1 << 20


class _GatheredRegion(Struct, frozen=True):
    """``inner`` are the elementwise nodes, ``leaves`` the layout operations that feed them; ``others`` are operands
    that must be transposed instead."""

    inner: dict[Node, None] = field(default_factory=dict)
    leaves: dict[Node, None] = field(default_factory=dict)
    others: dict[Value, None] = field(default_factory=dict)


class _ElementwiseRegionMatch(Match, eq=False, kw_only=True):
    """``inner`` are the elementwise nodes, operands first; ``leaves`` the layout operations that feed them, ``others``
    the operands that are transposed."""

    inner: tuple[Node, ...]
    leaves: tuple[Node, ...]
    others: tuple[Value, ...]


class AroundElementwise(Rule[_ElementwiseRegionMatch]):
    """Elementwise operations between a reshape or transpose and its inverse are computed in the first shape.

    ``exact``. All their operands come from such an inverse, or broadcast alike in both. Constants are transposed,
    and so are other operands where there are fewer transposes then: a residual behind two of them.
    """

    name = "layout-around-elementwise"
    roots: ClassVar[tuple[Operation, ...]] = (*RESHAPES, TRANSPOSE)
    fed_by: ClassVar[Collection[Operation]] = (*UNARY, *BINARY, CAST, CLIP, WHERE, OPAQUE)

    def match(self, node: Node, graph: Graph) -> _ElementwiseRegionMatch | None:
        first = node.operand("x").producer
        if first is None or not is_elementwise(first) or not first.result.is_used_once:
            return None
        region = _gathered(node, first, adds=False) or (_gathered(node, first, adds=True) if _turns(node) else None)
        if region is None or not region.leaves:
            return None
        ordered, leaves = tuple(reversed(region.inner)), tuple(region.leaves)
        if any(user not in region.inner for n in ordered if n is not first for user in n.result.users):
            return None
        added = [value for value in region.others if constant_of(value) is None]
        if added and len(added) > sum(leaf.result.is_used_once for leaf in leaves):
            return None
        return _ElementwiseRegionMatch(
            node, (*ordered, *leaves), inner=ordered, leaves=leaves, others=tuple(region.others)
        )

    def describe(self, match: _ElementwiseRegionMatch) -> str:
        return f"{match.root.op.name} after {len(match.inner)} elementwise operations, and its inverse"

    def build(self, match: _ElementwiseRegionMatch, rewriter: Rewriter) -> Sequence[Value]:
        shape = match.root.result.shape
        made: dict[Value, Value] = {leaf.result: leaf.operand("x") for leaf in match.leaves}
        made |= {value: _turned(match.root, value, rewriter) for value in match.others}
        pending = list(match.inner)
        while pending:
            waiting = []
            for node in pending:
                if any(v is not None and v.producer in pending and v not in made for v in node.operands):
                    waiting.append(node)
                    continue
                operands = [None if v is None else made.get(v, v) for v in node.operands]
                record = node.attributes
                if isinstance(record, OpaqueAttributes):
                    record = replace(record, types=tuple([t.with_shape(shape) for t in record.types]))
                made[node.result] = rewriter.add(node.op, operands, record)
            pending = waiting
        return [made[match.root.operand("x")]]


def is_elementwise(node: Node) -> bool:
    if node.op is OPAQUE:
        a = node.attributes_as(OpaqueAttributes)
        if a.domain == MICROSOFT:
            return a.op_type in _MICROSOFT_ELEMENTWISE and not any(node.operands[1:])
        return not a.domain and a.op_type in _OPAQUE_ELEMENTWISE
    return node.op in _ELEMENTWISE


def _gathered(root: Node, first: Node, *, adds: bool) -> _GatheredRegion | None:
    """The elementwise nodes above the root; None where an operand is something else.

    With ``adds`` other operands are gathered too, and what others need as well as the region is one of these.
    """
    have, region = root.operand("x").shape, _GatheredRegion()
    stack = [first]
    while stack:
        node = stack.pop()
        if node in region.inner:
            continue
        region.inner[node] = None
        if len(region.inner) > MOST_NODES:
            return None
        for value in node.operands:
            maker = None if value is None else value.producer
            if value is None or (value.shape != have and _broadcasts_alike(root, value.shape)):
                continue
            if maker is not None and value.shape == have and _undoes(root, maker):
                region.leaves[maker] = None
            elif _is_inner(value, have, adds=adds) and maker is not None:
                stack.append(maker)
            elif _turns(root) and (_is_turned_constant(value, have) or (adds and value.shape == have)):
                region.others[value] = None
            else:
                return None
    return region if all(node.result.shape == have for node in region.inner) else None


def _is_inner(value: Value, have: Shape, *, adds: bool) -> bool:
    """Return whether an elementwise node of that shape makes the value, for the region alone if others may be added."""
    maker = value.producer
    if maker is None or value.shape != have or not is_elementwise(maker) or len(maker.results) > 1:
        return False
    return value.is_used_once or not adds


def _turns(root: Node) -> bool:
    return root.op is TRANSPOSE


def _is_turned_constant(value: Value, have: Shape) -> bool:
    tensor = constant_of(value)
    if tensor is None or tensor.size > _MOST_ELEMENTS or tensor.type.rank > len(have):
        return False
    return not (isinstance(tensor, StoredTensor) and tensor.is_apart)


def _turned(root: Node, value: Value, rewriter: Rewriter) -> Value:
    """An operand in the order of the root's result."""
    record, tensor = root.attributes_as(TransposeAttributes), constant_of(value)
    if tensor is None:
        return rewriter.add(TRANSPOSE, [value], record)
    ones = [1] * (len(record.perm) - tensor.type.rank)
    return rewriter.constant(np.transpose(tensor.array.reshape([*ones, *tensor.array.shape]), record.perm))


def _undoes(root: Node, maker: Node) -> bool:
    """True if the root gives what the maker was given."""
    if root.op is TRANSPOSE:
        if maker.op is not TRANSPOSE:
            return False
        first = maker.attributes_as(TransposeAttributes).perm
        second = root.attributes_as(TransposeAttributes).perm
        return all(first[axis] == i for i, axis in enumerate(second))
    return maker.op in RESHAPES and maker.operand("x").shape == root.result.shape


def _broadcasts_alike(root: Node, shape: Shape) -> bool:
    """True if an operand of that shape broadcasts to the root's operand as it does to its result."""
    have, want = root.operand("x").shape, root.result.shape
    if len(shape) > min(len(have), len(want)):
        return False
    if all(size == 1 for size in shape):
        return True
    return root.op is not TRANSPOSE and have[len(have) - len(shape) :] == want[len(want) - len(shape) :]
