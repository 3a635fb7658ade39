"""Group normalizations: fused where the target has the operator, decomposed elsewhere."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import ClassVar

import numpy as np

from dmlc.ir import Array, Graph, Node, Operation, TensorType, Value, product
from dmlc.ir.dtype import f16, f32, i64
from dmlc.ops.binary import ADD, MUL
from dmlc.ops.constant import constant_of
from dmlc.ops.move import RESHAPE, UNSQUEEZE, NewAxesAttributes, ReshapeAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of, is_opaque
from dmlc.passes.fuse_instance_norm.channels import (
    BATCH,
    GROUP,
    INSTANCE,
    affine_of,
    along,
    averages_several,
    carry,
    channels,
    is_reshape,
    make_norm,
    norm_of,
    number,
)
from dmlc.passes.manager import RANGE, REASSOCIATES
from dmlc.passes.patterns import both_ways, made_by, used_outside
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule, used_elsewhere


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
