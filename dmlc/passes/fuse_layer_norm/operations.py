"""Normalizations of the language that become the operator that their written form becomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from dmlc.ir import Graph, Node, Operation, Value
from dmlc.ops.binary import SUB
from dmlc.ops.move import TRANSPOSE, TransposeAttributes
from dmlc.ops.normalize import LAYER_NORM, MEAN_VARIANCE_NORM, RMS_NORM, MeanVarianceAttributes, NormAttributes
from dmlc.ops.reduce import REDUCE_MEAN, ReduceAttributes
from dmlc.passes.fuse_layer_norm.core import NormMatch, NormRule, build_norm, why_no_norm
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.patterns import made_by, used_outside
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule


def norm_of_operation(node: Node) -> NormMatch | None:
    """The match of a mean-variance normalization; None if it takes out the mean alone."""
    a, x = node.attributes_as(MeanVarianceAttributes), node.operand("x")
    if not a.variance:
        return None
    return NormMatch(
        node,
        op=LAYER_NORM,
        x=x,
        source=x,
        axes=a.axes,
        dtype=x.type.dtype,
        epsilon=a.epsilon,
        follows=(),
        moments=False,
    )


class MeanVarianceNorm(NormRule):
    """``mean_variance_norm`` becomes ``layer_norm`` with a scale of ones, as its written form does.

    Where the target has no layer normalization at the opset, the mean is taken out and the rest becomes ``rms_norm``.
    """

    name = "fuse-mean-variance-norm"
    roots: ClassVar[tuple[Operation, ...]] = (MEAN_VARIANCE_NORM,)
    op = LAYER_NORM

    def match(self, node: Node, graph: Graph) -> NormMatch | None:
        return norm_of_operation(node)

    def check(self, match: NormMatch, graph: Graph) -> Miss | None:
        miss = super().check(match, graph)
        if miss is None:
            return None
        match.op = RMS_NORM
        return None if super().check(match, graph) is None else miss

    def build(self, match: NormMatch, rewriter: Rewriter) -> Sequence[Value]:
        if match.op is not RMS_NORM:
            return [build_norm(match, rewriter)]
        own = match.x.type.dtype
        x = rewriter.cast(match.x, own.accumulator)
        match.x, match.dtype = centred(rewriter, x, match.axes), x.type.dtype
        return [rewriter.cast(build_norm(match, rewriter), own)]


class CentredMatch(Match, eq=False, kw_only=True):
    """``x``, transposed by ``perm``, is normalized."""

    x: Value
    perm: tuple[int, ...]


class LayerNormByRms(Rule[Match]):
    """``layer_norm``, where the target lacks it at the opset, becomes ``rms_norm`` of the value less its mean.

    f16 is computed in f32, as the kernels of ``layer_norm`` do it: a mean rounded to f16 may be wrong by more than
    the deviation.
    """

    name = "layer-norm-by-rms"
    roots: ClassVar[tuple[Operation, ...]] = (LAYER_NORM,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> Match | None:
        x, scale = node.operand("x"), node.operand("scale")
        dtype, axis = x.type.dtype, node.attributes_as(NormAttributes).axis
        if node.origin is not None or why_no_norm(self.capabilities, LAYER_NORM, dtype) is None:
            return None
        is_whole = scale.shape == x.shape[axis:] and not any(graph.dims.promises_empty(d) for d in scale.shape)
        return Match(node) if is_whole and why_no_norm(self.capabilities, RMS_NORM, dtype) is None else None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        root = match.root
        a, own = root.attributes_as(NormAttributes), root.operand("x").type.dtype
        x, scale, *bias = (rewriter.cast(v, own.accumulator) for v in root.operands if v is not None)
        data = centred(rewriter, x, tuple(range(a.axis, x.type.rank)))
        out = rewriter(RMS_NORM, data, scale, attributes=a)
        return [(out + bias[0] if bias else out).cast(own).value]


class RmsOfCentred(Rule[CentredMatch]):
    """``rms_norm`` of a value less its mean over the same axes becomes ``layer_norm``, with a transpose between too.

    ONNX Runtime moves a transpose behind the difference, and saves the model so.
    """

    name = "rms-of-centred"
    roots: ClassVar[tuple[Operation, ...]] = (RMS_NORM,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> CentredMatch | Miss | None:
        data, a = node.operand("x"), node.attributes_as(NormAttributes)
        transpose = made_by(data, TRANSPOSE)
        perm = transpose.attributes_as(TransposeAttributes).perm if transpose else tuple(range(data.type.rank))
        difference = made_by(transpose.operand("x") if transpose else data, SUB)
        mean = difference and made_by(difference.operand("b"), REDUCE_MEAN)
        if difference is None or mean is None or mean.operand("x") is not difference.operand("a"):
            return None
        taken = mean.attributes_as(ReduceAttributes)
        if not taken.keepdims or {perm.index(axis) for axis in taken.axes} != set(range(a.axis, data.type.rank)):
            return None
        consumed = tuple([step for step in (transpose, difference, mean) if step is not None])
        match = CentredMatch(node, consumed, x=mean.operand("x"), perm=perm)
        return why_no_norm(self.capabilities, LAYER_NORM, data.type.dtype) or used_outside(consumed, node) or match

    def build(self, match: CentredMatch, rewriter: Rewriter) -> Sequence[Value]:
        x = rewriter.of(match.x).transposed(match.perm)
        return [rewriter(LAYER_NORM, x, match.root.operand("scale"), attributes=match.root.attributes).value]


def centred(rewriter: Rewriter, x: Value, axes: tuple[int, ...]) -> Value:
    """The value less its mean over the axes."""
    return rewriter.add(SUB, [x, rewriter.add(REDUCE_MEAN, [x], ReduceAttributes(axes=axes, keepdims=True))])
