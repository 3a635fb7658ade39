"""Normalizations over the last axes, over channels, over groups of channels, and over given axes."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.ir import Dim, Node, floordiv, product
from dmlc.onnx_schema.domains import MICROSOFT
from dmlc.ops.normalize import LAYER_NORM, LP_NORM, RMS_NORM, LpNormAttributes, NormAttributes
from dmlc.ops.opaque import OPAQUE
from dmlc.passes.decompose.decomposition import decomposes, given, operand, operator_of
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import Lowered
from dmlc.passes.primitives import affine_norm, centred, deviation, lp_norm, normalized
from dmlc.passes.rewrite import Miss

_SKIP, _SKIP_SIMPLIFIED = f"{MICROSOFT}.SkipLayerNormalization", f"{MICROSOFT}.SkipSimplifiedLayerNormalization"
#: The operand that is the bias added to the skip, and the default of epsilon there.
_SKIP_BIAS = {_SKIP: 4, _SKIP_SIMPLIFIED: 3}
_SKIP_EPSILON = 1e-12
_F32 = 1


@decomposes(
    "LayerNormalization",
    "RMSNormalization",
    "SimplifiedLayerNormalization",
    *_SKIP_BIAS,
    roots=(LAYER_NORM, RMS_NORM, OPAQUE),
)
def decompose_layer_norm(e: Sketch, node: Node, x: Term, *more: Term | None) -> Lowered:
    """A layer or RMS normalization becomes means, a root and a quotient, with its scale and bias.

    The variance is the mean of squares of what is left of the mean, not a difference of means, which loses digits. A
    skip is added first. f16 is computed in f32, as the operators do.
    """
    if node.op is OPAQUE and given(node, "stash_type", _F32) != _F32:
        return Miss("its statistics are not f32")
    kind = operator_of(node)
    is_skip, is_simple = kind in _SKIP_BIAS, "Simplified" in kind or node.op is RMS_NORM or kind[:3] == "RMS"
    axis, epsilon = _record(node, _SKIP_EPSILON if is_skip else 1e-5)
    if is_skip:
        for other in (operand(more, _SKIP_BIAS[kind] - 1), more[0]):
            x = x if other is None else x + other
        more = more[1:]
    scale, bias = more[0], None if is_simple else operand(more, 1)
    assert scale is not None
    axes = range(axis, x.rank)
    out, mean, spread = affine_norm(e, x.widened(), axes, epsilon, scale, bias, centre=not is_simple)
    inverse = e.reciprocal(spread) if any(v.uses for v in node.results[1:]) else spread
    out = out.cast(node.results[0].type.dtype)
    if is_simple and not is_skip:
        return [out, inverse][: len(node.results)]
    return [out, inverse if mean is None else mean, inverse, x][: len(node.results)]


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


@decomposes("InstanceNormalization", "GroupNormalization", _GROUP)
def decompose_channel_norm(e: Sketch, node: Node, x: Term, scale: Term, bias: Term) -> Lowered:
    """A normalization of each channel, or group of channels, becomes means, a root and a quotient.

    The scale and the bias belong to the channels, or, of GroupNormalization up to opset 20, of the groups.
    """
    kind, rank, dtype = operator_of(node), x.rank, x.dtype
    if rank < 3:
        return Miss("its operand has {0} axes", (rank,))
    if given(node, "stash_type", _F32) != _F32:
        return Miss("its statistics are not f32")
    if any(v.uses for v in node.results[1:]):
        return Miss("its further results are used")
    groups, epsilon = given(node, "groups" if kind == _GROUP else "num_groups", None), given(node, "epsilon", 1e-5)
    is_last = kind == _GROUP and bool(given(node, "channels_last", 1))
    if is_last:
        x = e.transpose(x, perm=(0, rank - 1, *range(1, rank - 1)))
    x = x.widened()
    factors = [v.cast(x.dtype) for v in (scale, bias)]
    if groups is None:
        out = _affine(normalized(e, x, range(2, rank), epsilon), factors)
    else:
        grouped: tuple[Dim, ...] = (x.shape[0], groups, floordiv(product(x.shape[1:]), groups))
        out = normalized(e, x.reshape(grouped), (2,), epsilon)
        is_by_group = kind != _GROUP and e.graph.opset < _CHANNEL_OPSET
        out = _affine(out, factors).reshape(x.shape) if is_by_group else _affine(out.reshape(x.shape), factors)
    if kind == _GROUP and given(node, "activation", 0):
        out = out * e.sigmoid(out)
    out = out.cast(dtype)
    return e.transpose(out, perm=(0, *range(2, rank), 1)) if is_last else out


def _affine(x: Term, factors: Sequence[Term]) -> Term:
    """The value times a scale plus a bias along the axis 1."""
    scale, bias = (_by_channel(v, x.rank) for v in factors)
    return x * scale + bias


def _by_channel(x: Term, rank: int) -> Term:
    return x.reshape((x.shape[0], *[1] * (rank - 2)))


@decomposes("BatchNormalization")
def decompose_batch_norm(e: Sketch, node: Node, x: Term, *factors: Term) -> Lowered:
    """A BatchNormalization of inference becomes a product and a sum with numbers of each channel."""
    if given(node, "training_mode", 0) or any(v.uses for v in node.results[1:]):
        return Miss("it trains")
    if given(node, "spatial", 1) != 1 or x.rank < 2:
        return Miss("it is not by channel")
    wide = x.widened()
    scale, bias, mean, variance = (_by_channel(v.cast(wide.dtype), x.rank) for v in factors)
    factor = scale / e.sqrt(variance + given(node, "epsilon", 1e-5))
    offset = bias - mean * factor
    return (wide * factor + offset).cast(node.results[0].type.dtype)


#: ONNX's definition of MeanVarianceNormalization adds it to the deviation.
_MVN_EPSILON = 1e-9


@decomposes("LpNormalization", "MeanVarianceNormalization", roots=(LP_NORM, OPAQUE))
def decompose_axes_norm(e: Sketch, node: Node, x: Term) -> Lowered:
    """A mean-variance normalization, or a division by an Lp norm, becomes its means, or its norm, and a quotient."""
    wide = x.widened()
    if node.op is LP_NORM:
        a = node.attributes_as(LpNormAttributes)
        return lp_norm(e, wide, a.axis, a.p).cast(x.dtype)
    axes = sorted({int(axis) % x.rank for axis in given(node, "axes", (0, 2, 3))})
    rest, _ = centred(e, wide, axes)
    return (rest / (deviation(e, rest, axes, 0.0) + _MVN_EPSILON)).cast(x.dtype)
