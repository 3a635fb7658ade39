"""A normalization that is written out becomes one node, with a scale of ones; scale and bias join it later."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Sequence
from functools import lru_cache
from math import prod
from typing import ClassVar

import numpy as np
from msgspec import Struct, field

from dmlc.ir import DType, Graph, Node, Operation, Shape, Tensor, Value, product
from dmlc.ir.dtype import f64
from dmlc.ops.binary import ADD, DIV, MUL, POW, SUB
from dmlc.ops.choose import CAST, CastAttributes
from dmlc.ops.constant import constant_of
from dmlc.ops.elementwise import RECIPROCAL, SQRT
from dmlc.ops.move import EXPAND, RESHAPE, TRANSPOSE, TransposeAttributes
from dmlc.ops.normalize import LAYER_NORM, MEAN_VARIANCE_NORM, RMS_NORM, MeanVarianceAttributes, NormAttributes
from dmlc.passes.fuse_layer_norm.statistics import Deviation, bare, centred_of, deviation_of
from dmlc.passes.manager import RANGE, REASSOCIATES, PassContext
from dmlc.passes.patterns import Seen, broadcasts, made_by, scalar_of, used_outside
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule
from dmlc.targets.capabilities import Capabilities

#: The operations that a deviation can end with, and those that one over a deviation can.
DEVIATES = (SQRT, POW, ADD, SUB, CAST, EXPAND)
INVERTS = (SQRT, POW, RECIPROCAL, DIV, CAST, EXPAND)
#: Operations that feed a product with, or a quotient by, one of these.
BY_DEVIATION = (*DEVIATES, *INVERTS, MUL)


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


#: Products of more factors than these are not of the kind that is looked for.
_MOST = 8


class Factors(Struct):
    """``above`` and ``below`` the line; ``nodes`` multiply and divide them. ``sides`` says of each factor into which
    operands of the root it goes."""

    above: list[Value] = field(default_factory=list)
    below: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    sides: dict[Value, set[int]] = field(default_factory=dict)

    def meet_at_root(self, a: Value, b: Value) -> bool:
        """Return whether the root itself multiplies the two factors, and not a product inside of it."""
        return len(self.sides[a] | self.sides[b]) > 1


def without(values: Sequence[Value], value: Value) -> tuple[Value, ...]:
    """The values but for one occurrence of ``value``."""
    place = list(values).index(value)
    return (*values[:place], *values[place + 1 :])


def factors_of(root: Node) -> Factors | None:
    """The factors of a product. A value that is used elsewhere, and a square, are factors of their own."""
    out = Factors()
    pending: list[tuple[Node, bool, int | None]] = [(root, True, None)]
    while pending:
        node, above, root_side = pending.pop()
        out.nodes.append(node)
        for i, value in enumerate(node.operands):
            assert value is not None
            side = i if root_side is None else root_side
            upper = above ^ (node.op is RECIPROCAL or (node.op is DIV and i == 1))
            inner = made_by(value, MUL, DIV, RECIPROCAL)
            if inner is not None and value.is_used_once and len(set(inner.operands)) == len(inner.operands):
                pending.append((inner, upper, side))
            elif not (scalar_of(value) == 1 and not broadcasts(value, root.result)):
                (out.above if upper else out.below).append(value)
                out.sides.setdefault(value, set()).add(side)
        if len(out.nodes) > _MOST:
            return None
    return out


#: A scale of ones that is larger than this is not made, unless a scale follows that takes its place.
_MOST_ONES = 1 << 16


class NormMatch(Match, eq=False, kw_only=True):
    """``x`` (transposed by ``perm``) is normalized over ``axes`` in ``dtype``.

    ``above`` and ``below`` are further factors of the product, ``plus`` is what is added to it.
    """

    op: Operation
    x: Value
    perm: tuple[int, ...] | None
    axes: tuple[int, ...]
    dtype: DType
    deviation: Deviation
    above: tuple[Value, ...]
    below: tuple[Value, ...]
    plus: Value | None

    @property
    def shape(self) -> Shape:
        return self.x.shape if self.perm is None else tuple([self.x.shape[a] for a in self.perm])


_CANCELS = (
    "a layer normalization that was written out is a LayerNormalization now: ONNX Runtime's CPU provider takes its "
    "variance as E[x^2] - E[x]^2 up to 1.26, which loses digits where a mean is far larger than the deviation"
)


class NormRule(Rule[NormMatch]):
    """Base of the two rules."""

    op: ClassVar[Operation]
    #: The numerator of the pattern, in words.
    wanted: ClassVar[str]
    rewrite_class = REASSOCIATES

    def class_of(self, match: NormMatch, graph: Graph, context: PassContext) -> str:
        return RANGE if match.deviation.spread.moments else REASSOCIATES

    def describe(self, match: NormMatch) -> str:
        count = len(match.consumed) + 1
        return f"{match.op.name} over axes {list(match.axes)} written out in {count} nodes"

    def check(self, match: NormMatch, graph: Graph) -> Miss | None:
        return (
            why_no_statistics(match)
            or _why_not_in_place(match.deviation)
            or why_no_norm(self.capabilities, match.op, match.dtype)
            or used_outside(match.consumed, match.root)
            or _geometry(match)
        )

    def near_miss(self, deviation: Deviation) -> Miss:
        """The reason where something else than what the deviation is of is divided by it."""
        other = Miss("what is divided by the deviation is not {0}", (self.wanted,), deviation.spread.average.x)
        return why_no_mean(deviation) or _why_not_in_place(deviation) or other

    def build(self, match: NormMatch, rewriter: Rewriter) -> Sequence[Value]:
        return [build_norm(match, rewriter, in_language=not self.capabilities.emits_nodes)]


def why_no_statistics(match: NormMatch) -> Miss | None:
    """The reason why mean and variance are not means, or not over the same axes."""
    average = match.deviation.spread.average
    miss = why_no_mean(match.deviation)
    if miss is None and match.axes != average.axes:
        text = "the mean is taken over axes {0}, the mean of squares over axes {1}"
        return Miss(text, (list(match.axes), list(average.axes)), match.x)
    return miss


def why_no_mean(deviation: Deviation) -> Miss | None:
    """The reason why the variance is not a mean."""
    return deviation.why_not or deviation.spread.average.why_no_mean()


def _why_not_in_place(deviation: Deviation) -> Miss | None:
    average = deviation.spread.average
    if average.stands_in_place:
        return None
    return Miss("keepdims=false: the deviation broadcasts along another axis than it was taken", (), average.x)


def find_deviation(factors: Factors, seen: Seen) -> tuple[Deviation, Value] | None:
    """The factor that divides by a deviation, and what it is."""
    for values, inverse, makers in ((factors.below, False, DEVIATES), (factors.above, True, INVERTS)):
        for value in values:
            found = deviation_of(value, seen, inverse=inverse) if made_by(value, *makers) is not None else None
            if found is not None:
                return found, value
    return None


def _is_part_of_product(node: Node) -> bool:
    users = node.result.users
    return len(users) == 1 and users[0].op in (MUL, DIV, RECIPROCAL)


class Numerator(Struct, frozen=True):
    """The factor ``value`` is ``x``, transposed by ``perm``, less its mean over ``axes`` or as it is."""

    value: Value
    x: Value
    perm: tuple[int, ...] | None
    axes: tuple[int, ...]


class _FuseProduct(NormRule):
    def match(self, node: Node, graph: Graph) -> NormMatch | Miss | None:
        factors = factors_of(node)
        seen: Seen = []
        found = None if factors is None else find_deviation(factors, seen)
        if factors is None or found is None:
            return None
        deviation, factor = found
        data = self._numerator(factors, deviation, seen)
        if data is None:
            meant = not _is_part_of_product(node) and self._is_meant(deviation)
            return self.near_miss(deviation) if meant else None
        if not factors.meet_at_root(data.value, factor):
            return None  # the smaller product inside is, or would be, the root
        above, below = without(factors.above, data.value), tuple(factors.below)
        return NormMatch(
            node,
            tuple(dict.fromkeys([n for n in (*factors.nodes, *seen) if n is not node])),
            op=self.op,
            x=data.x,
            perm=data.perm,
            axes=data.axes,
            dtype=deviation.spread.data.type.dtype,
            deviation=deviation,
            above=without(above, factor) if factor in above else above,
            below=without(below, factor) if factor in below else below,
            plus=None,
        )

    @abstractmethod
    def _numerator(self, factors: Factors, deviation: Deviation, seen: Seen) -> Numerator | None:
        """The factor that is normalized; None where none is of that kind."""

    @abstractmethod
    def _is_meant(self, deviation: Deviation) -> bool:
        """Return whether a product without such a factor is a near miss of this rule."""


class WrittenLayerNorm(_FuseProduct):
    """``(x - mean(x)) / sqrt(mean((x - mean(x)) ** 2) + epsilon)`` becomes ``layer_norm``.

    It may be written in any form: order of factors, squares and roots, sums over the count for means, casts to f32
    and back. A transpose may be between. Other axes than the last are taken with two transposes, if that saves nodes.
    It rounds otherwise, and f16 parts do not overflow: ``reassociates``. A variance that is written as ``E[x^2] -
    E[x]^2`` cancels where the mean is large, and the fused node does not: class ``range``.

    The kernel decides how the variance is taken. ONNX Runtime's CPU provider cancels up to 1.26 (its issues 21935 and
    28463): at a mean of 100 deviations 2e-2 is lost, at 1000 everything. From 1.27 on it is as good as what is written
    out (measured). Its own optimizer makes the same node. The artifact's report says so.
    """

    name = "fuse-layer-norm"
    roots: ClassVar[tuple[Operation, ...]] = (MUL, DIV)
    fed_by: ClassVar[Collection[Operation]] = BY_DEVIATION
    op = LAYER_NORM
    wanted = "the value less its mean, whose squares are under the root"

    def _is_meant(self, deviation: Deviation) -> bool:
        return deviation.spread.centred is not None

    def _numerator(self, factors: Factors, deviation: Deviation, seen: Seen) -> Numerator | None:
        spread = deviation.spread
        if spread.centred is None:
            return None
        for value in factors.above:
            mine: Seen = []
            data = centred_of(value, mine)
            if data is None or data.flipped or not data.is_like(spread.centred):
                continue
            if not spread.moments:
                centred_of(spread.data, mine)
            seen.extend(mine)
            return Numerator(value, data.x, data.perm, data.axes)
        return None


class WrittenRmsNorm(_FuseProduct):
    """``x / sqrt(mean(x ** 2) + epsilon)`` becomes ``rms_norm``.

    In every spelling, with casts to f32 and back, the scale before or after. It is one node where the target has one:
    ``SimplifiedLayerNormalization`` of ONNX Runtime, or ``RMSNormalization`` from opset 23 on. It rounds otherwise,
    and f16 squares do not overflow: ``reassociates``.
    """

    name = "fuse-rms-norm"
    roots: ClassVar[tuple[Operation, ...]] = (MUL, DIV)
    fed_by: ClassVar[Collection[Operation]] = BY_DEVIATION
    op = RMS_NORM
    wanted = "what is squared under the root"

    def match(self, node: Node, graph: Graph) -> NormMatch | Miss | None:
        match = super().match(node, graph)
        if not isinstance(match, NormMatch) or match.deviation.spread.centred is None:
            return match
        # A layer normalization that could not be fused as such, for a reason that its own rule gives.
        return match if self.check(match, graph) is None else None

    def _is_meant(self, deviation: Deviation) -> bool:
        return deviation.spread.centred is None

    def _numerator(self, factors: Factors, deviation: Deviation, seen: Seen) -> Numerator | None:
        spread = deviation.spread
        for value in factors.above:
            if not spread.moments and bare(value) is bare(spread.data):
                return Numerator(value, spread.data, None, spread.average.axes)
        return None


# --- where it stands


def _geometry(match: NormMatch) -> Miss | None:
    shape, axes = match.shape, list(match.axes)
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
    shape = match.shape
    return all(a in match.axes or shape[a] == 1 for a in range(match.axes[0], len(shape)))


def _reaches(match: NormMatch) -> bool:
    """Return whether the normalized value times the other factors has the shape of the root."""
    target = match.root.result.shape
    shapes = [match.shape, *[v.shape for v in (*match.above, *match.below)]]
    if match.plus is not None:
        shapes.append(match.plus.shape)
    if max(map(len, shapes)) != len(target):
        return False
    aligned = [(1,) * (len(target) - len(s)) + s for s in shapes]
    return all(d == 1 or any(s[i] == d for s in aligned) for i, d in enumerate(target))


def _scale_follows(match: NormMatch, count: int) -> bool:
    root = match.root.result
    users = root.users
    scales = [v for node in users if node.op is MUL for v in node.operands if v is not None and v is not root]
    return len(users) == 1 and any(product(v.shape) == count for v in (*scales, *match.above))


def _per_channel(match: NormMatch) -> Miss | None:
    """Over all axes but the first and that of the channels, with a scale or bias for each channel, it is an instance
    normalization."""
    shape, root = match.shape, match.root.result
    rank = len(shape)
    channel = 1 if match.axes == tuple(range(2, rank)) else rank - 1
    if sorted((0, channel, *match.axes)) != list(range(rank)) or not isinstance(shape[channel], int):
        return None
    centred = match.deviation.spread.centred
    others: list[Value] = [*match.above, *match.below]
    if len(root.users) == 1:
        (user,) = root.users
        before = made_by(match.x if centred is None else centred.x, RESHAPE)
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
    if match.perm is not None:
        x = rewriter.add(TRANSPOSE, [x], TransposeAttributes(perm=match.perm))
    out = _normalized(match, x, rewriter, in_language=in_language)
    if out.type.dtype is not root.type.dtype:
        out = rewriter.add(CAST, [out], CastAttributes(to=root.type.dtype))
    for value in match.above:
        out = rewriter.add(MUL, [out, value])
    for value in match.below:
        out = rewriter.add(DIV, [out, value])
    return out if match.plus is None else rewriter.add(ADD, [out, match.plus])


@lru_cache(maxsize=8)
def _ones(shape: tuple[int, ...], dtype: DType) -> Tensor:
    """Ones: the same tensor for the next normalization, which is often alike, so that it is hashed once."""
    return Tensor(np.ones(shape, dtype=dtype.numpy))


def _normalized(match: NormMatch, x: Value, rewriter: Rewriter, *, in_language: bool) -> Value:
    """The fused operation with a scale of ones. A program that has no scale says it without one."""
    axes, rank, epsilon = match.axes, x.type.rank, match.deviation.epsilon
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
