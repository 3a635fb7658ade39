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
from dmlc.passes.expressions import Formulas, Sketch, Term
from dmlc.passes.fold_constants.layouts import transpose_chain
from dmlc.passes.fuse_layer_norm.written import (
    NormMatch,
    NormRule,
    WrittenLayerNorm,
    WrittenRmsNorm,
    build_norm,
    why_no_norm,
)
from dmlc.passes.lowering import KEEP, Lowered, simplifies, taken_elsewhere
from dmlc.passes.manager import RANGE, REASSOCIATES, PassContext
from dmlc.passes.patterns import both_ways, used_outside
from dmlc.passes.rewrite import Miss, RewritePass, Rewriter, Rule

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
        x = _centred(rewriter, rewriter.of(match.x).widened(), match.axes)
        match.x, match.dtype = x.value, x.dtype
        return [rewriter.cast(build_norm(match, rewriter), own)]


@simplifies(LAYER_NORM, gives=REASSOCIATES)
def layer_norm_by_rms(e: Sketch, node: Node, x: Term, scale: Term, bias: Term | None = None) -> Lowered:
    """``layer_norm``, where the target lacks it at the opset, becomes ``rms_norm`` of the value less its mean.

    f16 is computed in f32, as the kernels of ``layer_norm`` do it: a mean rounded to f16 may be wrong by more than
    the deviation.
    """
    axis = node.attributes_as(NormAttributes).axis
    if node.origin is not None or why_no_norm(e.target, LAYER_NORM, x.dtype) is None:
        return KEEP
    is_whole = scale.shape == x.shape[axis:] and not any(e.graph.dims.promises_empty(d) for d in scale.shape)
    if not is_whole or why_no_norm(e.target, RMS_NORM, x.dtype) is not None:
        return KEEP
    data = _centred(e, x.widened(), tuple(range(axis, x.rank)))
    out = e(RMS_NORM, data, scale.widened(), attributes=node.attributes)
    return (out if bias is None else out + bias.widened()).cast(x.dtype)


@simplifies(RMS_NORM, gives=REASSOCIATES)
def rms_of_centred(e: Sketch, node: Node, data: Term, scale: Term) -> Lowered:
    """``rms_norm`` of a value less its mean over the same axes becomes ``layer_norm``, with a transpose between too.

    ONNX Runtime moves a transpose behind the difference, and saves the model so.
    """
    transpose = e.made_by(data, TRANSPOSE)
    perm = transpose.attributes_as(TransposeAttributes).perm if transpose else tuple(range(data.rank))
    difference = e.made_by(transpose.operand("x") if transpose else data, SUB)
    mean = e.made_by(difference.operand("b"), REDUCE_MEAN) if difference else None
    if difference is None or mean is None or mean.operand("x") is not difference.operand("a"):
        return KEEP
    taken, axis = mean.attributes_as(ReduceAttributes), node.attributes_as(NormAttributes).axis
    if not taken.keepdims or {perm.index(each) for each in taken.axes} != set(range(axis, data.rank)):
        return KEEP
    x = e.of(mean.operand("x")).transposed(perm)
    reason = why_no_norm(e.target, LAYER_NORM, data.dtype) or used_outside(e.taken, node)
    return reason or e(LAYER_NORM, x, scale, attributes=node.attributes)


def _centred(e: Formulas, x: Term, axes: tuple[int, ...]) -> Term:
    """The value less its mean over the axes."""
    return x - e.mean(x, axes)


# --- Scales and biases that join a normalization


