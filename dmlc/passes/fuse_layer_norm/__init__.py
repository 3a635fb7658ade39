"""``fuse-layer-norm``: layer and RMS normalizations that are written out become one node each."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, ClassVar

import numpy as np

from dmlc.ir import Array, Graph, Node, Operation, Value
from dmlc.ir.dtype import f16, f32
from dmlc.ops.binary import ADD, MUL, SUB
from dmlc.ops.choose import CAST
from dmlc.ops.constant import constant_of
from dmlc.ops.move import TRANSPOSE, TransposeAttributes
from dmlc.ops.normalize import LAYER_NORM, MEAN_VARIANCE_NORM, RMS_NORM, MeanVarianceAttributes, NormAttributes
from dmlc.ops.reduce import REDUCE_MEAN, ReduceAttributes
from dmlc.passes.fold_constants.layouts import transpose_chain
from dmlc.passes.fuse_layer_norm.written import (
    NormMatch,
    NormRule,
    WrittenLayerNorm,
    WrittenRmsNorm,
    build_norm,
    why_no_norm,
)
from dmlc.passes.manager import RANGE, REASSOCIATES, PassContext
from dmlc.passes.patterns import made_by, used_outside
from dmlc.passes.rewrite import Match, Miss, RewritePass, Rewriter, Rule, used_elsewhere

# --- Normalizations of the language that become the operator that their written form becomes


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


# --- Scales and biases that join a normalization


class AffineMatch(Match, eq=False, kw_only=True):
    """``path`` are the moves and casts that lead from ``norm`` to the root, ``other`` is the root's other operand."""

    norm: Node
    path: tuple[Node, ...]
    other: Value
    negated: bool


class _AbsorbAffine(Rule[AffineMatch]):
    """Base of the two rules."""

    rewrite_class = REASSOCIATES
    norms: ClassVar[tuple[Operation, ...]]
    #: Number of the normalization's operand that it becomes.
    place: ClassVar[int]

    def match(self, node: Node, graph: Graph) -> AffineMatch | None:
        for i in (0, 1):
            if node.op is SUB and i == 1:
                break
            other = node.operand(1 - i)
            path = self._path(node.operand(i))
            if path is None:
                continue
            norm, *moves = path
            axis, group = _group(norm)
            # A residual has the rank of what is normalized, so that it is not taken for a bias.
            if constant_of(other) is None and (moves or axis == 0 or other.shape != group or node.op is SUB):
                continue
            if why_no_norm(self.capabilities, norm.op, norm.result.type.dtype) is not None:
                return None
            return AffineMatch(node, tuple(path), norm=norm, path=tuple(moves), other=other, negated=node.op is SUB)
        return None

    def _path(self, value: Value) -> list[Node] | None:
        """The normalization and what moves or casts it on the way to ``value``."""
        path: list[Node] = []
        node = value.producer
        while node is not None and len(path) < 3:
            path.append(node)
            if node.op in self.norms:
                return path[::-1]
            if node.op is CAST:
                if (node.operand("x").type.dtype, node.result.type.dtype) != (f32, f16):
                    return None
            elif node.op is not TRANSPOSE:
                return None
            node = node.operand("x").producer
        return None

    def check(self, match: AffineMatch, graph: Graph) -> Miss | None:
        norm, other = match.norm, match.other
        for node in match.consumed:
            miss = used_elsewhere(node.result)
            if miss is not None:
                return miss
        if match.root.result.shape != (match.path[-1] if match.path else norm).result.shape:
            return Miss("it broadcasts {0}", (norm.result.type,), other)
        axis, group = _group(norm)
        if not all(isinstance(d, int) for d in group):
            return Miss("the normalized sizes [{0}] are not known", (", ".join(map(str, group)),), norm.operand("x"))
        for value in norm.operands[1:]:
            if value is not None and value.shape != group:
                return Miss("{0} is broadcast by the normalization already", (value.type,), value)
        have = norm.operands[self.place] if len(norm.operands) > self.place else None
        if have is not None and not self._is_neutral(have) and None in (constant_of(have), constant_of(other)):
            return Miss("it has one already, and not both are constants", (), have)
        if constant_of(other) is not None and _aligned(match) is None:
            return Miss("{0} varies along an axis before {1}, the first normalized one", (other.type, axis), other)
        return None

    def _is_neutral(self, value: Value) -> bool:
        """Ones for a scale, zeros for a bias."""
        tensor = constant_of(value)
        return tensor is not None and bool(np.all(tensor.array == 2 - self.place))

    def build(self, match: AffineMatch, rewriter: Rewriter) -> Sequence[Value]:
        norm, other = match.norm, match.other
        group = _group(norm)[1]
        dtype = norm.result.type.dtype
        operands = [*norm.operands, *[None] * (self.place + 1 - len(norm.operands))]
        old = operands[self.place]
        have = constant_of(old)
        neutral = old is None or self._is_neutral(old)
        if not (neutral and not match.negated and other.shape == group and other.type.dtype is dtype):
            aligned = _aligned(match)
            assert aligned is not None
            array = np.broadcast_to(aligned, [d for d in group if isinstance(d, int)]).astype(dtype.numpy)
            if match.negated:
                array = -array
            if have is not None and not neutral:
                with np.errstate(all="ignore"):
                    array = have.array * array if self.place == 1 else have.array + array
            other = rewriter.constant(array)
        operands[self.place] = other
        out = rewriter.add(norm.op, operands, norm.attributes)
        for node in match.path:
            out = rewriter.add(node.op, [out], node.attributes)
        return [out]


