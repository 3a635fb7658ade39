"""Repairs of normalizations."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from dmlc.ir import FOREIGN, Graph, Node, Operation, OpError, Value
from dmlc.ir.dtype import f32
from dmlc.onnx_schema.domains import MICROSOFT
from dmlc.ops.binary import ADD
from dmlc.ops.elementwise import RECIPROCAL
from dmlc.ops.move import EXPAND, ExpandAttributes
from dmlc.ops.normalize import LAYER_NORM, LP_NORM, LpNormAttributes, NormAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of, is_opaque
from dmlc.passes.intervals import RangedRule
from dmlc.passes.manager import EXACT, REASSOCIATES, PassContext
from dmlc.passes.node_maker import Maker
from dmlc.passes.primitives import accumulated, centred, deviation, lp_norm
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule

#: The type of Mean and InvStdDev, f32, as LayerNormalization's attribute says it.
_F32 = 1
#: Means that are so many deviations from 0 cost a norm of f32 a thousandth.
_FAR = 32


class OneLayerNormResult(Rule[Match]):
    """A LayerNormalization loses Mean and InvStdDev; where one is used, other nodes compute it.

    ``exact`` where none is used, else ``reassociates``.
    """

    name = "one-layer-norm-result"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    repairs: ClassVar[tuple[str, ...]] = ("layer-norm-results",)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> Match | None:
        (failure,) = self.repairs
        if not is_opaque(node, "LayerNormalization") or self.capabilities.fault(failure, "LayerNormalization") is None:
            return None
        kernel, x = self.capabilities.kernel("LayerNormalization"), node.operands[0]
        if kernel is None or x is None or x.type.dtype.name not in kernel.types["T"]:
            return None
        return Match(node) if len(node.results) > 1 else None

    def check(self, match: Match, graph: Graph) -> Miss | None:
        root = match.root
        if attribute_of(root, "stash_type", _F32) != _F32:
            return Miss("its statistics are not f32")
        try:
            graph.infer(LAYER_NORM, _operands(root), _record(root))
        except OpError as error:
            return Miss("{0}", (str(error),))
        return None

    def class_of(self, match: Match, graph: Graph, context: PassContext) -> str:
        return REASSOCIATES if any(v.uses for v in match.root.results[1:]) else EXACT

    def describe(self, match: Match) -> str:
        return f"LayerNormalization with {len(match.root.results)} results"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, root = Maker(rewriter), match.root
        record, x = _record(root), root.operand(0)
        out = [rewriter.add(LAYER_NORM, _operands(root), record)]
        if not any(v.uses for v in root.results[1:]):
            return [*out, *root.results[1:]]
        axes = tuple(range(record.axis, x.type.rank))
        rest, mean = centred(make, make.cast(x, f32), axes)
        return [*out, mean, make(RECIPROCAL, deviation(make, rest, axes, record.epsilon))][: len(root.results)]


def _record(node: Node) -> NormAttributes:
    axis = int(attribute_of(node, "axis", -1))
    rank = node.operand(0).type.rank
    return NormAttributes(axis=axis + rank if axis < 0 else axis, epsilon=attribute_of(node, "epsilon", 1e-5))


def _operands(node: Node) -> list[Value]:
    return [v for v in node.operands if v is not None]


_FULL, _SIMPLIFIED = "SkipLayerNormalization", "SkipSimplifiedLayerNormalization"
#: The operand of the simplified form that is a bias, and that the provider reads as another.
_BIAS = 3


class PlainSkipNorm(Rule[Match]):
    """A skip that broadcasts is expanded, and the bias of the simplified form is added before the node."""

    name = "plain-skip-norm"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    repairs: ClassVar[tuple[str, ...]] = ("skip-norm-bias", "skip-norm-broadcast")
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> Match | None:
        if not any(is_opaque(node, op, MICROSOFT) for op in (_FULL, _SIMPLIFIED)):
            return None
        x, skip = node.operands[:2]
        if x is None or skip is None or FOREIGN in (x.type.dtype, skip.type.dtype):
            return None
        return Match(node) if _broadcasts(skip, x) or _bias_of(node) is not None else None

    def describe(self, match: Match) -> str:
        return match.root.attributes_as(OpaqueAttributes).op_type

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, root = Maker(rewriter), match.root
        x, skip, *rest = root.operands
        assert x is not None and skip is not None
        bias = _bias_of(root)
        if bias is not None:
            skip, rest = make(ADD, skip, make.reshape(bias, skip.shape[-1:])), rest[:1]
        if _broadcasts(skip, x):
            skip = make(EXPAND, skip, attributes=ExpandAttributes(shape=x.shape))
        return rewriter.add_node(OPAQUE, [x, skip, *rest], root.attributes_as(OpaqueAttributes)).results


def _broadcasts(skip: Value, x: Value) -> bool:
    """Return whether the skip broadcasts. Open sizes of which neither is 1 are equal in every model that runs."""
    if skip.type.rank != x.type.rank:
        return True
    return any(m != n and m == 1 for m, n in zip(skip.shape, x.shape, strict=True))


def _bias_of(node: Node) -> Value | None:
    simplified = is_opaque(node, _SIMPLIFIED, MICROSOFT)
    return node.operands[_BIAS] if simplified and len(node.operands) > _BIAS else None


class CentredNorm(RangedRule, Rule[Match]):
    """The mean is taken off before a layer normalization, where ranges show it far from 0.

    The result is the same but for rounding, and the kernel's difference of squares loses no digits then.
    """

    name = "centred-norm"
    roots: ClassVar[tuple[Operation, ...]] = (LAYER_NORM, OPAQUE)
    repairs: ClassVar[tuple[str, ...]] = ("norm-far-mean",)
    rewrite_class = REASSOCIATES
    trusts = True

    def match(self, node: Node, graph: Graph) -> Match | None:
        (failure,) = self.repairs
        if self.capabilities.fault(failure, "LayerNormalization") is None or len(node.results) > 1:
            return None
        if node.op is OPAQUE and not is_opaque(node, "LayerNormalization"):
            return None
        low, high = self.interval(node.operand(0), graph)
        is_far = (low > 0 or high < 0) and min(abs(low), abs(high)) > _FAR * (high - low) / 2
        return Match(node) if is_far and math.isfinite(high - low) else None

    def describe(self, match: Match) -> str:
        return "layer normalization far from 0"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, root = Maker(rewriter), match.root
        x = root.operand(0)
        record = root.attributes_as(NormAttributes) if root.op is LAYER_NORM else _record(root)
        rest, _ = centred(make, x, tuple(range(record.axis, x.type.rank)))
        return rewriter.add_node(root.op, [rest, *root.operands[1:]], root.attributes).results


class LpNormInParts(Rule[Match]):
    """lp_norm becomes a division by its norm; a row of zeros is divided by 1."""

    name = "lp-norm-in-parts"
    roots: ClassVar[tuple[Operation, ...]] = (LP_NORM,)
    repairs: ClassVar[tuple[str, ...]] = ("lp-epsilon",)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> Match | None:
        (failure,) = self.repairs
        dtype = node.result.type.dtype
        if self.capabilities.fault(failure, "LpNormalization") is None or self.capabilities.leaves(
            "LpNormalization", dtype
        ):
            return None
        return Match(node)

    def describe(self, match: Match) -> str:
        return f"lp_norm of {match.root.result.type.dtype}"

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        make, root = Maker(rewriter), match.root
        a = root.attributes_as(LpNormAttributes)
        return [accumulated(make, root.operand("x"), lambda x: lp_norm(make, x, a.axis, a.p))]
