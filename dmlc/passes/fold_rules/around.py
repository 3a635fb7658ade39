"""Elementwise operations between a layout operation and its inverse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dmlc.ir import Graph, Node, Shape, Value
from dmlc.ops.binary import BINARY
from dmlc.ops.choose import CAST, CLIP, WHERE
from dmlc.ops.elementwise import UNARY
from dmlc.ops.move import RESHAPE, SQUEEZE, TRANSPOSE, UNSQUEEZE, TransposeAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes
from dmlc.passes.rewrite import Match, Rewriter, Rule
from dmlc.records import dataclass

_RESHAPES = frozenset((RESHAPE, SQUEEZE, UNSQUEEZE))
_ELEMENTWISE = frozenset((*UNARY, *BINARY, CAST, CLIP, WHERE))
#: Operators of ONNX that work on each element of their only tensor (onnx, docs/Operators.md).
_OPAQUE_ELEMENTWISE = frozenset(
    ("Gelu", "Elu", "Selu", "Celu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Softplus", "Softsign", "Swish")
)
#: Elementwise nodes between the two layout operations.
_MOST_NODES = 24


@dataclass(slots=True, eq=False)
class _ElementwiseRegionMatch(Match):
    """``inner`` are the elementwise nodes, operands first; ``leaves`` the layout operations that feed them."""

    inner: tuple[Node, ...] = ()
    leaves: tuple[Node, ...] = ()


class AroundElementwise(Rule[_ElementwiseRegionMatch]):
    """Elementwise operations between a reshape or transpose and its inverse are computed in the first shape.

    ``exact``. All their operands come from such an inverse, or broadcast alike in both shapes.
    """

    name = "layout-around-elementwise"
    roots = (RESHAPE, SQUEEZE, UNSQUEEZE, TRANSPOSE)
    fed_by = (*UNARY, *BINARY, CAST, CLIP, WHERE, OPAQUE)

    def match(self, node: Node, graph: Graph) -> _ElementwiseRegionMatch | None:
        first = node.operand(0).producer
        if first is None or not _is_elementwise(first) or not first.result.is_used_once:
            return None
        inner: dict[Node, None] = {}
        leaves: dict[Node, None] = {}
        if not _gather(node, first, inner, leaves) or not leaves:
            return None
        ordered = tuple(reversed(inner))
        if any(user not in inner for n in ordered if n is not first for user in n.result.users):
            return None
        return _ElementwiseRegionMatch(node, (*ordered, *leaves), ordered, tuple(leaves))

    def describe(self, match: _ElementwiseRegionMatch) -> str:
        return f"{match.root.op.name} after {len(match.inner)} elementwise operations, and its inverse"

    def build(self, match: _ElementwiseRegionMatch, rewriter: Rewriter) -> Sequence[Value]:
        shape = match.root.result.shape
        made: dict[Value, Value] = {leaf.result: leaf.operand(0) for leaf in match.leaves}
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
        return [made[match.root.operand(0)]]


def _is_elementwise(node: Node) -> bool:
    if node.op is OPAQUE:
        a = node.attributes_as(OpaqueAttributes)
        return not a.domain and a.op_type in _OPAQUE_ELEMENTWISE and len(node.operands) == 1
    return node.op in _ELEMENTWISE


def _gather(root: Node, first: Node, inner: dict[Node, None], leaves: dict[Node, None]) -> bool:
    """Collect the elementwise nodes above the root and their leaves; False where an operand is something else."""
    have = root.operand(0).shape
    stack = [first]
    while stack:
        node = stack.pop()
        if node in inner:
            continue
        inner[node] = None
        if len(inner) > _MOST_NODES:
            return False
        for value in node.operands:
            maker = None if value is None else value.producer
            if value is None or (value.shape != have and _broadcasts_alike(root, value.shape)):
                continue
            if value.shape != have or maker is None:
                return False
            if _undoes(root, maker):
                leaves[maker] = None
            elif _is_elementwise(maker) and len(maker.results) == 1:
                stack.append(maker)
            else:
                return False
    return all(node.result.shape == have for node in inner)


def _undoes(root: Node, maker: Node) -> bool:
    """True if the root gives what the maker was given."""
    if root.op is TRANSPOSE:
        if maker.op is not TRANSPOSE:
            return False
        first = maker.attributes_as(TransposeAttributes).perm
        second = root.attributes_as(TransposeAttributes).perm
        return all(first[axis] == i for i, axis in enumerate(second))
    return maker.op in _RESHAPES and maker.operand(0).shape == root.result.shape


def _broadcasts_alike(root: Node, shape: Shape) -> bool:
    """True if an operand of that shape broadcasts to the root's operand as it does to its result."""
    have, want = root.operand(0).shape, root.result.shape
    if len(shape) > min(len(have), len(want)):
        return False
    if all(size == 1 for size in shape):
        return True
    return root.op is not TRANSPOSE and have[len(have) - len(shape) :] == want[len(want) - len(shape) :]