class AbsorbScale(_AbsorbAffine):
    """``layer_norm`` or ``rms_norm`` times a constant along its axes becomes the same with that ``scale``.

    Also through a transpose or a cast to f16 behind it: one rounding less.
    """

    name = "absorb-norm-scale"
    roots: ClassVar[tuple[Operation, ...]] = (MUL,)
    fed_by: ClassVar[Collection[Operation]] = (LAYER_NORM, RMS_NORM, CAST, TRANSPOSE)
    norms: ClassVar[tuple[Operation, ...]] = (LAYER_NORM, RMS_NORM)
    place = 1

    def match(self, node: Node, graph: Graph) -> AffineMatch | None:
        match = super().match(node, graph)
        if match is not None and len(match.norm.operands) > 2 and match.norm.operands[2] is not None:
            return None  # a bias is added in between
        return match


class AbsorbBias(_AbsorbAffine):
    """``layer_norm`` plus a constant along its axes becomes the same with that ``bias``.

    Also through a transpose or a cast to f16 behind it: one rounding less.
    """

    name = "absorb-norm-bias"
    roots: ClassVar[tuple[Operation, ...]] = (ADD, SUB)
    fed_by: ClassVar[Collection[Operation]] = (LAYER_NORM, CAST, TRANSPOSE)
    norms: ClassVar[tuple[Operation, ...]] = (LAYER_NORM,)
    place = 2


def _group(norm: Node) -> tuple[int, tuple[object, ...]]:
    axis = norm.attributes_as(NormAttributes).axis
    return axis, norm.operand("x").shape[axis:]


def _aligned(match: AffineMatch) -> Array | None:
    """The constant as it lies along the normalized axes; None where it varies along others."""
    norm, other = match.norm, match.other
    tensor = constant_of(other)
    assert tensor is not None
    axis, rank = norm.attributes_as(NormAttributes).axis, norm.result.type.rank
    shape = (1,) * (rank - len(tensor.type.shape)) + tensor.array.shape
    order = list(range(rank))
    for node in match.path:
        if node.op is TRANSPOSE:
            order = [order[a] for a in node.attributes_as(TransposeAttributes).perm]
    # Axis j of the result is axis order[j] of the normalization.
    back = [order.index(a) for a in range(rank)]
    array = tensor.array.reshape(shape).transpose(back)
    return array.reshape(array.shape[axis:]) if all(d == 1 for d in array.shape[:axis]) else None


class FuseLayerNorm(RewritePass, frozen=True):
    """Fuse written-out layer and RMS normalizations, if the target has the operators at the emitted opset.

    The normalized value is matched first, with a scale of ones; factors and terms along its axes then join it. A layer
    normalization that cannot be one node (below opset 17) becomes an RMS normalization of the centred value.
    """

    name: ClassVar[str] = "fuse-layer-norm"
    summary: ClassVar[str] = "Make one node of layer and RMS normalizations that are written out."
    rewrite_class: ClassVar[str] = RANGE

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        written = (WrittenLayerNorm, WrittenRmsNorm, RmsOfCentred, AbsorbScale, AbsorbBias)
        if not context.capabilities.emits_nodes:
            return written
        return [*written, MeanVarianceNorm, LayerNormByRms, transpose_chain]

    def run(self, graph: Graph, context: PassContext) -> bool:
        if context.target.code == "numpy":
            return False
        return super().run(graph, context)
