"""The bias of attention: what is added to the scores, in the shape and with the elements that the kernel takes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import islice
from math import prod

import numpy as np
from msgspec import Struct

from dmlc.ir import DType, Shape, Value
from dmlc.ops.binary import ADD, MAX
from dmlc.ops.choose import WHERE
from dmlc.ops.constant import constant_of
from dmlc.ops.move import EXPAND, RESHAPE, SQUEEZE, TRANSPOSE, UNSQUEEZE, ExpandAttributes
from dmlc.passes.expressions import Formulas
from dmlc.passes.fuse_attention.scores import Trail
from dmlc.passes.fuse_attention.tokens import HEADS_LAST, apart
from dmlc.passes.patterns import made_by
from dmlc.passes.rewrite import Miss

#: A fill hides a place whatever its score if it is at most this.
_HIDES = -1e30
#: A score that is biased by less may be hidden beside such a fill.
_SHOWS = -1e20
#: An expanded bias of more bytes costs more than the operators that are saved.
_MOST_BYTES = 1 << 27
#: Nodes of an expand to sizes that are computed, and of a test of rows.
_OPEN_EXPAND, _GUARD = 3, 3
#: Users of a bias that are asked whether they are attentions too.
_MOST_USERS = 64
_MOVES = (EXPAND, RESHAPE, SQUEEZE, TRANSPOSE, UNSQUEEZE)
_MOST_STEPS = 16


class Bias(Struct, frozen=True):
    """The terms of a bias. ``shape`` is that of the scores. ``guards`` is true if rows that are hidden as a whole give
    zeros instead of NaN. ``is_range`` is true if the bias equals the replaced nodes only where a row is not hidden as a
    whole."""

    terms: tuple[Value, ...]
    mask: tuple[Value, float] | None
    dtype: DType
    shape: Shape
    guards: bool
    is_range: bool

    @property
    def exists(self) -> bool:
        return bool(self.terms) or self.mask is not None

    @property
    def operands(self) -> tuple[Value, ...]:
        return self.terms if self.mask is None else (*self.terms, self.mask[0])

    @property
    def cost(self) -> int:
        """Operators that the bias takes at each attention beside the values that there are."""
        if not self.exists:
            return 0
        fills = self.mask is not None and constant_of(self.mask[0]) is None
        return len(self.operands) - 1 + fills + self.guards * (1 if self._broadcast[1] == 1 else 2)

    @property
    def shared_cost(self) -> int:
        """Operators that all attentions with this bias share."""
        if not self.exists:
            return 0
        is_static = all(isinstance(d, int) for d in self.shape)
        is_folded = is_static and all(constant_of(value) is not None for value in self.operands)
        expand = 0 if self._broadcast == self.shape or is_folded else 1 if is_static else _OPEN_EXPAND
        return expand + self.guards * _GUARD

    @property
    def _broadcast(self) -> Shape:
        """The shape of the sum of all operands."""
        shapes = [apart(value.shape, self.shape[:2]) for value in self.operands]
        padded = [(*[1] * (len(self.shape) - len(shape)), *shape) for shape in shapes]
        return tuple([d if d in sizes else 1 for d, *sizes in zip(self.shape, *padded, strict=True)])

    def share(self) -> int:
        """The part of the shared operators that one of the attentions with this bias takes, rounded up."""
        if not self.shared_cost or len(self.terms) > 1 or self.mask is not None:
            return self.shared_cost
        users = list(islice(self.terms[0].users, _MOST_USERS))
        if any(user.op in (EXPAND, MAX) and user.result.shape in (self.shape, user.operand(0).shape) for user in users):
            return 0  # another attention made them
        return -(-self.shared_cost // max(1, sum(user.op is ADD for user in users)))

    def build(self, make: Formulas) -> tuple[Value | None, Value | None]:
        """The bias in the shape of the scores, and the rows that are not hidden as a whole; None where not needed."""
        if not self.exists:
            return None, None
        terms = [make.reshape(term, apart(term.shape, self.shape[:2])) for term in self.terms]
        if self.mask is not None:
            cond, fill = self.mask
            cond = make.reshape(cond, apart(cond.shape, self.shape[:2]))
            terms.append(make.where(cond, make.number(0, self.dtype), make.number(fill, self.dtype)).value)
        total = reduce(lambda a, b: make.add(ADD, [a, b]), terms)
        lowest = float(np.finfo(total.type.dtype.numpy).min)
        rows = None
        if self.guards:
            axis = total.type.rank - 1
            most, bound = make.max(total, [axis]), make.number(lowest, total.type.dtype)
            rows = (most >= bound).value
            total = make.larger(total, bound).value
        data = constant_of(total)
        if data is not None and np.isneginf(data.array).any():
            clipped = np.maximum(data.array, total.type.dtype.numpy.type(lowest))
            total = make.constant(clipped)
        if total.shape != self.shape:
            total = make.add(EXPAND, [total], ExpandAttributes(shape=self.shape))
        return total, rows


def bias_of(trail: Trail, shape: Shape, *, is_safe: bool) -> Bias | Miss:
    """The bias of scores of that shape. With ``is_safe``, the weights of rows that are hidden as a whole are zeros."""
    dtype = trail.nodes[0].result.type.dtype
    operands = [*trail.terms, *([trail.mask[0]] if trail.mask is not None else ())]
    for value in operands:
        if not value.type.rank:
            return Miss("a bias has no axes", (), value)
    if any(apart(value.shape, shape[:2]) != shape for value in operands) or len(operands) > 1:
        size = prod([d for d in shape if isinstance(d, int)]) * dtype.numpy.itemsize
        if size > _MOST_BYTES and all(isinstance(d, int) for d in shape):
            return Miss("the expanded bias would take {0:,} bytes", (size,))
    for term in trail.terms:
        data = constant_of(term)
        if data is not None and np.isneginf(data.array).all(axis=-1).any():
            return Miss("a row of the bias is -inf as a whole", (), term)
    if (miss := _why_not_added(trail.terms)) is not None:
        return miss
    is_range, least = False, [_least(term) for term in trail.terms]
    if trail.mask is not None:
        cond, fill = trail.mask
        if fill > _HIDES:
            return Miss("the fill {0:g} does not hide every score", (fill,), cond)
        truth = constant_of(cond)
        hides_row = truth is None or not bool(truth.array.any(axis=-1).all())
        is_range = hides_row or any(bound is None or bound < _SHOWS for bound in least)
    guards = is_safe and None in least
    if trail.mask is not None and is_safe and np.isinf(trail.mask[1]):
        guards, is_range = True, False
    return Bias(trail.terms, trail.mask, dtype, shape, guards, is_range)


def _why_not_added(terms: Sequence[Value]) -> Miss | None:
    """The reason against biases that would be added to each other before the scores are. In a row of a large number
    that rounds the scores otherwise. All but one have to round nothing: they keep a score, or leave nothing of it."""
    rounding = [term for term in terms if not _keeps_or_hides(term)]
    if len(rounding) < 2:
        return None
    return Miss("{0} biases are added one after another: their sum rounds otherwise", (len(terms),), rounding[-1])


def _keeps_or_hides(value: Value, steps: int = _MOST_STEPS) -> bool:
    """True if each element is known to be 0, or so low that a score and another bias vanish in the sum with it."""
    data = constant_of(value)
    if data is not None:
        numbers = data.array.astype(np.float64)  # f16 has no number so low
        return bool(((numbers == 0) | (numbers <= _HIDES)).all())
    if not steps:
        return False
    chosen = made_by(value, WHERE)
    if chosen is not None:
        return all(_keeps_or_hides(v, steps - 1) for v in (chosen.operand("a"), chosen.operand("b")))
    moved = made_by(value, *_MOVES)
    return moved is not None and _keeps_or_hides(moved.operand("x"), steps - 1)


def _least(value: Value, steps: int = _MOST_STEPS) -> float | None:
    """A bound below the elements, where one is known that is not -inf."""
    data = constant_of(value)
    if data is not None:
        least = float(data.array.min())
        return least if np.isfinite(least) else None
    if not steps or value.producer is None:
        return None
    chosen = made_by(value, WHERE)
    if chosen is not None:
        bounds = [_least(v, steps - 1) for v in (chosen.operand("a"), chosen.operand("b"))]
        known = [b for b in bounds if b is not None]
        return min(known) if len(known) == 2 else None
    moved = made_by(value, *_MOVES)
    return None if moved is None else _least(moved.operand("x"), steps - 1)


def token_rows(make: Formulas, rows: Value, y: Value, heads: int) -> Value:
    """``y``, (batch, length, heads * size), with zeros in the rows that are not in ``rows``."""
    shape = (*[1] * (4 - rows.type.rank), *rows.shape)
    rows = make.reshape(rows, shape)
    if shape[1] == 1:
        return make.where(make.reshape(rows, (shape[0], shape[2], 1)), y, 0).value
    batch, length, size = y.shape
    assert isinstance(size, int)
    parted = make.reshape(y, (batch, length, heads, size // heads))
    return make.where(make.transpose(rows, perm=HEADS_LAST), parted, 0).reshape(y.shape).value
