"""Branches that always run: their condition is known, or the other branch gives a rank with which a run fails."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from dmlc.ir import FOREIGN, Graph, Node, Operation, Region, Value
from dmlc.ops.constant import constant_of
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of, is_opaque
from dmlc.passes.rewrite import Match, Rewriter, Rule

#: Nodes that are followed from a value to what fixes its rank.
_MOST_NODES = 8
_RECURRENT = frozenset(("GRU", "LSTM", "RNN"))
#: Operators whose result has the rank of their first operand.
_SAME_RANK = frozenset(
    (
        *("Abs", "Cast", "Ceil", "Clip", "Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu", "HardSigmoid", "HardSwish"),
        *("Identity", "LeakyRelu", "Log", "LogSoftmax", "Neg", "Not", "Reciprocal", "Relu", "Round", "Selu", "Sigmoid"),
        *("Sign", "Softmax", "Softplus", "Sqrt", "Tanh"),
    )
)


class BranchMatch(Match, eq=False, kw_only=True):
    """``taken`` is the branch that always runs."""

    taken: Region


class InlineBranch(Rule[BranchMatch]):
    """An If of a constant condition becomes the nodes of the branch that it takes.

    So does one whose other branch gives a rank that a user refuses. A recurrent layer reads three axes, and a
    convolution as many as its weights have. TorchScript writes such an If for each ``squeeze`` of an open size.
    """

    name = "inline-branch"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)

    def match(self, node: Node, graph: Graph) -> BranchMatch | None:
        if not is_opaque(node, "If"):
            return None
        condition = constant_of(node.operands[0])
        if condition is None:
            possible = _possible_branches(node)
            return BranchMatch(node, taken=possible[0]) if len(possible) == 1 else None
        wanted = "then_branch" if condition.array.all() else "else_branch"
        return BranchMatch(node, taken=next(r for r in node.regions if r.attribute == wanted))

    def build(self, match: BranchMatch, rewriter: Rewriter) -> Sequence[Value]:
        return rewriter.inline(match.taken.graph, _captured(match.root, match.taken))


def _captured(node: Node, region: Region) -> dict[Value, Value]:
    """The values around a region by what stands for them inside it."""
    return {inner: node.operand(place) for inner, place in zip(region.captured, region.captures, strict=True)}


def _possible_branches(node: Node) -> list[Region]:
    """The branches of an If whose results have ranks that all users take."""
    wanted = [(i, needed_rank(v)) for i, v in enumerate(node.results) if v.type.dtype is FOREIGN]
    wanted = [(i, rank) for i, rank in wanted if rank is not None]
    out = []
    for region in node.regions if wanted else ():
        around, outputs = _captured(node, region), [value for _, value in region.graph.outputs]
        ranks = [(rank, possible_ranks(outputs[i], around)) for i, rank in wanted]
        if all(found is None or rank in found for rank, found in ranks):
            out.append(region)
    return out


def needed_rank(value: Value, steps: int = _MOST_NODES) -> int | None:
    """Return the rank that a value has in each run that does not fail, by the nodes that read it; None if none says."""
    found = [_rank_for(user, index, steps) for user, index in value.uses if user.op is OPAQUE and steps]
    return next((rank for rank in found if rank is not None), None)


def _rank_for(node: Node, index: int, steps: int) -> int | None:
    """The rank that a node wants of its operand of that number."""
    a = node.attributes_as(OpaqueAttributes)
    if a.domain:
        return None
    if a.op_type in _RECURRENT:
        return 3 if index in (0, 5, 6) else None
    if a.op_type in ("Conv", "ConvTranspose"):
        weights = node.operands[1]
        return weights.type.rank if index == 0 and weights is not None and weights.type.dtype is not FOREIGN else None
    more = None if index else _axes_more(node)
    after = None if more is None else needed_rank(node.results[0], steps - 1)
    return None if more is None or after is None else after - more


def _axes_more(node: Node) -> int | None:
    """Return how many axes more than its first operand the result of an opaque node has; None if that is not known."""
    a = node.attributes_as(OpaqueAttributes)
    if a.domain or a.op_type in _SAME_RANK:
        return None if a.domain else 0
    if a.op_type not in ("Squeeze", "Unsqueeze"):
        return None
    axes = attribute_of(node, "axes")
    operand = constant_of(node.operands[1]) if len(node.operands) > 1 else None
    count = len(axes) if axes is not None else operand.size if operand is not None else 0
    return (count if a.op_type == "Unsqueeze" else -count) if count else None


def possible_ranks(value: Value, around: Mapping[Value, Value], steps: int = _MOST_NODES) -> frozenset[int] | None:
    """Return the ranks that a value may have; None where they are not known. ``around`` are captured values."""
    while value in around:
        value = around[value]
    if value.type.dtype is not FOREIGN:
        return frozenset((value.type.rank,))
    node = value.producer
    if node is None or node.op is not OPAQUE or not steps:
        return None
    if is_opaque(node, "If"):
        parts = [
            possible_ranks(region.graph.outputs[value.index][1], {**around, **_captured(node, region)}, steps - 1)
            for region in node.regions
        ]
        return None if None in parts else frozenset([rank for part in parts for rank in part or ()])
    more = _axes_more(node)
    before = None if more is None else possible_ranks(node.operand(0), around, steps - 1)
    return None if more is None or before is None else frozenset([rank + more for rank in before])
