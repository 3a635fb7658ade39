"""``fuse-instance-norm``: normalizations with a scale and a bias for each channel become one node."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, ClassVar

import numpy as np

from dmlc.ir import Array, DType, Graph, Node, Operation, TensorType, Value, product
from dmlc.ir.dtype import f16, f32, i64
from dmlc.ops.binary import ADD, DIV, MUL, SUB
from dmlc.ops.choose import CAST, CastAttributes
from dmlc.ops.constant import constant_of
from dmlc.ops.move import RESHAPE, TRANSPOSE, UNSQUEEZE, NewAxesAttributes, ReshapeAttributes, TransposeAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, Plain, attribute_of, is_opaque
from dmlc.passes.fold_constants.layouts import transpose_chain
from dmlc.passes.fuse_instance_norm.deviations import RootOfStatistic, ScaledStatistic
from dmlc.passes.fuse_layer_norm import MeanVarianceNorm
from dmlc.passes.fuse_layer_norm.written import NormMatch, NormRule, WrittenLayerNorm, followed
from dmlc.passes.manager import RANGE, REASSOCIATES, PassContext
from dmlc.passes.patterns import both_ways, made_by, used_outside
from dmlc.passes.rewrite import Match, Miss, RewritePass, Rewriter, Rule, used_elsewhere

# --- Decomposed instance normalizations, and the scale and bias of each channel that join them

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


# --- Group normalizations: fused where the target has the operator, decomposed elsewhere


def _grouped(node: Node) -> tuple[Node, Node] | None:
    """The instance normalization, and the reshape before it, of what is reshaped back."""
    inner = node.operand(0).producer if is_reshape(node) else None
    if inner is None or not is_opaque(inner, INSTANCE):
        return None
    before = inner.operand(0).producer
    return (inner, before) if before is not None and is_reshape(before) else None


def _why_no_groups(match: Match) -> Miss | None:
    """Return the reason why the reshape does not make groups of neighbouring channels, per element of the batch."""
    before = match.consumed[1]
    x, grouped = before.operand(0), before.result
    if match.root.result.shape != x.shape:
        return Miss("the second reshape does not undo the first")
    count, groups = channels(x), channels(grouped)
    if not count or not groups or count % groups:
        return Miss("{0} are not groups of the channels of {1}", (grouped.type, x.type))
    if grouped.shape[0] != x.shape[0]:
        return Miss("the groups of {0} mix the batch of {1}", (grouped.type, x.type))
    return used_outside(match.consumed, match.root)


_CANCELS = (
    "a group normalization is a GroupNormalization now: ONNX's definition of it, by which ONNX Runtime computes it, "
    "takes its variance as E[x^2] - E[x]^2, which loses digits where a mean is far larger than the deviation"
)


class GroupNorm(Rule[Match]):
    """reshape(InstanceNormalization(reshape(x))) over groups of channels becomes a GroupNormalization.

    ``range``: ONNX's definition takes its variance as ``E[x^2] - E[x]^2``, which cancels where a mean is large, and an
    instance normalization does not. Only for plain ONNX from opset 21 on: neither DirectML nor ONNX Runtime's CPU
    provider has a kernel for it.
    """

    name = "fuse-group-norm"
    roots: ClassVar[tuple[Operation, ...]] = (RESHAPE, OPAQUE)
    rewrite_class = RANGE

    def match(self, node: Node, graph: Graph) -> Match | None:
        found = _grouped(node)
        return None if found is None or norm_of(found[0].result) is None else Match(node, found)

    def check(self, match: Match, graph: Graph) -> Miss | None:
        scale, bias = affine_of(match.consumed[0])
        if (scale != 1).any() or bias.any():
            return Miss("its inner scale and bias are for each group, not 1 and 0")
        return _why_no_groups(match)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        norm, before = match.consumed
        x = before.operand(0)
        count, groups = channels(x), channels(before.result)
        assert count is not None and groups is not None
        if _CANCELS not in rewriter.graph.notes:
            rewriter.graph.notes.append(_CANCELS)
        attributes = {"epsilon": attribute_of(norm, "epsilon", 1e-5), "num_groups": groups}
        return [make_norm(rewriter, GROUP, x, np.ones(count), np.zeros(count), attributes)]


class GroupsOfOne(Rule[Match]):
    """reshape(InstanceNormalization(reshape(x))) with a group for each channel becomes InstanceNormalization(x).

    ``reassociates``: the same numbers are averaged, in another shape.
    """

    name = "fuse-groups-of-one"
    roots: ClassVar[tuple[Operation, ...]] = (RESHAPE, OPAQUE)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> Match | None:
        found = _grouped(node)
        if found is None:
            return None
        x, groups = found[1].operand(0), channels(found[1].result)
        return Match(node, found) if groups is not None and x.type.rank > 2 and groups == channels(x) else None

    def check(self, match: Match, graph: Graph) -> Miss | None:
        return _why_no_groups(match)

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        norm, before = match.consumed
        x = before.operand(0)
        attributes = dict(norm.attributes_as(OpaqueAttributes).attributes)
        return [carry(rewriter, INSTANCE, [x, *norm.operands[1:]], x.type, attributes)]


class _GroupAffineMatch(Match, eq=False, kw_only=True):
    """``x`` times ``scale`` plus ``bias``, one number for each channel."""

    x: Value
    scale: Array
    bias: Array


class GroupAffine(Rule[_GroupAffineMatch]):
    """A group normalization's scale and bias for each channel, a Mul and an Add, become one BatchNormalization.

    Its mean is 0, its variance 1 and its epsilon 0, so that only scale and bias are left of it. ``reassociates``: a
    kernel may round product and sum once. For where GroupNorm does not fire; f32 only, for f16 has no kernel.
    """

    name = "fuse-group-affine"
    roots: ClassVar[tuple[Operation, ...]] = (ADD,)
    fed_by: ClassVar[Collection[Operation]] = (MUL,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> _GroupAffineMatch | None:
        for multiplied, bias in both_ways(node):
            scaled = made_by(multiplied, MUL)
            for x, scale in both_ways(scaled) if scaled is not None else ():
                if scaled is None or x.producer is None or _grouped(x.producer) is None:
                    continue
                if not 3 <= x.type.rank <= 5 or x.type.dtype is not f32:
                    return None
                factors, terms = along(x, 1, scale), along(x, 1, bias)
                return (
                    None
                    if factors is None or terms is None
                    else _GroupAffineMatch(node, (scaled,), x=x, scale=factors, bias=terms)
                )
        return None

    def check(self, match: _GroupAffineMatch, graph: Graph) -> Miss | None:
        if not (np.isfinite(match.scale).all() and np.isfinite(match.bias).all()):
            return Miss("its scale or bias is not finite", (), match.x)
        return used_elsewhere(match.consumed[0].result)

    def build(self, match: _GroupAffineMatch, rewriter: Rewriter) -> Sequence[Value]:
        x, scale, bias = match.x, match.scale, match.bias
        numbers = [number(rewriter, a, f32) for a in (scale, bias, np.zeros(scale.shape), np.ones(scale.shape))]
        return [carry(rewriter, BATCH, [x, *numbers], x.type, {"epsilon": 0.0})]


class LowerGroupNorm(Rule[Match]):
    """GroupNormalization becomes an InstanceNormalization of groups between two reshapes, with Mul and Add.

    ``reassociates``. Neither DirectML nor ONNX Runtime's CPU provider has a kernel for it. ONNX Runtime uses the
    operator's function instead, 29 nodes for 5 (counted with 1.31, which took twice as long).
    """

    name = "lower-group-norm"
    roots: ClassVar[tuple[Operation, ...]] = (OPAQUE,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> Match | None:
        return Match(node) if is_opaque(node, GROUP) else None

    def check(self, match: Match, graph: Graph) -> Miss | None:
        x, scale, bias = match.root.operand(0), match.root.operand(1), match.root.operand(2)
        count, groups = channels(x), attribute_of(match.root, "num_groups")
        if not count or not isinstance(groups, int) or groups < 1 or count % groups:
            return Miss("the channels of {0} are not known to be {1} groups", (x.type, groups))
        if x.type.dtype not in (f16, f32):
            return Miss("{0} has no kernel that is better", (x.type.dtype,), x)
        if {scale.type.dtype, bias.type.dtype} != {x.type.dtype}:
            return Miss("scale and bias are {0} and {1} beside {2}", (scale.type, bias.type, x.type), scale)
        if scale.shape != bias.shape or scale.shape not in ((count,), (groups,)):
            return Miss("scale and bias are {0} and {1} for {2} channels", (scale.type, bias.type, count), scale)
        return None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        x, scale, bias = match.root.operand(0), match.root.operand(1), match.root.operand(2)
        count, groups = channels(x), attribute_of(match.root, "num_groups")
        assert count is not None
        attributes = {"epsilon": attribute_of(match.root, "epsilon", 1e-5)}
        each = count // groups
        per_group = scale.shape == (groups,)
        ones, zeros = (number(rewriter, np.full(groups, n), x.type.dtype) for n in (1, 0))
        has_bias = per_group and averages_several(rewriter.graph, x, each)
        operands = [scale if per_group else ones, bias if has_bias else zeros]
        if groups == count and x.type.rank > 2:
            out = carry(rewriter, INSTANCE, [x, *operands], x.type, attributes)
        else:
            inner = _split_in_groups(rewriter, x, groups, each)
            out = _back(rewriter, carry(rewriter, INSTANCE, [inner, *operands], inner.type, attributes), x)
        if not per_group:
            out = rewriter.add(MUL, [out, _standing(rewriter, scale, x)])
        return [out if has_bias else rewriter.add(ADD, [out, _standing(rewriter, bias, x)])]


def _split_in_groups(rewriter: Rewriter, x: Value, groups: int, each: int) -> Value:
    """The channels of each group in one row."""
    shape = (x.shape[0], groups, each * product(x.shape[2:]))
    if x.type.is_static:
        return rewriter.add(RESHAPE, [x], ReshapeAttributes(shape=shape))
    sizes = number(rewriter, np.array([0, groups, -1]), i64)
    return carry(rewriter, "Reshape", [x, sizes], x.type.with_shape(shape), {})


def _back(rewriter: Rewriter, value: Value, x: Value) -> Value:
    """The value in the shape of x.

    One open size beside that of the first axis is what is left: ``_grouped`` failed if the first is 0, as ONNX
    Runtime's function does. Below opset 14 no reshape takes more open sizes that may be 0, and a carried one does as
    exporters do.
    """
    if not x.type.is_static and sum(not isinstance(size, int) for size in x.shape[1:]) <= 1:
        left = [size if isinstance(size, int) else -1 for size in x.shape[1:]]
        if 0 not in left:
            return carry(rewriter, "Reshape", [value, number(rewriter, np.array([0, *left]), i64)], x.type, {})
    if x.type.is_static or rewriter.graph.opset >= 14:
        return rewriter.add(RESHAPE, [value], ReshapeAttributes(shape=x.shape))
    sizes = OpaqueAttributes(op_type="Shape", types=(TensorType(i64, (x.type.rank,)),))
    return carry(rewriter, "Reshape", [value, rewriter.add(OPAQUE, [x], sizes)], x.type, {})


def _standing(rewriter: Rewriter, value: Value, x: Value) -> Value:
    """One number for each channel, along axis 1 of x."""
    axes = tuple(range(1, x.type.rank - 1))
    known = constant_of(value)
    if known is not None:
        return number(rewriter, known.array.reshape(-1, *[1] * len(axes)), value.type.dtype)
    return rewriter.add(UNSQUEEZE, [value], NewAxesAttributes(axes=axes)) if axes else value


#: GroupNormalization has a scale for each channel from here on.
_GROUP_NORM_OPSET = 21
#: BatchNormalization takes any rank, and has no other results, from here on.
_BATCH_NORM_OPSET = 9


class FuseInstanceNorm(RewritePass, frozen=True):
    """NumPy code cannot say these operators, so it keeps them written out.

    A variance that stays written out, since it is divided by one less or epsilon is added to its root, is tidied.
    """

    name: ClassVar[str] = "fuse-instance-norm"
    summary: ClassVar[str] = "Fuse instance and group normalizations that are written out."
    rewrite_class: ClassVar[str] = RANGE

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        statistics: list[type[Rule[Any]]] = [ScaledStatistic, RootOfStatistic]
        if not context.capabilities.emits_nodes:
            return statistics
        absorb: list[type[Rule[Any]]] = [AbsorbChannelScale, AbsorbChannelBias]
        rules: list[type[Rule[Any]]] = [WrittenInstanceNorm, MeanVarianceInstanceNorm]
        rules += [*absorb, GroupsOfOne]
        if not context.target.portable:
            rules.append(LowerGroupNorm)
        if context.target.portable and context.opset >= _GROUP_NORM_OPSET:
            rules.append(GroupNorm)
        if context.opset >= _BATCH_NORM_OPSET:  # a GroupNorm that is allowed leaves nothing for it
            rules.append(GroupAffine)
        return [*rules, transpose_chain, *statistics]
