"""Decomposed instance normalizations, and the scale and bias of each channel that join them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

import numpy as np

from dmlc.ir import Array, DType, Graph, Node, Operation, TensorType, Value
from dmlc.ir.dtype import f16, f32
from dmlc.ops.binary import ADD, DIV, MUL, SUB
from dmlc.ops.choose import CAST, CastAttributes
from dmlc.ops.constant import constant_of
from dmlc.ops.move import RESHAPE, TRANSPOSE, TransposeAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, Plain, is_opaque
from dmlc.passes.fuse_layer_norm.core import NormMatch, NormRule, followed
from dmlc.passes.fuse_layer_norm.operations import MeanVarianceNorm
from dmlc.passes.fuse_layer_norm.written import WrittenLayerNorm
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.patterns import both_ways, made_by, used_outside
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere

INSTANCE, GROUP, BATCH = "InstanceNormalization", "GroupNormalization", "BatchNormalization"


def norm_of(value: Value) -> Node | None:
    """The instance or group normalization that the value is, where scale and bias are constants."""
    node = value.producer
    if not (is_opaque(node, INSTANCE) or is_opaque(node, GROUP)) or node is None:
        return None
    return node if all(constant_of(v) is not None for v in node.operands[1:]) else None


def affine_of(node: Node) -> tuple[Array, Array]:
    """Scale and bias in f64, so that what is combined rounds once."""
    scale, bias = (constant_of(v) for v in node.operands[1:])
    assert scale is not None and bias is not None
    return scale.array.astype(np.float64), bias.array.astype(np.float64)


_MOST_CHANNELS = 1 << 20


def channels(x: Value, axis: int = 1) -> int | None:
    """The size of the channels' axis, where it is known and not so large that a constant for them is out of place."""
    size = x.shape[axis] if x.type.rank > axis else None
    return size if isinstance(size, int) and size <= _MOST_CHANNELS else None


def along(x: Value, axis: int, other: Value) -> Array | None:
    """The numbers of a constant that goes along one axis of x only, one for each place there, in f64; else None."""
    count, rank, tensor = channels(x, axis), x.type.rank, constant_of(other)
    if count is None or tensor is None or tensor.type.rank > rank:
        return None
    shape = (*[1] * (rank - tensor.type.rank), *tensor.array.shape)
    if any(size != 1 for i, size in enumerate(shape) if i != axis) or shape[axis] not in (1, count):
        return None
    return np.broadcast_to(tensor.array.astype(np.float64).reshape(-1), (count,))


def averages_several(graph: Graph, x: Value, channels_each: int = 1) -> bool:
    """True if each mean of a normalization of ``x`` is proved to be one of two or more elements, or of none.

    Of a single element the deviation is 0 and the result is the bias, whatever the element is. A kernel that computes
    ``x * a + (bias - mean * a)``, as ONNX Runtime's CPU provider does (core/providers/cpu/nn/instance_norm.cc), loses
    digits of the bias there: ``a`` is 1 / sqrt(epsilon). Of several elements, rounding the elements themselves moves
    the result as far.
    """
    return any(graph.dims.at_most(2, size) for size in (channels_each, *x.shape[2:]))


def is_reshape(node: Node | None) -> bool:
    """Return whether the node is a reshape. A reshape to another value's computed shape is opaque; its type has the
    shape."""
    return node is not None and (node.op is RESHAPE or is_opaque(node, "Reshape"))


def number(rewriter: Rewriter, array: Array, dtype: DType) -> Value:
    return rewriter.constant(np.asarray(array).astype(dtype.numpy))


def make_norm(
    rewriter: Rewriter, op_type: str, x: Value, scale: Array, bias: Array, attributes: dict[str, Plain]
) -> Value:
    """The normalization of ``x`` with new constants."""
    dtype: DType = x.type.dtype
    return carry(
        rewriter, op_type, [x, number(rewriter, scale, dtype), number(rewriter, bias, dtype)], x.type, attributes
    )


def carry(
    rewriter: Rewriter, op_type: str, operands: list[Value | None], type: TensorType, attributes: dict[str, Plain]
) -> Value:
    """An ONNX node of one result."""
    record = OpaqueAttributes(op_type=op_type, types=(type,), attributes=tuple(sorted(attributes.items())))
    return rewriter.add(OPAQUE, operands, record)


