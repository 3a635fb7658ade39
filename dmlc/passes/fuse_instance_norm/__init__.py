"""``fuse-instance-norm``: normalizations with a scale and a bias for each channel become one node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from dmlc.ir import Array, Graph, Node, Operation, TensorType, Value, product
from dmlc.ir.dtype import f16, f32, i64
from dmlc.ops.binary import ADD, DIV, MUL, SUB
from dmlc.ops.constant import constant_of
from dmlc.ops.move import RESHAPE, TRANSPOSE, TransposeAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of, is_opaque
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.fold_constants.layouts import transpose_chain
from dmlc.passes.fuse_instance_norm.deviations import root_of_statistic, scaled_statistic
from dmlc.passes.fuse_layer_norm import MeanVarianceNorm
from dmlc.passes.fuse_layer_norm.written import NormMatch, NormRule, WrittenLayerNorm, followed
from dmlc.passes.lowering import KEEP, Lowered, simplifies, taken_elsewhere
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
            # ONNX Runtime's CPU kernel ends the process where a node made the value; that of f16 always does so
            return Miss("an axis of {0} may be empty", (match.x.type,), match.x)
        if match.root.result.shape != match.x.shape:
            return Miss("the product has another shape than the normalized value", (), match.x)
        return used_outside(match.consumed, match.root)

    def build(self, match: NormMatch, rewriter: Rewriter) -> Sequence[Value]:
        axis, rank = _channel_axis(match), match.x.type.rank
        assert axis is not None
        perm = (0, axis, *[a for a in range(1, rank) if a != axis])
        x = rewriter.of(match.x).transposed(perm).cast(match.dtype)
        scale, bias = (rewriter.number(np.full(x.shape[1], n), match.dtype) for n in (1, 0))
        out = rewriter.onnx(INSTANCE, x.type, x, scale, bias, epsilon=match.epsilon)
        out = out.cast(match.root.result.type.dtype).transposed([perm.index(a) for a in range(rank)])
        return [followed(match, out.value, rewriter)]


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


@simplifies(MUL, DIV, fed_by=(OPAQUE, TRANSPOSE), gives=REASSOCIATES)
def absorb_channel_scale(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """InstanceNormalization(x) * c, or over c, with one c for each channel, becomes its scale. ``reassociates``."""
    return _absorbed(e, node)


@simplifies(ADD, SUB, fed_by=(OPAQUE, TRANSPOSE), gives=REASSOCIATES)
def absorb_channel_bias(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """InstanceNormalization(x) + c, or less c, with one c for each channel, becomes its bias. ``reassociates``.

    A kernel may round c against the mean times the scale, 1e-5 against 949 too: it rounds the deviations in the same
    way without c. Not where a plane may be a single element: there the deviation is exactly 0, and the result is c.
    """
    return _absorbed(e, node)


def _absorbed(e: Sketch, node: Node) -> Lowered:
    """The normalization, perhaps transposed, with the node's constant in its scale and bias."""
    for value, other in both_ways(node) if node.op in (MUL, ADD) else ((node.operand("a"), node.operand("b")),):
        moved = made_by(value, TRANSPOSE)
        norm = norm_of(value if moved is None else moved.operand("x"))
        if norm is None or constant_of(other) is None:
            continue
        e.taken += [norm] if moved is None else [moved, norm]
        x, op, a = norm.operand(0), node.op, norm.attributes_as(OpaqueAttributes)
        axis = 1 if moved is None else moved.attributes_as(TransposeAttributes).perm.index(1)
        # without a scale for each group
        numbers = along(value, axis, other) if norm.operand(1).shape == (channels(x),) else None
        if numbers is None:
            return Miss("{0} is not one number for each channel of {1}", (other.type, x.type))
        if op is DIV and not np.all(numbers):
            return Miss("it divides by zero")
        if op in (ADD, SUB) and is_opaque(norm, INSTANCE) and not averages_several(e.graph, x):
            return Miss("a plane of {0} may be one element, whose bias a kernel may round away", (x.type,))
        if reason := taken_elsewhere(e):
            return reason
        scale, bias = affine_of(norm)
        with np.errstate(all="ignore"):
            if op in (MUL, DIV):
                scale, bias = (scale * numbers, bias * numbers) if op is MUL else (scale / numbers, bias / numbers)
            else:
                bias = bias + numbers if op is ADD else bias - numbers
        constants = (e.number(scale, x.type.dtype), e.number(bias, x.type.dtype))
        out = e.onnx(a.op_type, x.type, x, *constants, **dict(a.attributes))
        return out if moved is None else e(TRANSPOSE, out, attributes=moved.attributes)
    return KEEP


