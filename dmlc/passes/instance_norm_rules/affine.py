"""A factor or term per channel after a normalization becomes its scale or bias."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlc.ir import Array, Graph, Node, Value
from dmlc.ops.binary import ADD, DIV, MUL, SUB
from dmlc.ops.constant import constant_of
from dmlc.ops.move import TRANSPOSE, TransposeAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, is_opaque
from dmlc.passes.instance_norm_rules.nodes import (
    INSTANCE,
    affine_of,
    along,
    averages_several,
    channels,
    make_norm,
    norm_of,
)
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.patterns import both_ways, made_by
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere
from dmlc.records import dataclass


@dataclass(slots=True, eq=False)
class _ChannelAffineMatch(Match):
    """``norm`` is what is scaled, perhaps transposed by ``moved``; ``other`` is the root's other operand."""

    norm: Node | None = None
    moved: Node | None = None
    other: Value | None = None

    @property
    def parts(self) -> tuple[Node, Value]:
        assert self.norm is not None and self.other is not None
        return self.norm, self.other

    @property
    def axis(self) -> int:
        """Return the channel axis of the root's result."""
        return 1 if self.moved is None else self.moved.attributes_as(TransposeAttributes).perm.index(1)


class _AbsorbChannelAffine(Rule[_ChannelAffineMatch]):
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _ChannelAffineMatch | None:
        pairs = both_ways(node) if node.op in (MUL, ADD) else ((node.operand(0), node.operand(1)),)
        for value, other in pairs:
            moved = made_by(value, TRANSPOSE)
            norm = norm_of(value if moved is None else moved.operand(0))
            if norm is not None and constant_of(other) is not None:
                return _ChannelAffineMatch(node, (norm,) if moved is None else (moved, norm), norm, moved, other)
        return None

    def check(self, match: _ChannelAffineMatch, graph: Graph) -> Miss | None:
        norm, other = match.parts
        if _numbers(match) is None:
            return Miss("{0} is not one number for each channel of {1}", (other.type, norm.operand(0).type))
        if match.root.op is DIV and not np.all(_numbers(match)):
            return Miss("it divides by zero")
        if match.root.op in (ADD, SUB) and is_opaque(norm, INSTANCE) and not averages_several(graph, norm.operand(0)):
            return Miss(
                "a plane of {0} may be one element, whose bias a kernel may round away", (norm.operand(0).type,)
            )
        return next((miss for node in match.consumed if (miss := used_elsewhere(node.result))), None)

    def build(self, match: _ChannelAffineMatch, rewriter: Rewriter) -> Sequence[Value]:
        norm, _ = match.parts
        numbers = _numbers(match)
        assert numbers is not None
        scale, bias = affine_of(norm)
        op = match.root.op
        with np.errstate(all="ignore"):
            if op in (MUL, DIV):
                scale, bias = (scale * numbers, bias * numbers) if op is MUL else (scale / numbers, bias / numbers)
            else:
                bias = bias + numbers if op is ADD else bias - numbers
        a = norm.attributes_as(OpaqueAttributes)
        out = make_norm(rewriter, a.op_type, norm.operand(0), scale, bias, dict(a.attributes))
        return [out if match.moved is None else rewriter.add(TRANSPOSE, [out], match.moved.attributes)]


class AbsorbChannelScale(_AbsorbChannelAffine):
    """InstanceNormalization(x) * c, or over c, with one c for each channel, becomes its scale. ``reassociates``."""

    name = "absorb-channel-scale"
    roots = (MUL, DIV)
    fed_by = (OPAQUE, TRANSPOSE)


class AbsorbChannelBias(_AbsorbChannelAffine):
    """InstanceNormalization(x) + c, or less c, with one c for each channel, becomes its bias. ``reassociates``.

    Not where a plane may be a single element: there the result is c, and kernels round it against the element.
    """

    name = "absorb-channel-bias"
    roots = (ADD, SUB)
    fed_by = (OPAQUE, TRANSPOSE)


def _numbers(match: _ChannelAffineMatch) -> Array | None:
    """The numbers by channel; None where they vary along another axis."""
    norm, other = match.parts
    if norm.operand(1).shape != (channels(norm.operand(0)),):
        return None  # a scale for each group
    return along(match.consumed[0].result, match.axis, other)
