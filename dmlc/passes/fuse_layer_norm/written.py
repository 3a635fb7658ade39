"""Normalizations that are written out, in whatever spelling: values are compared by their normal forms.

A rule starts from a mean of squares and follows its users to a value of the form ``scale * normalized / sqrt(variance +
epsilon) + bias``. What only looks like one has a reason.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod
from typing import ClassVar, TypeAlias

import numpy as np
from msgspec import Struct

from dmlc.ir import DType, Graph, Node, Operation, Tensor, Value, product
from dmlc.ir.dtype import f64
from dmlc.ops.binary import ADD, DIV, MUL, SUB
from dmlc.ops.choose import CAST, CastAttributes
from dmlc.ops.constant import constant_of
from dmlc.ops.move import RESHAPE, TRANSPOSE, TransposeAttributes
from dmlc.ops.normalize import LAYER_NORM, MEAN_VARIANCE_NORM, RMS_NORM, MeanVarianceAttributes, NormAttributes
from dmlc.ops.reduce import REDUCE_MEAN, REDUCE_SUM, REDUCE_SUM_SQUARE, axes_of
from dmlc.passes.manager import RANGE, REASSOCIATES, PassContext
from dmlc.passes.normal_form import (
    ONE,
    OPENED,
    Atom,
    Form,
    Forms,
    Mean,
    Sum,
    atom,
    atoms,
    bare,
    equal,
    mean,
    number,
    plus,
    power,
    quotient,
    times,
)
from dmlc.passes.patterns import made_by, square_of, used_outside
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule
from dmlc.targets.capabilities import Capabilities

# --- A normalization that is written out becomes one node, with a scale of ones; scale and bias join it later

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


#: Users of a mean of squares on the way to the normalized value, and values searched for a mean, at most.
_MOST_STEPS, _MOST_VALUES = 16, 12
_NO_EPSILON = Miss("there is no epsilon under the root: a group of zeros gives NaN, which the fused operator need not")
_NO_ROOT = Miss("it is divided by the mean of squares itself, not by its root")
_VARIABLE = Miss("epsilon is not a constant, and the fused operator takes a number")


class Sought(Struct, frozen=True):
    """Forms to look for: ``normalized``, made of ``x``, over the root of ``variance``. The first term of the variance
    is the mean of squares that the rule starts from."""

    forms: Forms
    x: Value
    axes: tuple[int, ...]
    normalized: Form
    variance: Form
    moments: bool = False


class _WrittenNorm(NormRule):
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_MEAN, REDUCE_SUM, REDUCE_SUM_SQUARE)
    #: The numerator of the pattern, in words.
    wanted: ClassVar[str]

    @abstractmethod
    def sought(self, node: Node, data: Value) -> Sought:
        """The forms whose variance has the mean of the squares of ``data`` that ``node`` computes."""

    def match(self, node: Node, graph: Graph) -> NormMatch | Miss | None:
        data = squared_by(node)
        if data is None:
            return None
        sought, value, why_not = self.sought(node, data), node.result, None
        for _ in range(_MOST_STEPS):
            root = next((user for user in value.users if user.op in OPENED), None)
            if root is None:
                break
            value = root.result
            for divisor in atoms(sought.forms.of(value)):
                epsilon = _epsilon(divisor, sought.variance)
                if epsilon is None:
                    continue
                reason = epsilon if isinstance(epsilon, Miss) else _why_no_statistics(divisor[0], sought, node)
                follows = _follows(value, divisor, sought)
                if follows is not None and isinstance(epsilon, float):
                    return reason or self._match(root, data, sought, epsilon, follows)
                if why_not is None and root.op in (MUL, DIV):
                    other = Miss("what is divided by the deviation is not {0}", (self.wanted,), node.operand("x"))
                    why_not = reason or other
        return why_not

    def _match(self, root: Node, data: Value, sought: Sought, epsilon: float, follows: Follows) -> NormMatch:
        return NormMatch(
            root,
            tuple([node for node in sought.forms.opened if node is not root]),
            op=self.op,
            x=sought.x,
            source=sought.x,
            axes=sought.axes,
            dtype=data.type.dtype,
            epsilon=epsilon,
            follows=follows,
            moments=sought.moments,
        )


class WrittenLayerNorm(_WrittenNorm):
    """``(x - mean(x)) / sqrt(mean((x - mean(x)) ** 2) + epsilon)`` becomes ``layer_norm``.

    It may be written in any form: order of factors, squares and roots, sums over the count for means, casts to f32
    and back. Also ``x * s + (bias - mean(x) * s)``, with the scale in ``s``. Other axes than the last are taken with
    two transposes, if that saves nodes. It rounds otherwise, and f16 parts do not overflow: ``reassociates``. A
    variance that is written as ``E[x^2] - E[x]^2`` cancels where the mean is large, and the fused node does not: class
    ``range``.

    The kernel decides how the variance is taken. ONNX Runtime's CPU provider cancels up to 1.26 (its issues 21935 and
    28463): at a mean of 100 deviations 2e-2 is lost, at 1000 everything. From 1.27 on it is as good as what is written
    out (measured). Its own optimizer makes the same node. The artifact's report says so.
    """

    name = "fuse-layer-norm"
    op = LAYER_NORM
    wanted = "the value less its mean, whose squares are under the root"

    def sought(self, node: Node, data: Value) -> Sought:
        centre = centre_of(data)
        if centre is not None:
            forms, x, axes, normalized = centre
            return Sought(forms, x, axes, normalized, _squares(forms, node))
        forms, axes, whole = Forms(data), axes_of(node), atom(bare(data))
        average = mean(whole, tuple([a - data.type.rank for a in axes]))
        variance = plus(_squares(forms, node), power(average, 2), -1)
        return Sought(forms, data, axes, plus(whole, average, -1), variance, moments=True)


class WrittenRmsNorm(_WrittenNorm):
    """``x / sqrt(mean(x ** 2) + epsilon)`` becomes ``rms_norm``.

    In every spelling, with casts to f32 and back, the scale before or after. It is one node where the target has one:
    ``SimplifiedLayerNormalization`` of ONNX Runtime, or ``RMSNormalization`` from opset 23 on. It rounds otherwise,
    and f16 squares do not overflow: ``reassociates``.
    """

    name = "fuse-rms-norm"
    op = RMS_NORM
    wanted = "what is squared under the root"

    def sought(self, node: Node, data: Value) -> Sought:
        forms, x = Forms(data), atom(bare(data))
        return Sought(forms, data, axes_of(node), x, _squares(forms, node))

    def match(self, node: Node, graph: Graph) -> NormMatch | Miss | None:
        match, data = super().match(node, graph), squared_by(node)
        centre = None if match is None or data is None else centre_of(data)
        if match is None or centre is None:
            return match
        # A layer normalization that could not be fused as such, for a reason that its own rule gives.
        if isinstance(match, Miss):
            return None
        match.source = centre[1]
        return match if self.check(match, graph) is None else None


def squared_by(node: Node) -> Value | None:
    """``x`` where the node is a sum or mean of ``x * x`` or ``x ** 2``."""
    x = node.operand("x")
    return x if node.op is REDUCE_SUM_SQUARE else square_of(bare(x), [])


def centre_of(data: Value) -> tuple[Forms, Value, tuple[int, ...], Form] | None:
    """``x``, the mean's axes and ``x - mean(x)`` where ``data`` is that, or its negative."""
    for x in _averaged(data):
        forms, plain = Forms(x), atom(bare(x))
        found = forms.of(data)
        axes = next((a.axes for a, _ in atoms(found) if isinstance(a, Mean)), ())
        centred = plus(plain, mean(plain, axes), -1)
        if quotient(found, centred) in ((ONE, 1.0), (ONE, -1.0)):
            return forms, x, tuple([a + x.type.rank for a in axes]), centred
    return None


