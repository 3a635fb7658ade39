"""A normalization that is written out becomes one node, with a scale of ones; scale and bias join it later."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import ClassVar, TypeAlias

import numpy as np

from dmlc.ir import DType, Graph, Operation, Tensor, Value, product
from dmlc.ir.dtype import f64
from dmlc.ops.binary import ADD, DIV, MUL, SUB
from dmlc.ops.choose import CAST, CastAttributes
from dmlc.ops.constant import constant_of
from dmlc.ops.move import RESHAPE, TRANSPOSE, TransposeAttributes
from dmlc.ops.normalize import LAYER_NORM, MEAN_VARIANCE_NORM, RMS_NORM, MeanVarianceAttributes, NormAttributes
from dmlc.passes.manager import RANGE, REASSOCIATES, PassContext
from dmlc.passes.patterns import made_by, used_outside
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule
from dmlc.targets.capabilities import Capabilities

_OWN = "SimplifiedLayerNormalization"
_OPERATOR = {LAYER_NORM: ("LayerNormalization", 17), RMS_NORM: ("RMSNormalization", 23)}


def why_no_norm(capabilities: Capabilities, op: Operation, dtype: DType) -> Miss | None:
    """The reason why a normalization is not one node on the target; the lowerings use the same conditions."""
    if capabilities.target.code == "program":
        return None
    if capabilities.table is None:
        return Miss("the target {0} has no such operator", (capabilities.target.name,))
    if dtype is f64:
        return Miss("the fused operator takes its statistics and epsilon in f32, and this is f64")
    wanted = _OPERATOR[op]
    if op is RMS_NORM and capabilities.target.own_schemas:
        wanted = (_OWN, 1)
    name, first = wanted
    if not capabilities.reaches(name):
        return Miss("{0} needs a higher feature level than {1}", (name, capabilities.target.feature_level))
    if capabilities.opset < first:
        return Miss("{0} needs opset {1}, and opset {2} is emitted", (name, first, capabilities.opset))
    if capabilities.is_wrong(name, dtype):
        return Miss("{0} of {1} loses large means in the installed ONNX Runtime", (name, dtype))
    return None


#: A scale of ones that is larger than this is not made, unless a scale follows that takes its place.
_MOST_ONES = 1 << 16


#: Operations one after the other, and their second operands.
Follows: TypeAlias = "tuple[tuple[Operation, Value | float], ...]"


class NormMatch(Match, eq=False, kw_only=True):
    """``x`` is normalized over ``axes`` in ``dtype``; it is ``source``, perhaps less its mean.

    ``follows`` is what is done with the result. ``moments`` says that the variance is the mean of squares less the
    square of the mean.
    """

    op: Operation
    x: Value
    source: Value
    axes: tuple[int, ...]
    dtype: DType
    epsilon: float
    follows: Follows
    moments: bool

    @property
    def others(self) -> list[Value]:
        """The values that the normalized one is combined with."""
        return [v for _, v in self.follows if isinstance(v, Value)]


_CANCELS = (
    "a layer normalization that was written out is a LayerNormalization now: ONNX Runtime's CPU provider takes its "
    "variance as E[x^2] - E[x]^2 up to 1.26, which loses digits where a mean is far larger than the deviation"
)


class NormRule(Rule[NormMatch]):
    """Base of the two rules."""

    op: ClassVar[Operation]
    rewrite_class = REASSOCIATES

    def class_of(self, match: NormMatch, graph: Graph, context: PassContext) -> str:
        return RANGE if match.moments else REASSOCIATES

    def describe(self, match: NormMatch) -> str:
        count = len(match.consumed) + 1
        return f"{match.op.name} over axes {list(match.axes)} written out in {count} nodes"

    def check(self, match: NormMatch, graph: Graph) -> Miss | None:
        return (
            why_no_norm(self.capabilities, match.op, match.dtype)
            or used_outside(match.consumed, match.root)
            or _geometry(match)
        )

    def build(self, match: NormMatch, rewriter: Rewriter) -> Sequence[Value]:
        return [build_norm(match, rewriter, in_language=not self.capabilities.emits_nodes)]


# --- where it stands


def _geometry(match: NormMatch) -> Miss | None:
    shape, axes = match.x.shape, list(match.axes)
    group = [shape[a] for a in axes]
    sizes = [d for d in group if isinstance(d, int)]
    if len(sizes) < len(group):
        text = "the sizes [{0}] of the normalized axes {1} are not known (--bind gives them)"
        return Miss(text, (", ".join(map(str, group)), axes), match.x)
    count = prod(sizes)
    if count < 2:
        return Miss("axes {0} hold {1} elements, for which kernels fail", (axes, count), match.x)
    if count > _MOST_ONES and not _scale_follows(match, count):
        return Miss("a scale of ones would take {0} elements", (count,), match.x)
    if not _reaches(match):
        return Miss("the product has another shape than the normalized value: {0}", (match.root.result.type,), match.x)
    if match.op is RMS_NORM and not _is_trailing(match):
        return Miss("axes {0} are not the last ones: two transposes cost what it saves", (axes,), match.x, saves=0)
    return _per_channel(match)


def _is_trailing(match: NormMatch) -> bool:
    """Return whether the axes are the last ones, ignoring axes of size 1 between and after them."""
    shape = match.x.shape
    return all(a in match.axes or shape[a] == 1 for a in range(match.axes[0], len(shape)))


def _reaches(match: NormMatch) -> bool:
    """Return whether the normalized value times the other factors has the shape of the root."""
    target = match.root.result.shape
    shapes = [match.x.shape, *[value.shape for value in match.others]]
    if max(map(len, shapes)) != len(target):
        return False
    aligned = [(1,) * (len(target) - len(s)) + s for s in shapes]
    return all(d == 1 or any(s[i] == d for s in aligned) for i, d in enumerate(target))


def _scale_follows(match: NormMatch, count: int) -> bool:
    root = match.root.result
    users = root.users
    scales = [v for node in users if node.op is MUL for v in node.operands if v is not None and v is not root]
    return len(users) == 1 and any(product(v.shape) == count for v in (*scales, *match.others))


def _per_channel(match: NormMatch) -> Miss | None:
    """Over all axes but the first and that of the channels, with a scale or bias for each channel, it is an instance
    normalization."""
    shape, root = match.x.shape, match.root.result
    rank = len(shape)
    channel = 1 if match.axes == tuple(range(2, rank)) else rank - 1
    if sorted((0, channel, *match.axes)) != list(range(rank)) or not isinstance(shape[channel], int):
        return None
    others = match.others
    if len(root.users) == 1:
        (user,) = root.users
        before = made_by(match.source, RESHAPE)
        if user.op is RESHAPE and before is not None and user.result.shape == before.operand("x").shape:
            return Miss("it is between two reshapes, as in a group normalization", (), root)
        if user.op in (MUL, DIV, ADD, SUB):
            others += [v for v in user.operands if v is not None and v is not root]
    for value in others:
        if constant_of(value) is None:
            continue
        aligned = (1,) * (rank - value.type.rank) + value.shape
        if (
            len(aligned) == rank
            and aligned[channel] != 1
            and all(d == 1 for i, d in enumerate(aligned) if i != channel)
        ):
            return Miss("scale or bias go along axis {0}, as in an instance normalization", (channel,), value)
    return None


# --- what takes its place


def build_norm(match: NormMatch, rewriter: Rewriter, *, in_language: bool = False) -> Value:
    """The normalization and what is left of the product around it; ``in_language`` where the result is a program."""
    x, dtype = match.x, match.dtype
    root = match.root.result
    if match.op is LAYER_NORM and not in_language and _CANCELS not in rewriter.graph.notes:
        rewriter.graph.notes.append(_CANCELS)
    if x.type.dtype is not dtype:
        x = rewriter.add(CAST, [x], CastAttributes(to=dtype))
    out = _normalized(match, x, rewriter, in_language=in_language)
    if out.type.dtype is not root.type.dtype:
        out = rewriter.add(CAST, [out], CastAttributes(to=root.type.dtype))
    return followed(match, out, rewriter)


def followed(match: NormMatch, out: Value, rewriter: Rewriter) -> Value:
    """The normalized value with what follows it."""
    for op, other in match.follows:
        known = other if isinstance(other, Value) else rewriter.constant(np.asarray(other, out.type.dtype.numpy))
        out = rewriter.add(op, [out, known])
    return out


@lru_cache(maxsize=8)
def _ones(shape: tuple[int, ...], dtype: DType) -> Tensor:
    """Ones: the same tensor for the next normalization, which is often alike, so that it is hashed once."""
    return Tensor(np.ones(shape, dtype=dtype.numpy))


def _normalized(match: NormMatch, x: Value, rewriter: Rewriter, *, in_language: bool) -> Value:
    """The fused operation with a scale of ones. A program that has no scale says it without one."""
    axes, rank, epsilon = match.axes, x.type.rank, match.epsilon
    is_trailing = _is_trailing(match)
    if in_language and match.op is LAYER_NORM:
        count = prod([d for d in [x.shape[a] for a in axes] if isinstance(d, int)])
        if not is_trailing or not _scale_follows(match, count):
            return rewriter.add(
                MEAN_VARIANCE_NORM, [x], MeanVarianceAttributes(axes=axes, epsilon=epsilon, variance=True)
            )
    back: tuple[int, ...] | None = None
    if not is_trailing:
        perm = (*[a for a in range(rank) if a not in axes], *axes)
        back = tuple([perm.index(a) for a in range(rank)])
        x = rewriter.add(TRANSPOSE, [x], TransposeAttributes(perm=perm))
        axes = tuple(range(rank - len(axes), rank))
    scale = rewriter.shared_constant(_ones(tuple([d for d in x.shape[axes[0] :] if isinstance(d, int)]), x.type.dtype))
    out = rewriter.add(match.op, [x, scale], NormAttributes(axis=axes[0], epsilon=epsilon))
    return out if back is None else rewriter.add(TRANSPOSE, [out], TransposeAttributes(perm=back))
