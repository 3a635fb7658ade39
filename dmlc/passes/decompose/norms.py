"""Normalizations over the last axes, over channels, over groups of channels, and over given axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from dmlc.ir import Dim, DType, Node, Operation, Value, floordiv, product
from dmlc.onnx_schema.domains import MICROSOFT
from dmlc.ops.binary import ADD, DIV, MUL, SUB
from dmlc.ops.elementwise import RECIPROCAL, SIGMOID, SQRT
from dmlc.ops.move import TRANSPOSE, TransposeAttributes
from dmlc.ops.normalize import LAYER_NORM, LP_NORM, RMS_NORM, LpNormAttributes, NormAttributes
from dmlc.ops.opaque import OPAQUE
from dmlc.passes.decompose.decomposition import Decomposition, given, operand, operator_of
from dmlc.passes.node_maker import Maker
from dmlc.passes.primitives import accumulated, centred, deviation, lp_norm, normalized
from dmlc.passes.rewrite import Miss

_SKIP, _SKIP_SIMPLIFIED = f"{MICROSOFT}.SkipLayerNormalization", f"{MICROSOFT}.SkipSimplifiedLayerNormalization"
#: The operand that is the bias added to the skip, and the default of epsilon there.
_SKIP_BIAS = {_SKIP: 4, _SKIP_SIMPLIFIED: 3}
_SKIP_EPSILON = 1e-12
_F32 = 1


class DecomposeLayerNorm(Decomposition):
    """A layer or RMS normalization becomes means, a root and a quotient, with its scale and bias.

    The variance is the mean of squares of what is left of the mean, not a difference of means, which loses digits. A
    skip is added first. f16 is computed in f32, as the operators do.
    """

    name = "decompose-layer-norm"
    roots: ClassVar[tuple[Operation, ...]] = (LAYER_NORM, RMS_NORM, OPAQUE)
    operators: ClassVar[tuple[str, ...]] = (
        "LayerNormalization",
        "RMSNormalization",
        "SimplifiedLayerNormalization",
        *_SKIP_BIAS,
    )

    def why_not(self, node: Node) -> Miss | None:
        if node.op is OPAQUE and given(node, "stash_type", _F32) != _F32:
            return Miss("its statistics are not f32")
        return None

    def parts(self, node: Node, make: Maker) -> Sequence[Value]:
        kind = operator_of(node)
        is_skip, is_simple = kind in _SKIP_BIAS, "Simplified" in kind or node.op is RMS_NORM or kind[:3] == "RMS"
        x, dtype = node.operand(0), node.results[0].type.dtype
        axis, epsilon = _record(node, _SKIP_EPSILON if is_skip else 1e-5)
        first = 2 if is_skip else 1
        if is_skip:
            for other in (operand(node, _SKIP_BIAS[kind]), operand(node, 1)):
                x = x if other is None else make(ADD, x, other)
        axes, home = tuple(range(axis, x.type.rank)), x.type.dtype.accumulator
        rest, mean = make.cast(x, home), None
        if not is_simple:
            rest, mean = centred(make, rest, axes)
        spread = deviation(make, rest, axes, epsilon)
        out = make(MUL, make(DIV, rest, spread), make.cast(node.operand(first), home))
        bias = None if is_simple else operand(node, first + 1)
        out = out if bias is None else make(ADD, out, make.cast(bias, home))
        others = [v.uses for v in node.results[1:]]
        inverse = make(RECIPROCAL, spread) if any(others) else spread
        if is_simple and not is_skip:
            return [make.cast(out, dtype), inverse][: len(node.results)]
        return [make.cast(out, dtype), inverse if mean is None else mean, inverse, x][: len(node.results)]


def _record(node: Node, epsilon: float) -> tuple[int, float]:
    """The first of the normalized axes, and the epsilon."""
    if node.op is not OPAQUE:
        a = node.attributes_as(NormAttributes)
        return a.axis, a.epsilon
    axis = int(given(node, "axis", -1))
    return axis % node.operand(0).type.rank, given(node, "epsilon", epsilon)


_GROUP = f"{MICROSOFT}.GroupNorm"
#: GroupNormalization has a scale and a bias for each channel from here on, and for each group before.
_CHANNEL_OPSET = 21


class DecomposeChannelNorm(Decomposition):
    """A normalization of each channel, or group of channels, becomes means, a root and a quotient.

    The scale and the bias belong to the channels, or, of GroupNormalization up to opset 20, of the groups.
    """

    name = "decompose-channel-norm"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    operators: ClassVar[tuple[str, ...]] = ("InstanceNormalization", "GroupNormalization", _GROUP)

    def why_not(self, node: Node) -> Miss | None:
        rank = node.operand(0).type.rank
        if rank < 3:
            return Miss("its operand has {0} axes", (rank,))
        if given(node, "stash_type", _F32) != _F32:
            return Miss("its statistics are not f32")
        if any(v.uses for v in node.results[1:]):
            return Miss("its further results are used")
        return None

    def parts(self, node: Node, make: Maker) -> Sequence[Value]:
        kind, x = operator_of(node), node.operand(0)
        groups = given(node, "groups" if kind == _GROUP else "num_groups", None)
        is_last = kind == _GROUP and bool(given(node, "channels_last", 1))
        dtype, rank = x.type.dtype, x.type.rank
        epsilon = given(node, "epsilon", 1e-5)
        if is_last:
            x = make(TRANSPOSE, x, attributes=TransposeAttributes(perm=(0, rank - 1, *range(1, rank - 1))))
        home = dtype.accumulator
        out = _by_groups(make, make.cast(x, home), groups, node, home, epsilon)
        if kind == _GROUP and given(node, "activation", 0):
            out = make(MUL, out, make(SIGMOID, out))
        out = make.cast(out, dtype)
        if is_last:
            out = make(TRANSPOSE, out, attributes=TransposeAttributes(perm=(0, *range(2, rank), 1)))
        return [out]


def _by_groups(make: Maker, x: Value, groups: int | None, node: Node, home: DType, epsilon: float) -> Value:
    """The normalized value with its scale and bias, which belong to the channels, or to the groups (opset 18)."""
    shape, (scale, bias) = x.shape, [make.cast(node.operand(i), home) for i in (1, 2)]
    if groups is None:
        out = normalized(make, x, range(2, len(shape)), epsilon)
        return _affine(make, out, scale, bias)
    is_by_group = operator_of(node) != _GROUP and make.rewriter.graph.opset < _CHANNEL_OPSET
    grouped: tuple[Dim, ...] = (shape[0], groups, floordiv(product(shape[1:]), groups))
    out = normalized(make, make.reshape(x, grouped), (2,), epsilon)
    if is_by_group:
        return make.reshape(_affine(make, out, scale, bias), shape)
    return _affine(make, make.reshape(out, shape), scale, bias)


def _affine(make: Maker, x: Value, scale: Value, bias: Value) -> Value:
    """The value times a scale plus a bias along the axis 1."""
    wide = [make.reshape(v, (v.shape[0], *[1] * (x.type.rank - 2))) for v in (scale, bias)]
    return make(ADD, make(MUL, x, wide[0]), wide[1])


class DecomposeBatchNorm(Decomposition):
    """A BatchNormalization of inference becomes a product and a sum with numbers of each channel."""

    name = "decompose-batch-norm"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    operators: ClassVar[tuple[str, ...]] = ("BatchNormalization",)

    def why_not(self, node: Node) -> Miss | None:
        if given(node, "training_mode", 0) or any(v.uses for v in node.results[1:]):
            return Miss("it trains")
        if given(node, "spatial", 1) != 1 or node.operand(0).type.rank < 2:
            return Miss("it is not by channel")
        return None

    def parts(self, node: Node, make: Maker) -> Sequence[Value]:
        x, dtype = node.operand(0), node.results[0].type.dtype
        home = x.type.dtype.accumulator
        scale, bias, mean, variance = [
            make.reshape(make.cast(node.operand(i), home), (node.operand(i).shape[0], *[1] * (x.type.rank - 2)))
            for i in range(1, 5)
        ]
        spread = make(SQRT, make(ADD, variance, make.constant(given(node, "epsilon", 1e-5), home)))
        factor = make(DIV, scale, spread)
        offset = make(SUB, bias, make(MUL, mean, factor))
        return [make.cast(make(ADD, make(MUL, make.cast(x, home), factor), offset), dtype)]


#: ONNX's definition of MeanVarianceNormalization adds it to the deviation.
_MVN_EPSILON = 1e-9


class DecomposeAxesNorm(Decomposition):
    """A mean-variance normalization, or a division by an Lp norm, becomes its means, or its norm, and a quotient."""

    name = "decompose-axes-norm"
    roots: ClassVar[tuple[Operation, ...]] = (LP_NORM, OPAQUE)
    operators: ClassVar[tuple[str, ...]] = ("LpNormalization", "MeanVarianceNormalization")

    def parts(self, node: Node, make: Maker) -> Sequence[Value]:
        if node.op is LP_NORM:
            a = node.attributes_as(LpNormAttributes)
            return [accumulated(make, node.operand("x"), lambda x: lp_norm(make, x, a.axis, a.p))]
        rank = node.operand(0).type.rank
        axes = sorted({int(axis) % rank for axis in given(node, "axes", (0, 2, 3))})

        def compute(x: Value) -> Value:
            rest, _ = centred(make, x, axes)
            spread = make(ADD, deviation(make, rest, axes, 0.0), make.constant(_MVN_EPSILON, x.type.dtype))
            return make(DIV, rest, spread)

        return [accumulated(make, node.operand(0), compute)]
