"""Variances and deviations that no fused operator takes: what is counted and scaled, in as few nodes as can be."""

from __future__ import annotations

from math import isfinite, sqrt

import numpy as np
from msgspec import Struct

from dmlc.ir import DType, Graph, Node, Operation, Value, product
from dmlc.ir.dtype import f16
from dmlc.ops.binary import DIV, MUL, POW
from dmlc.ops.constant import CONSTANT
from dmlc.ops.elementwise import SQRT
from dmlc.ops.move import RESHAPES
from dmlc.ops.reduce import (
    REDUCE_L2,
    REDUCE_MEAN,
    REDUCE_SUM,
    REDUCE_SUM_SQUARE,
    ReduceAttributes,
    axes_of,
    reduction_of,
)
from dmlc.passes.canonicalize_reduce.kinds import reduce_to
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.layouts import ones_between
from dmlc.passes.lowering import KEEP, Lowered, simplifies
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.normal_form import base_of
from dmlc.passes.patterns import Seen, scaled_of, square_of
from dmlc.passes.rewrite import Miss

_SUMS = (REDUCE_MEAN, REDUCE_SUM, REDUCE_SUM_SQUARE)
#: The root of the sum of so many squares of f16 is an f16, whatever they are.
_MOST_HALVES = 1 << 15


