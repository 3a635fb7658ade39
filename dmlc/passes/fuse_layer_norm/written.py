"""Normalizations that are written out, in whatever spelling: values are compared by their normal forms.

A rule starts from a mean of squares and follows its users to a value of the form ``scale * normalized / sqrt(variance +
epsilon) + bias``. What only looks like one has a reason.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np
from msgspec import Struct

from dmlc.ir import Graph, Node, Operation, Value
from dmlc.ops.binary import ADD, DIV, MUL, SUB
from dmlc.ops.normalize import LAYER_NORM, RMS_NORM
from dmlc.ops.reduce import REDUCE_MEAN, REDUCE_SUM, REDUCE_SUM_SQUARE, ReduceAttributes
from dmlc.passes.fuse_layer_norm.core import Follows, NormMatch, NormRule
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
from dmlc.passes.patterns import square_of
from dmlc.passes.rewrite import Miss

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
        forms, axes, whole = Forms(data), node.attributes_as(ReduceAttributes).axes, atom(bare(data))
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
        return Sought(forms, data, node.attributes_as(ReduceAttributes).axes, x, _squares(forms, node))

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
    x, axes = node.operand("x"), list(node.attributes_as(ReduceAttributes).axes)
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