@simplifies(MUL, fed_by=(LAYER_NORM, RMS_NORM, CAST, TRANSPOSE), gives=REASSOCIATES)
def absorb_norm_scale(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """``layer_norm`` or ``rms_norm`` times a constant along its axes becomes the same with that ``scale``.

    Also through a transpose or a cast to f16 behind it: one rounding less.
    """
    return _absorbed(e, node, 1)


@simplifies(ADD, SUB, fed_by=(LAYER_NORM, CAST, TRANSPOSE), gives=REASSOCIATES)
def absorb_norm_bias(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """``layer_norm`` plus a constant along its axes becomes the same with that ``bias``.

    Also through a transpose or a cast to f16 behind it: one rounding less.
    """
    return _absorbed(e, node, 2)


def _absorbed(e: Sketch, node: Node, place: int) -> Lowered:
    """The normalization with the node's constant in its operand ``place``, moved and cast as before."""
    norms = (LAYER_NORM, RMS_NORM) if place == 1 else (LAYER_NORM,)
    for value, other in both_ways(node)[: 1 if node.op is SUB else 2]:
        path = _path(value, norms)
        if path is None:
            continue
        norm, *moves = path
        axis, group = _group(norm)
        # A residual has the rank of what is normalized, so that it is not taken for a bias.
        if constant_of(other) is None and (moves or axis == 0 or other.shape != group or node.op is SUB):
            continue
        if why_no_norm(e.target, norm.op, norm.result.type.dtype) is not None:
            return KEEP
        if place == 1 and len(norm.operands) > 2 and norm.operands[2] is not None:
            return KEEP  # a bias is added in between
        e.taken += path
        joined = _why_not_absorbed(e, node, norm, moves, other, place) or _joined(e, node, norm, moves, other, place)
        if isinstance(joined, Miss):
            return joined
        operands = [*norm.operands, *[None] * (place + 1 - len(norm.operands))]
        operands[place] = joined
        out = e(norm.op, *operands, attributes=norm.attributes)
        for move in moves:
            out = e(move.op, out, attributes=move.attributes)
        return out
    return KEEP


def _path(value: Value, norms: Collection[Operation]) -> list[Node] | None:
    """The normalization and what moves or casts it on the way to ``value``."""
    path: list[Node] = []
    node = value.producer
    while node is not None and len(path) < 3:
        path.append(node)
        if node.op in norms:
            return path[::-1]
        if node.op is CAST:
            if (node.operand("x").type.dtype, node.result.type.dtype) != (f32, f16):
                return None
        elif node.op is not TRANSPOSE:
            return None
        node = node.operand("x").producer
    return None


def _why_not_absorbed(
    e: Sketch, root: Node, norm: Node, moves: Sequence[Node], other: Value, place: int
) -> Miss | None:
    axis, group = _group(norm)
    if reason := taken_elsewhere(e):
        return reason
    if root.result.shape != (moves[-1] if moves else norm).result.shape:
        return Miss("it broadcasts {0}", (norm.result.type,), other)
    if not all(isinstance(d, int) for d in group):
        return Miss("the normalized sizes [{0}] are not known", (", ".join(map(str, group)),), norm.operand("x"))
    for value in norm.operands[1:]:
        if value is not None and value.shape != group:
            return Miss("{0} is broadcast by the normalization already", (value.type,), value)
    have = norm.operands[place] if len(norm.operands) > place else None
    if have is not None and not _is_neutral(have, place) and None in (constant_of(have), constant_of(other)):
        return Miss("it has one already, and not both are constants", (), have)
    if constant_of(other) is not None and _aligned(norm, moves, other) is None:
        return Miss("{0} varies along an axis before {1}, the first normalized one", (other.type, axis), other)
    return None


def _is_neutral(value: Value | None, place: int) -> bool:
    """Ones for a scale, zeros for a bias."""
    tensor = constant_of(value)
    return value is None or (tensor is not None and bool(np.all(tensor.array == 2 - place)))


def _joined(e: Sketch, root: Node, norm: Node, moves: Sequence[Node], other: Value, place: int) -> Value:
    """The operand that becomes of ``other`` and the one that is there."""
    group, dtype = _group(norm)[1], norm.result.type.dtype
    old = norm.operands[place] if len(norm.operands) > place else None
    neutral, negated = _is_neutral(old, place), root.op is SUB
    if neutral and not negated and other.shape == group and other.type.dtype is dtype:
        return other
    aligned, have = _aligned(norm, moves, other), constant_of(old)
    assert aligned is not None
    array = np.broadcast_to(aligned, [d for d in group if isinstance(d, int)]).astype(dtype.numpy)
    array = -array if negated else array
    if have is not None and not neutral:
        with np.errstate(all="ignore"):
            array = have.array * array if place == 1 else have.array + array
    return e.constant(array)


def _group(norm: Node) -> tuple[int, tuple[object, ...]]:
    axis = norm.attributes_as(NormAttributes).axis
    return axis, norm.operand("x").shape[axis:]


def _aligned(norm: Node, moves: Sequence[Node], other: Value) -> Array | None:
    """The constant as it lies along the normalized axes; None where it varies along others."""
    tensor = constant_of(other)
    assert tensor is not None
    axis, rank = norm.attributes_as(NormAttributes).axis, norm.result.type.rank
    shape = (1,) * (rank - len(tensor.type.shape)) + tensor.array.shape
    order = list(range(rank))
    for node in moves:
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
        written = (WrittenLayerNorm, WrittenRmsNorm, rms_of_centred, absorb_norm_scale, absorb_norm_bias)
        if not context.capabilities.emits_nodes:
            return written
        return [*written, MeanVarianceNorm, layer_norm_by_rms, transpose_chain]

    def run(self, graph: Graph, context: PassContext) -> bool:
        if context.target.code == "numpy":
            return False
        return super().run(graph, context)