class _Statistic(Struct, frozen=True):
    """A reduction times ``factor``. ``steps`` are the nodes behind it; ``largest`` is the largest factor on the way.

    ``x`` is what is reduced or, with ``square``, what is squared by that node before. ``count`` is how many elements
    are reduced to one, where that is known. ``shared`` says that others use the reduction too.
    """

    reduction: Node
    steps: tuple[Node, ...]
    x: Value
    square: Node | None
    count: int | None
    factor: float
    largest: float
    shared: bool

    @property
    def axes(self) -> tuple[int, ...]:
        return axes_of(self.reduction)

    @property
    def of_squares(self) -> bool:
        return self.square is not None or self.reduction.op is REDUCE_SUM_SQUARE

    @property
    def of_sum(self) -> float | None:
        """The factor where the reduction is taken as a sum."""
        if self.reduction.op is not REDUCE_MEAN:
            return self.factor
        return self.factor / self.count if self.count else None

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All that computes it, without what others use."""
        inner = () if self.shared else (self.reduction,) if self.square is None else (self.reduction, self.square)
        return (*self.steps, *inner)

    def fits_as_sum(self) -> bool:
        """Return whether the sum stays below the largest intermediate value, if it may overflow the dtype."""
        if self.reduction.result.type.dtype is not f16 or self.reduction.op is not REDUCE_MEAN:
            return True
        return self.count is not None and self.largest >= self.count * 0.99


def _statistic(value: Value, graph: Graph, root: Node) -> _Statistic | None:
    """The scaled sum or mean that the value is; moves of axes of size 1 may stand between."""
    steps: list[Node] = []
    factors: list[float] = []
    while True:
        node = value.producer
        if node is None:
            return None
        if node.op in _SUMS:
            break
        if node is not root and not value.is_used_once:
            return None
        if node.op in (MUL, DIV):
            scaled = scaled_of(value)
            if scaled is None or not (scaled.number and isfinite(scaled.number)):
                return None
            inner = scaled.x
            factors.append(scaled.factor)
        elif node.op in RESHAPES and node is not root:
            inner = node.operand("x")
            if ones_between(graph, inner.shape, value.shape) is None:
                return None
        else:
            return None
        steps.append(node)
        value = inner
    axes = axes_of(node)
    count = product([node.operand("x").shape[a] for a in axes])
    if not axes:
        return None
    total = largest = 1.0
    for factor in reversed(factors):
        total *= factor
        largest = max(largest, abs(total))
    shared = node is not root and not value.is_used_once
    seen: Seen = []
    x = None if node.op is REDUCE_SUM_SQUARE else square_of(node.operand("x"), seen)
    if x is not None and not node.operand("x").is_used_once:
        x = None
    square = seen[0] if x is not None else None
    counted = count if isinstance(count, int) else None
    return _Statistic(node, tuple(steps), x or node.operand("x"), square, counted, total, largest, shared)


def _is_one(factor: float, dtype: DType) -> bool:
    return abs(factor - 1) <= 4 * float(np.finfo(dtype.numpy).eps)


def _holds(factor: float, dtype: DType) -> bool:
    """Return whether the factor and its reciprocal are normal numbers of the dtype."""
    tiny = float(np.finfo(dtype.numpy).tiny)
    return tiny <= abs(factor) <= 1 / tiny


def _scaled(value: Term, factor: float) -> Term:
    """The value times the factor; over a whole number where the factor is one over that."""
    if _is_one(factor, value.dtype):
        return value
    below = round(1 / factor)
    return value / below if abs(factor) < 1 and abs(below * factor - 1) < 1e-12 else value * factor


def _is_computed(e: Sketch, dtype: DType) -> bool:
    """Return whether the target computes the dtype as it is: elsewhere a new node would stand between two casts."""
    return dtype.is_float and (e.target.target.native_f16 or dtype is not f16)


@simplifies(MUL, DIV, fed_by=(CONSTANT,), gives=REASSOCIATES)
def scaled_statistic(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """A sum or mean times and over constants, as an unbiased variance is written, becomes one reduction and at most
    one factor.

    reduce_mean(d * d) * n / (n - 1) is reduce_sum_square(d) / (n - 1). ``reassociates``: constants are multiplied
    first, and a mean becomes its sum. In f16 this is done only if a sum as large was computed before, too.
    """
    dtype = node.result.type.dtype
    found = _statistic(node.result, e.graph, node) if _is_computed(e, dtype) and not _is_scaled_on(node) else None
    plan = None if found is None or any(n.op in RESHAPES for n in found.steps) else _plan(found)
    if found is None or plan is None:
        return KEEP
    e.taken += [n for n in found.nodes if n is not node]
    op, factor = plan
    if not _holds(factor, dtype):
        return Miss("the factor {0:g} is out of the range of {1}", (factor, dtype))
    if op is None:
        return _scaled(e.of(found.reduction.result), factor)
    if op is not REDUCE_MEAN and not found.fits_as_sum():
        return Miss("the sum of {0} f16 may overflow where their mean does not", (found.count,), found.x)
    x = found.x if op is REDUCE_SUM_SQUARE else found.reduction.operand("x")
    return _scaled(e(op, x, attributes=found.reduction.attributes), factor)


def _plan(found: _Statistic) -> tuple[Operation | None, float] | None:
    """The cheapest form, where it takes fewer nodes than there are; None where there is none. The operation is None
    where the reduction stays as it is."""
    dtype, factor, of_sum = found.reduction.result.type.dtype, found.factor, found.of_sum
    if found.shared or of_sum is None:
        return (None, factor) if len(found.steps) > 1 else None
    if found.reduction.op is REDUCE_SUM and len(found.steps) == 1:
        return None  # mean-from-sum and sum-of-squares say it
    if found.of_squares:
        op, factor = REDUCE_SUM_SQUARE, of_sum
    elif _is_one(of_sum, dtype):
        op, factor = REDUCE_SUM, of_sum
    elif found.count is not None and _is_one(of_sum * found.count, dtype):
        op, factor = REDUCE_MEAN, 1.0
    else:
        op = reduction_of(found.reduction)
    made = 1 + (not _is_one(factor, dtype))
    return (op, factor) if made < len(found.nodes) else None


def _is_scaled_on(node: Node) -> bool:
    """Return whether another constant scales the result, so that the rule matches there instead."""
    users = node.result.users if node.result.is_used_once else []
    return bool(users) and len(users[0].results) == 1 and scaled_of(users[0].result) is not None


@simplifies(
    *(SQRT, POW),
    fed_by=(REDUCE_MEAN, REDUCE_SUM, REDUCE_SUM_SQUARE, *RESHAPES, MUL, DIV),
    gives=REASSOCIATES,
)
def root_of_statistic(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """The root of a mean, or of a scaled sum, of squares becomes reduce_l2 and at most one factor.

    sqrt(reduce_mean(d * d) * n / (n - 1)) is reduce_l2(d) times one over the root of n - 1. ``reassociates``: the
    factor leaves the root. Axes of size 1 that were put back in between are kept instead.
    """
    dtype = node.result.type.dtype
    under = base_of(node.result, 0.5, []) if _is_computed(e, dtype) else None
    found = None if under is None else _statistic(under, e.graph, node)
    if found is None or found.shared or not found.of_squares or found.of_sum is None or found.of_sum <= 0:
        return KEEP
    factor = sqrt(found.of_sum)
    # The rule root-of-squares takes the root of a sum of squares that nothing scales.
    if not found.steps and (found.reduction.op is REDUCE_SUM_SQUARE or _is_one(factor, dtype)):
        return KEEP
    e.taken += found.nodes
    if not _holds(factor, dtype):
        return Miss("the factor {0:g} is out of the range of {1}", (factor, dtype))
    if dtype is f16 and (found.count is None or found.count > _MOST_HALVES):
        return Miss("the root of the sum of that many squares may be too large for f16", (), found.x)
    record = ReduceAttributes(axes=found.axes, keepdims=True)
    return _scaled(e.of(reduce_to(e, REDUCE_L2, found.x, record, node.result.shape)), factor)
