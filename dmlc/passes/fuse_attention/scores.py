"""The matrices of attention: queries, keys and values as rows of tokens, their scores, and the bias."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from itertools import islice
from math import inf, prod

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from dmlc.ir import DType, Node, Shape, Value, product
from dmlc.ops.binary import ADD, EQUAL, MAX
from dmlc.ops.choose import WHERE
from dmlc.ops.constant import constant_of
from dmlc.ops.elementwise import IS_NAN
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import (
    EXPAND,
    RESHAPE,
    RESHAPES,
    SQUEEZE,
    TRANSPOSE,
    UNSQUEEZE,
    ExpandAttributes,
    ReshapeAttributes,
    TransposeAttributes,
)
from dmlc.ops.normalize import SOFTMAX
from dmlc.ops.reduce import REDUCE_MAX, ReduceAttributes, axes_of
from dmlc.passes.expressions import Formulas
from dmlc.passes.patterns import both_ways, made_by, scalar_of, scaled_of
from dmlc.passes.rewrite import Miss, Rewriter, used_elsewhere

# --- Queries, keys and values as rows of tokens: the layout that ``MultiHeadAttention`` takes, behind those of a model

#: From (batch, heads, length, size) to (batch, length, heads, size), and back.
HEADS_LAST = (0, 2, 1, 3)
#: From a transposed key, (batch, heads, size, length), to (batch, length, heads, size).
KEY_HEADS_LAST = (0, 3, 1, 2)
_SAME = (0, 1, 2, 3)
#: Nodes between a product and the projection that its operand comes from.
_MOST_MOVES = 16


class Tokens(Struct, eq=False):
    """An operand of attention seen as (batch, length, heads * size).

    ``value`` is that already, or, in ``shape``, its axes are brought to (batch, length, heads, size) by ``perm``.
    ``scale`` is the product of the numbers that were passed on the way. ``nodes`` are those passed, the last one first.
    """

    value: Value
    shape: Shape
    perm: tuple[int, ...]
    scale: float
    nodes: tuple[Node, ...]

    @property
    def cost(self) -> int:
        """Operators that the layout takes: a reshape takes none."""
        return int(len(self.shape) == 4 and self.perm != _SAME)

    def build(self, rewriter: Rewriter, shape: Shape) -> Value:
        value = self.value
        if self.cost:
            value = reshaped(rewriter, value, self.shape)
            value = rewriter.add(TRANSPOSE, [value], TransposeAttributes(perm=self.perm))
        return reshaped(rewriter, value, shape)


def reshaped(rewriter: Rewriter, value: Value, shape: Shape) -> Value:
    """The value in a shape; itself where it has it."""
    return value if value.shape == shape else rewriter.add(RESHAPE, [value], ReshapeAttributes(shape=shape))


def tokens_of(value: Value, perm: tuple[int, ...], parts: Shape, shape: Shape, *, scales: bool) -> Tokens:
    """See through layout operations, and products with numbers where ``scales``.

    ``parts`` are batch and heads, the first two axes of the value; they may be one axis. ``shape`` is that of tokens.
    """
    nodes: list[Node] = []
    scale = 1.0
    seen = apart(value.shape, parts)
    for _ in range(_MOST_MOVES):
        node = value.producer
        if node is None:
            break
        scaled = scaled_of(value, in_shape=False) if scales else None
        are_parts = perm[0] == 0 and perm[2] == 1
        if scaled is not None:
            value, scale = scaled.x, scale * scaled.factor
        elif node.op is TRANSPOSE and value.type.rank == 4:
            axes = node.attributes_as(TransposeAttributes).perm
            perm, value = tuple([axes[p] for p in perm]), node.operand("x")
            seen = value.shape
        elif node.op is TRANSPOSE and len(seen) == 4 and node.attributes_as(TransposeAttributes).perm == (0, 2, 1):
            perm, value = tuple([(0, 1, 3, 2)[p] for p in perm]), node.operand("x")
            seen = (*seen[:2], seen[3], seen[2])
        elif perm == _SAME and node.op in RESHAPES and value.type.rank == 4 and node.operand("x").shape == shape:
            value = node.operand("x")
            seen = shape
        elif are_parts and node.op in RESHAPES and len(seen) == 4 and apart(node.operand("x").shape, parts) == seen:
            value = node.operand("x")
        else:
            break
        nodes.append(node)
    return Tokens(value, seen, perm, scale, tuple(nodes))


def apart(shape: Shape, parts: Shape) -> Shape:
    """The shape with batch and heads as two axes, where they may be one; itself where they are not."""
    return (*parts, *shape[1:]) if len(shape) == 3 and shape[0] == product(parts) else shape


#: Nodes between the product of query and key and the softmax.
_MOST_STEPS_TO_A_PRODUCT = 12


class Weights(Struct, eq=False):
    """A softmax. If ``is_safe``, the model replaces the weights of rows that are hidden as a whole by 0 behind it:
    where they are NaN, or where the maximum of a row of the bias ``rows`` is -inf."""

    softmax: Node
    is_safe: bool
    nodes: tuple[Node, ...]
    rows: Value | None = None


class Trail(Struct, frozen=True):
    """The way of the scores, from the softmax back: ``terms`` were added to them, outside of the factor ``scale``, and
    ``mask``, a condition and a fill, chose between the result and the fill."""

    scale: float = 1.0
    terms: tuple[Value, ...] = ()
    mask: tuple[Value, float] | None = None
    nodes: tuple[Node, ...] = ()


class Scores(Struct, frozen=True):
    """``product`` is the product of query and key."""

    product: Node
    trail: Trail


def weights_of(value: Value) -> Weights | None:
    """The softmax that the value comes from; None if it is something else."""
    softmax = made_by(value, SOFTMAX)
    if softmax is not None:
        return Weights(softmax, False, (softmax,))
    chosen = made_by(value, WHERE)
    test = None if chosen is None else made_by(chosen.operand("cond"), IS_NAN, EQUAL)
    softmax = None if chosen is None else made_by(chosen.operand("b"), SOFTMAX)
    if chosen is None or test is None or softmax is None or scalar_of(chosen.operand("a")) != 0:
        return None
    if value.shape != softmax.result.shape:
        return None
    if test.op is EQUAL:
        return _tested_rows(chosen, test, softmax)
    return Weights(softmax, True, (chosen, test, softmax)) if test.operand("x") is softmax.result else None


def _tested_rows(chosen: Node, test: Node, softmax: Node) -> Weights | None:
    """The weights with zeros where the maximum of a row of a bias is -inf."""
    for most, bound in both_ways(test):
        reduced = made_by(most, REDUCE_MAX)
        if reduced is None or scalar_of(bound) != -inf:
            continue
        rows, a = reduced.operand("x"), reduced.attributes_as(ReduceAttributes)
        if a.axes == (rows.type.rank - 1,) and a.keepdims:
            return Weights(softmax, True, (chosen, test, softmax, reduced), rows)
    return None


def why_not_weights(weights: Weights, value: Value) -> Miss | None:
    """The reason against the weights: other users, or a softmax over other axes than the last."""
    softmax = weights.softmax
    if axes_of(softmax) != (softmax.result.type.rank - 1,):
        return Miss("the softmax is not over the last axis", (), softmax.result)
    if not weights.is_safe:
        return used_elsewhere(value)
    if any(user not in weights.nodes for user in softmax.result.users):
        return Miss("the weights are used elsewhere", (), softmax.result)
    return used_elsewhere(value)


def scores_of(value: Value, shapes: Sequence[Shape]) -> Scores | Miss:
    """Read the operand of the softmax; each node between is used once and keeps the shape of the scores, which is one
    of ``shapes``: batch and heads are two axes or one."""
    return _read(value, Trail(), shapes, _MOST_STEPS_TO_A_PRODUCT)


def _read(value: Value, trail: Trail, shapes: Sequence[Shape], steps: int) -> Scores | Miss:
    node = value.producer
    if node is None or not steps:
        return Miss("the softmax is not of a product of query and key", (), value)
    if (miss := used_elsewhere(value)) is not None:
        return miss
    trail = replace(trail, nodes=(*trail.nodes, node))
    if node.op is MATMUL:
        return Scores(node, trail)
    if (scaled := scaled_of(value, in_shape=False)) is not None:
        return _scaled(scaled.x, scaled.factor, trail, shapes, steps)
    if node.op is ADD:
        return _biased(node, trail, shapes, steps)
    if node.op is WHERE and trail.mask is None:
        fill = scalar_of(node.operand("b"))
        if fill is not None and node.operand("a").shape == value.shape:
            trail = replace(trail, mask=(node.operand("cond"), float(fill)))
            return _read(node.operand("a"), trail, shapes, steps - 1)
        if scalar_of(node.operand("a")) is not None:
            return Miss("masked_fill is there, where(mask, fill, scores): where(mask, scores, fill) is read", (), value)
    if node.op in RESHAPES and node.operand("x").shape in shapes:
        return _read(node.operand("x"), trail, shapes, steps - 1)
    return Miss("{0} is between the product and the softmax", (node.op.name,), value)


def _biased(node: Node, trail: Trail, shapes: Sequence[Shape], steps: int) -> Scores | Miss:
    """Read on at the operand that leads to the product; the other one is a bias."""
    misses: list[Miss] = []
    for inner, term in both_ways(node):
        if inner.shape == node.result.shape:
            read = _read(inner, replace(trail, terms=(term, *trail.terms)), shapes, steps - 1)
            if isinstance(read, Scores):
                return read
            misses.append(read)
    return misses[0] if misses else Miss("a bias has another shape than the scores", (), node.result)


def _scaled(inner: Value, number: float, trail: Trail, shapes: Sequence[Shape], steps: int) -> Scores | Miss:
    """Read on behind a scale: nothing is added or chosen inside it."""
    read = _read(inner, Trail(trail.scale * number, nodes=trail.nodes), shapes, steps - 1)
    if isinstance(read, Miss):
        return read
    if read.trail.terms or read.trail.mask is not None:
        return Miss("a mask is inside the scale", (), inner)
    return Scores(read.product, replace(read.trail, terms=trail.terms, mask=trail.mask))


# --- The bias of attention: what is added to the scores, in the shape and with the elements that the kernel takes

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