def _averaged(data: Value) -> Iterator[Value]:
    """The values of whose means the value may be made."""
    pending = [data]
    for value in pending:
        node = value.producer
        if node is not None and node.op in (REDUCE_MEAN, REDUCE_SUM):
            yield node.operand("x")
        elif node is not None and node.op in OPENED and len(pending) < _MOST_VALUES:
            pending += [v for v in node.operands if v is not None]


def _squares(forms: Forms, node: Node) -> Form:
    """The mean of squares that ``node`` computes a multiple of; also times a number of elements that is not known."""
    return dict.fromkeys(forms.of(node.result), 1.0)


def _epsilon(divisor: tuple[Atom, float], variance: Form) -> float | Miss | None:
    """``epsilon`` where one divides by the root of ``variance + epsilon``, or by nearly that; else None."""
    below, exponent = divisor
    if exponent not in (-1, -0.5):
        return None
    under = dict(below.of) if isinstance(below, Sum) else atom(below)
    first, rooted = next(iter(variance)), next(iter(power(variance, 0.5)))
    rest = {term: c for term, c in under.items() if term not in variance}
    if rest.keys() == {ONE, rooted} and exponent == -1:
        return Miss("epsilon {0:.3g} is added to the root, not under it", (rest[ONE],))
    inner = {term: c for term, c in under.items() if term in variance}
    if first not in inner or not equal(inner, times(number(inner[first]), variance)):
        return None
    if exponent == -1:
        return _NO_ROOT if rest.keys() <= {ONE} else None
    if rest.keys() == {ONE}:
        return rest[ONE] if rest[ONE] > 0 else Miss("epsilon is {0}, not above 0", (rest[ONE],))
    others = [a for a, _ in atoms(rest)]
    is_number = len(others) == 1 and isinstance(others[0], Value) and others[0].shape in ((), (1,))
    return _VARIABLE if is_number else None if rest else _NO_EPSILON