# --- Group normalizations: fused where the target has the operator, decomposed elsewhere


def _grouped(node: Node) -> tuple[Node, Node] | None:
    """The instance normalization, and the reshape before it, of what is reshaped back."""
    inner = node.operand(0).producer if is_reshape(node) else None
    if inner is None or not is_opaque(inner, INSTANCE):
        return None
    before = inner.operand(0).producer
    return (inner, before) if before is not None and is_reshape(before) else None


def _why_no_groups(root: Node, found: tuple[Node, Node]) -> Miss | None:
    """Return the reason why the reshape does not make groups of neighbouring channels, per element of the batch."""
    before = found[1]
    x, grouped = before.operand(0), before.result
    if root.result.shape != x.shape:
        return Miss("the second reshape does not undo the first")
    count, groups = channels(x), channels(grouped)
    if not count or not groups or count % groups:
        return Miss("{0} are not groups of the channels of {1}", (grouped.type, x.type))
    if grouped.shape[0] != x.shape[0]:
        return Miss("the groups of {0} mix the batch of {1}", (grouped.type, x.type))
    return used_outside(found, root)


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
        return _why_no_groups(match.root, (match.consumed[0], match.consumed[1]))

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        norm, before = match.consumed
        x = before.operand(0)
        count, groups = channels(x), channels(before.result)
        assert count is not None and groups is not None
        if _CANCELS not in rewriter.graph.notes:
            rewriter.graph.notes.append(_CANCELS)
        scale, bias = (rewriter.number(np.full(count, n), x.type.dtype) for n in (1, 0))
        epsilon = attribute_of(norm, "epsilon", 1e-5)
        return [rewriter.onnx(GROUP, x.type, x, scale, bias, epsilon=epsilon, num_groups=groups).value]


@simplifies(RESHAPE, onnx=("Reshape",), gives=REASSOCIATES)
def fuse_groups_of_one(e: Sketch, node: Node, *operands: Term | None) -> Lowered:
    """reshape(InstanceNormalization(reshape(x))) with a group for each channel becomes InstanceNormalization(x).

    ``reassociates``: the same numbers are averaged, in another shape.
    """
    found = _grouped(node)
    if found is None:
        return KEEP
    norm, x, groups = found[0], found[1].operand(0), channels(found[1].result)
    if groups is None or x.type.rank <= 2 or groups != channels(x):
        return KEEP
    e.taken += found
    attributes = dict(norm.attributes_as(OpaqueAttributes).attributes)
    return _why_no_groups(node, found) or e.onnx(INSTANCE, x.type, x, *norm.operands[1:], **attributes)


