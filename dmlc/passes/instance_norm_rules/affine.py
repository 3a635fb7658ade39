"""What a normalization is multiplied by or added to, one number for each channel, becomes its scale or bias."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dmlc.ir import Array, Graph, Node, Value
from dmlc.ops.binary import ADD, MUL
from dmlc.ops.constant import constant_of
from dmlc.ops.opaque import OpaqueAttributes
from dmlc.passes.instance_norm_rules.nodes import affine_of, channels, make_norm, norm_of
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.patterns import both_ways
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere


@dataclass(slots=True, eq=False)
class _Found(Match):
    other: Value | None = None


class _Absorb(Rule[_Found]):
    rewrite_class = REASSOCIATES
    is_scale: ClassVar[bool]

    def match(self, node: Node, graph: Graph) -> _Found | None:
        for value, other in both_ways(node):
            norm = norm_of(value)
            if norm is not None and constant_of(other) is not None:
                return _Found(node, (norm,), other)
        return None

    def check(self, match: _Found, graph: Graph) -> Miss | None:
        (norm,) = match.consumed
        assert match.other is not None
        if _per_channel(norm, match.other) is None:
            return Miss("{0} is not one number for each channel of {1}", (match.other.type, norm.operand(0).type))
        if match.root.result.shape != norm.result.shape:
            return Miss("it is stretched to {0}", (match.root.result.type,))
        return used_elsewhere(norm.result)

    def build(self, match: _Found, rewriter: Rewriter) -> Sequence[Value]:
        (norm,) = match.consumed
        assert match.other is not None
        numbers = _per_channel(norm, match.other)
        assert numbers is not None
        scale, bias = affine_of(norm)
        with np.errstate(all="ignore"):
            scale, bias = (scale * numbers, bias * numbers) if self.is_scale else (scale, bias + numbers)
        a = norm.attributes_as(OpaqueAttributes)
        return [make_norm(rewriter, a.op_type, norm.operand(0), scale, bias, dict(a.attributes))]


class AbsorbChannelScale(_Absorb):
    """InstanceNormalization(x) * c, with one c for each channel, becomes its scale. ``reassociates``."""

    name = "absorb-channel-scale"
    roots = (MUL,)
    is_scale = True


class AbsorbChannelBias(_Absorb):
    """InstanceNormalization(x) + c, with one c for each channel, becomes its bias. ``reassociates``."""

    name = "absorb-channel-bias"
    roots = (ADD,)
    is_scale = False


def _per_channel(norm: Node, other: Value) -> Array | None:
    """The numbers by channel; None where they vary along another axis."""
    x, tensor = norm.operand(0), constant_of(other)
    count, rank = channels(x), x.type.rank
    assert tensor is not None
    if count is None or tensor.type.rank > rank:
        return None
    if norm.operand(1).shape != (count,):
        return None  # a scale for each group
    shape = (*[1] * (rank - tensor.type.rank), *tensor.type.shape)
    if any(size != 1 for axis, size in enumerate(shape) if axis != 1) or shape[1] not in (1, count):
        return None
    return np.broadcast_to(tensor.array.astype(np.float64).reshape(-1), (count,))