def _why_no_statistics(divisor: Atom, sought: Sought, node: Node) -> Miss | None:
    """The reason why the variance is not a mean, or not over the axes of the other mean, or broadcasts along others."""
    x, axes = node.operand("x"), list(axes_of(node))
    first = next(iter(sought.variance))
    if len(first) > 1:
        return Miss("the number of elements along axes {0} is not known", (axes,), x)
    excess = dict(divisor.of)[first] if isinstance(divisor, Sum) else 1.0
    if excess != 1:
        return Miss("the root is taken of {0:.9g} times the mean of squares over axes {1}", (excess, axes), x)
    if list(sought.axes) != axes:
        text = "the mean is taken over axes {0}, the mean of squares over axes {1}"
        return Miss(text, (list(sought.axes), axes), x)
    if not all(average.in_place for average, _ in first if isinstance(average, Mean)):
        return Miss("keepdims=false: the deviation broadcasts along another axis than it was taken", (), x)
    return None


def _follows(value: Value, divisor: tuple[Atom, float], sought: Sought) -> Follows | None:
    """The factors and terms with which the normalized value gives ``value``."""
    form, known = sought.forms.of(value), sought.forms.known
    held = {term - {divisor}: c for term, c in form.items() if divisor in term}
    found = quotient(held, sought.normalized)
    if found is None:
        return None
    scale, factor = found
    limits = np.finfo(value.type.dtype.numpy)
    if not limits.tiny <= abs(factor) <= limits.max or not all(e.is_integer() and a in known for a, e in scale):
        return None
    out: list[tuple[Operation, Value | float]] = [] if factor == 1 else [(MUL, factor)]
    for other in known:  # in the order of the operands
        exponent = int(dict(scale).get(other, 0))
        out += [(MUL if exponent > 0 else DIV, other)] * abs(exponent)
    for term, c in form.items():
        if divisor in term:
            continue
        added = [a for a, e in term if e == 1 and isinstance(a, Value) and a in known]
        if len(added) != len(term) or len(term) > 1 or (term and abs(c) != 1):
            return None
        out.append((ADD if c > 0 or not term else SUB, added[0] if term else c))
    return tuple(out)