@simplifies(ADD, fed_by=(MUL,), gives=REASSOCIATES)
def fuse_group_affine(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """A group normalization's scale and bias for each channel, a Mul and an Add, become one BatchNormalization.

    Its mean is 0, its variance 1 and its epsilon 0, so that only scale and bias are left of it. ``reassociates``: a
    kernel may round product and sum once. For where GroupNorm does not fire; f32 only, for f16 has no kernel.
    """
    for multiplied, bias in both_ways(node):
        scaled = made_by(multiplied, MUL)
        for x, scale in both_ways(scaled) if scaled is not None else ():
            if scaled is None or x.producer is None or _grouped(x.producer) is None:
                continue
            factors, terms = along(x, 1, scale), along(x, 1, bias)
            if not 3 <= x.type.rank <= 5 or x.type.dtype is not f32 or factors is None or terms is None:
                return KEEP
            e.taken.append(scaled)
            if not (np.isfinite(factors).all() and np.isfinite(terms).all()):
                return Miss("its scale or bias is not finite", (), x)
            numbers = (factors, terms, np.zeros(factors.shape), np.ones(factors.shape))
            reason = used_elsewhere(scaled.result)
            return reason or e.onnx(BATCH, x.type, x, *[e.number(n, f32) for n in numbers], epsilon=0.0)
    return KEEP


@simplifies(onnx=(GROUP,), gives=REASSOCIATES)
def lower_group_norm(e: Sketch, node: Node, x: Term, scale: Term, bias: Term) -> Lowered:
    """GroupNormalization becomes an InstanceNormalization of groups between two reshapes, with Mul and Add.

    ``reassociates``. Neither DirectML nor ONNX Runtime's CPU provider has a kernel for it. ONNX Runtime uses the
    operator's function instead, 29 nodes for 5 (counted with 1.31, which took twice as long).
    """
    count, groups = channels(x.value), attribute_of(node, "num_groups")
    if not count or not isinstance(groups, int) or groups < 1 or count % groups:
        return Miss("the channels of {0} are not known to be {1} groups", (x.type, groups))
    if x.dtype not in (f16, f32):
        return Miss("{0} has no kernel that is better", (x.dtype,), x.value)
    if {scale.dtype, bias.dtype} != {x.dtype}:
        return Miss("scale and bias are {0} and {1} beside {2}", (scale.type, bias.type, x.type), scale.value)
    if scale.shape != bias.shape or scale.shape not in ((count,), (groups,)):
        return Miss("scale and bias are {0} and {1} for {2} channels", (scale.type, bias.type, count), scale.value)
    each, per_group = count // groups, scale.shape == (groups,)
    has_bias = per_group and averages_several(e.graph, x.value, each)
    ones, zeros = (e.number(np.full(groups, n), x.dtype) for n in (1, 0))
    is_plain = groups == count and x.rank > 2
    inner = x if is_plain else _split_in_groups(e, x, groups, each)
    constants = (scale if per_group else ones, bias if has_bias else zeros)
    out = e.onnx(INSTANCE, inner.type, inner, *constants, epsilon=attribute_of(node, "epsilon", 1e-5))
    out = out if is_plain else _back(e, out, x)
    out = out if per_group else out * _standing(e, scale, x)
    return out if has_bias else out + _standing(e, bias, x)


def _split_in_groups(e: Sketch, x: Term, groups: int, each: int) -> Term:
    """The channels of each group in one row."""
    shape = (x.shape[0], groups, each * product(x.shape[2:]))
    if x.type.is_static:
        return x.reshape(shape)
    return e.onnx("Reshape", x.type.with_shape(shape), x, e.number([0, groups, -1], i64))


def _back(e: Sketch, value: Term, x: Term) -> Term:
    """The value in the shape of x.

    One open size beside that of the first axis is what is left: ``_grouped`` failed if the first is 0, as ONNX
    Runtime's function does. Below opset 14 no reshape takes more open sizes that may be 0, and a carried one does as
    exporters do.
    """
    if not x.type.is_static and sum(not isinstance(size, int) for size in x.shape[1:]) <= 1:
        left = [size if isinstance(size, int) else -1 for size in x.shape[1:]]
        if 0 not in left:
            return e.onnx("Reshape", x.type, value, e.number([0, *left], i64))
    if x.type.is_static or e.graph.opset >= 14:
        return value.reshape(x.shape)
    return e.onnx("Reshape", x.type, value, e.onnx("Shape", TensorType(i64, (x.rank,)), x))


def _standing(e: Sketch, value: Term, x: Term) -> Term:
    """One number for each channel, along axis 1 of x."""
    axes = tuple(range(1, x.rank - 1))
    if value.data is not None:
        return e.number(value.data.array.reshape(-1, *[1] * len(axes)), value.dtype)
    return e.unsqueeze(value, axes=axes) if axes else value


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
        statistics = (scaled_statistic, root_of_statistic)
        if not context.capabilities.emits_nodes:
            return statistics
        rules: list[type[Rule[Any]]] = [WrittenInstanceNorm, MeanVarianceInstanceNorm]
        rules += [absorb_channel_scale, absorb_channel_bias, fuse_groups_of_one]
        if not context.target.portable:
            rules.append(lower_group_norm)
        if context.target.portable and context.opset >= _GROUP_NORM_OPSET:
            rules.append(GroupNorm)
        if context.opset >= _BATCH_NORM_OPSET:  # a GroupNorm that is allowed leaves nothing for it
            rules.append(fuse_group_affine)
        return [*rules, transpose_chain, *statistics]