class _InstanceNorm(NormRule):
    """Rule with the matches of ``fuse-layer-norm``, which builds an InstanceNormalization instead."""

    def check(self, match: NormMatch, graph: Graph) -> Miss | None:
        axis = _channel_axis(match)
        if axis is None:
            text = "it is over axes {0} of {1}, not over all but the first one and the channels"
            return Miss(text, (list(match.axes), match.x.type))
        if channels(match.x, axis) is None:
            return Miss("the number of channels of {0} is not known", (match.x.type,), match.x)
        if match.dtype not in (f16, f32):
            return Miss("InstanceNormalization of {0} has no kernel", (match.dtype,))
        if any(match.x.shape[a] == 0 or graph.dims.promises_empty(match.x.shape[a]) for a in match.axes):
            # ONNX Runtime's CPU kernel of f16 ends the process (core/providers/cpu/nn/instance_norm.cc)
            return Miss("an axis of {0} may be empty", (match.x.type,), match.x)
        if match.root.result.shape != match.x.shape:
            return Miss("the product has another shape than the normalized value", (), match.x)
        return used_outside(match.consumed, match.root)

    def build(self, match: NormMatch, rewriter: Rewriter) -> Sequence[Value]:
        x, dtype, axis = match.x, match.dtype, _channel_axis(match)
        assert axis is not None
        rank = x.type.rank
        count = channels(x, axis)
        assert count is not None
        if axis != 1:
            x = rewriter.add(TRANSPOSE, [x], TransposeAttributes(perm=(0, axis, *range(1, axis))))
        if x.type.dtype is not dtype:
            x = rewriter.add(CAST, [x], CastAttributes(to=dtype))
        out = make_norm(rewriter, INSTANCE, x, np.ones(count), np.zeros(count), {"epsilon": match.epsilon})
        if out.type.dtype is not match.root.result.type.dtype:
            out = rewriter.add(CAST, [out], CastAttributes(to=match.root.result.type.dtype))
        if axis != 1:
            out = rewriter.add(TRANSPOSE, [out], TransposeAttributes(perm=(0, *range(2, rank), 1)))
        return [followed(match, out, rewriter)]


class WrittenInstanceNorm(_InstanceNorm, WrittenLayerNorm):
    """(x - mean) / sqrt(variance + epsilon) over the spatial axes becomes an InstanceNormalization.

    Patterns and classes are as in ``fuse-layer-norm``. Scale and bias join the node later. Where the channels are
    the last axis, it stands between two transposes.
    """

    name = "fuse-instance-norm"


class MeanVarianceInstanceNorm(_InstanceNorm, MeanVarianceNorm):
    """``mean_variance_norm`` over the spatial axes becomes an InstanceNormalization, as its written form does."""

    name = "instance-norm-of-operation"


def _channel_axis(match: NormMatch) -> int | None:
    """The axis that is neither the first nor normalized: the second, or the last."""
    rank = match.x.type.rank
    if match.axes == tuple(range(2, rank)):
        return 1
    return rank - 1 if match.axes == tuple(range(1, rank - 1)) else None


class _ChannelAffineMatch(Match, eq=False, kw_only=True):
    """``norm`` is what is scaled, perhaps transposed by ``moved``; ``other`` is the root's other operand."""

    norm: Node
    moved: Node | None
    other: Value

    @property
    def axis(self) -> int:
        """Return the channel axis of the root's result."""
        return 1 if self.moved is None else self.moved.attributes_as(TransposeAttributes).perm.index(1)


class _AbsorbChannelAffine(Rule[_ChannelAffineMatch]):
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _ChannelAffineMatch | None:
        pairs = both_ways(node) if node.op in (MUL, ADD) else ((node.operand("a"), node.operand("b")),)
        for value, other in pairs:
            moved = made_by(value, TRANSPOSE)
            norm = norm_of(value if moved is None else moved.operand("x"))
            if norm is not None and constant_of(other) is not None:
                return _ChannelAffineMatch(
                    node, (norm,) if moved is None else (moved, norm), norm=norm, moved=moved, other=other
                )
        return None

    def check(self, match: _ChannelAffineMatch, graph: Graph) -> Miss | None:
        norm, other = match.norm, match.other
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
        norm, numbers = match.norm, _numbers(match)
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
    roots: ClassVar[tuple[Operation, ...]] = (MUL, DIV)
    fed_by: ClassVar[Collection[Operation]] = (OPAQUE, TRANSPOSE)


class AbsorbChannelBias(_AbsorbChannelAffine):
    """InstanceNormalization(x) + c, or less c, with one c for each channel, becomes its bias. ``reassociates``.

    A kernel may round c against the mean times the scale, 1e-5 against 949 too: it rounds the deviations in the same
    way without c. Not where a plane may be a single element: there the deviation is exactly 0, and the result is c.
    """

    name = "absorb-channel-bias"
    roots: ClassVar[tuple[Operation, ...]] = (ADD, SUB)
    fed_by: ClassVar[Collection[Operation]] = (OPAQUE, TRANSPOSE)


def _numbers(match: _ChannelAffineMatch) -> Array | None:
    """The numbers by channel; None where they vary along another axis."""
    norm, other = match.norm, match.other
    if norm.operand(1).shape != (channels(norm.operand(0)),):
        return None  # a scale for each group
    return along(match.consumed[0].result, match.axis, other)
