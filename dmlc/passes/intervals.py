"""Intervals of the elements of values, from dtypes, bounds and operations.

Every element lies in its interval, or is NaN, if no NaN or infinity is fed, and none is made by operations without a
rule here; without ``finite`` for whatever is fed. An end is infinite if an operation may overflow: an interval with
finite ends is a proof that none does.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from dmlc.ir import Dim, DimExpr, DType, Graph, Node, Operation, Value, product
from dmlc.ir.tensor import StoredTensor, Tensor
from dmlc.ops import binary as b
from dmlc.ops import elementwise as e
from dmlc.ops import move as m
from dmlc.ops import normalize, reduce, select
from dmlc.ops.choose import CAST, CLIP, WHERE, CastAttributes, ClipAttributes
from dmlc.ops.constant import CONSTANT, ConstantAttributes
from dmlc.ops.index import (
    FULL,
    GATHER,
    GATHER_ELEMENTS,
    IOTA,
    ONE_HOT,
    SCATTER_ELEMENTS,
    FullAttributes,
    IotaAttributes,
    OneHotAttributes,
)
from dmlc.ops.opaque import OPAQUE, is_opaque
from dmlc.ops.reduce import axes_of
from dmlc.ops.scan import CUMSUM, ScanAttributes
from dmlc.passes.patterns import scalar_of

#: The lowest and highest element.
Interval: TypeAlias = tuple[float, float]
#: Gives the interval of a node's result from the intervals of its operands.
_Rule: TypeAlias = Callable[["Intervals", Node, Sequence[Interval]], Interval]

INF = math.inf
EVERYTHING: Interval = (-INF, INF)
#: Ends that no float rounds.
_AS_THEY_ARE = (0.0, -INF, INF)
#: Larger constants are not read.
_MOST_READ = 1 << 20
#: The ends of an interval do not separate integers beyond this.
_EXACT = 2.0**53
#: With more terms than this a sum in f32 is only known to be less than twice what it should be: a term changes the sum
#: by at most twice itself.
_MANY = 1 << 20
#: No tensor has more elements: a process addresses no more bytes.
_MOST_COUNTED = float(2**47)
#: Units in the last place by which the functions of a kernel may be off, generously.
_UNITS = 8


class Intervals:
    """The intervals of a graph's values, worked out when they are asked for, and kept."""

    def __init__(
        self, graph: Graph, *, trusts: bool = True, finite: bool = True, counted: float = _MOST_COUNTED
    ) -> None:
        """``trusts`` the ranges that inputs promise. Without ``finite``, infinities may be fed and made. No tensor has
        more elements than are ``counted``."""
        self.graph = graph
        self.counted = counted
        self.ranges: dict[str, tuple[int | float, int | float]] = graph.ranges if trusts else {}
        self._whole = of_dtype if finite else _anything
        self._known: dict[Value, Interval] = {}

    def of(self, value: Value) -> Interval:
        """The interval of a value. Linear in what it depends on; nothing recurses."""
        known, pending = self._known, [value]
        while pending:
            top = pending[-1]
            if top in known:
                pending.pop()
                continue
            node = top.producer
            if node is None and top.name in self.ranges:
                low, high = self.ranges[top.name or ""]
                known[top] = (float(low), float(high))
                continue
            rule = None if node is None else _rule_of(node, top)
            if node is None or rule is None:
                bounds = None if node is None else _BOUNDS.get(node.op)
                dtype = top.type.dtype
                known[top] = self._whole(dtype) if bounds is None else fitted(bounds, dtype)
                continue
            operands = [v for v in node.operands if v is not None]
            found = [known[v] for v in operands if v in known]
            if EVERYTHING in found and node.op in _OPEN_WITH_OPERAND and not _is_square(node):
                known[top] = EVERYTHING  # whatever the others are
            elif len(found) == len(operands):
                known[top] = fitted(rule(self, node, found), top.type.dtype)
            else:
                pending.append(next(v for v in operands if v not in known))
        return self._known[value]

    def promised_of(self, value: Value) -> Interval | None:
        """The interval of a value that promised ranges decide; None where it is computed from no promised input."""
        return self.of(value) if self.promised(value) else None

    def promised(self, value: Value) -> tuple[str, ...]:
        """The inputs with a promised range that the value is computed from, in the order of the model."""
        if not self.ranges:
            return ()
        seen, pending = {value}, [value]
        while pending:
            node = pending.pop().producer
            for operand in node.operands if node is not None else ():
                if operand is not None and operand not in seen:
                    seen.add(operand)
                    pending.append(operand)
        return tuple([v.name or "" for v in self.graph.inputs if v in seen and v.name in self.ranges])

    def most(self, node: Node) -> float:
        """The most elements that a reduction takes together; infinite where the sizes have no bound."""
        axes, x = axes_of(node), node.operand("x")
        return float(self.graph.dims.interval(product([x.shape[axis] for axis in axes]))[1])


class RangedRule:
    """A rule that asks for intervals. The intervals of the graph at work are kept. ``trusts`` the promises of inputs:
    a rule that is right without them, and better with them."""

    trusts = False
    _intervals: Intervals | None = None

    def interval(self, value: Value, graph: Graph) -> Interval:
        """Return the interval of a value."""
        if self._intervals is None or self._intervals.graph is not graph:
            self._intervals = Intervals(graph, trusts=self.trusts)
        return self._intervals.of(value)

    def is_positive(self, value: Value, graph: Graph) -> bool:
        """Return whether every element of integers is 1 or more."""
        return self.interval(value, graph)[0] >= 1


@cache
def of_dtype(dtype: DType) -> Interval:
    """All that a dtype holds but infinities; everything for one that the language lacks."""
    if dtype.is_float:
        top = float(np.finfo(dtype.numpy).max)
        return (-top, top)
    if dtype.is_integer:
        return (float(dtype.lowest), float(dtype.highest))
    return (0.0, 1.0) if dtype.kind == "bool" else EVERYTHING


def _anything(dtype: DType) -> Interval:
    """Return the interval of an operation that may overflow."""
    return EVERYTHING if dtype.is_float else of_dtype(dtype)


def fitted(interval: Interval, dtype: DType) -> Interval:
    """Return the interval of an exact interval converted to the dtype: integers wrap, floats become infinite."""
    low, high = interval
    whole = of_dtype(dtype)
    if math.isnan(low) or math.isnan(high) or low > high:
        return _anything(dtype)
    if not dtype.is_float:
        wraps = low < whole[0] or whole[1] < high or max(-low, high) > _EXACT
        return whole if wraps else interval
    return (-INF if low < whole[0] else low, INF if high > whole[1] else high)


def _wider(interval: Interval, dtype: DType, units: float = _UNITS) -> Interval:
    """A little more, for what rounding does, which changes no sign; integers are exact."""
    if not dtype.is_float:
        return interval
    limits = np.finfo(dtype.numpy)
    eps, least = float(limits.eps) * units, float(limits.smallest_subnormal) * units
    low, high = interval
    below, above = low - abs(low) * eps - least, high + abs(high) * eps + least
    return (max(below, 0.0) if low >= 0 else below, min(above, 0.0) if high <= 0 else above)


def _times(x: float, y: float) -> float:
    return 0.0 if x == 0 or y == 0 else x * y


def _corners(function: Callable[[float, float], float], x: Interval, y: Interval) -> Interval:
    found = [function(p, q) for p in x for q in y]
    return (min(found), max(found))


def _squared(x: Interval) -> Interval:
    low, high = x
    ends = (low * low, high * high)
    return (0.0 if low <= 0 <= high else min(ends), max(ends))


# --- the rules


def _first(_: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    """Elements are moved or picked, not computed."""
    return x[0]


def _any_of(_: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    return _hull(x)


def _hull(found: Sequence[Interval]) -> Interval:
    return (min(x[0] for x in found), max(x[1] for x in found)) if found else EVERYTHING


def _constant(_: Intervals, node: Node, __: Sequence[Interval]) -> Interval:
    return _of_data(node.attributes_as(ConstantAttributes).value)


def _of_data(data: Tensor) -> Interval:
    whole = of_dtype(data.dtype) if data.dtype.is_integer else _anything(data.dtype)
    # Data in a file of its own is not read for this, nor is much of it.
    if (isinstance(data, StoredTensor) and data.is_apart) or data.size > _MOST_READ or data.size == 0:
        return whole
    array = data.array
    if data.dtype.is_float:
        array = array[~np.isnan(array)]
        if array.size == 0:
            return whole
    low, high = float(array.min()), float(array.max())
    if data.dtype.is_integer and max(-low, high) >= _EXACT:  # it may have been rounded: outwards
        return (np.nextafter(low, -INF), np.nextafter(high, INF))
    return (low, high)


def _cast(_: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    have, to = node.operand("x").type.dtype, node.attributes_as(CastAttributes).to
    if not to.is_float and have.is_float and not _is_of_integers(node.operand("x")):
        return of_dtype(to)  # NaN may become any integer
    if to.kind == "bool":
        return (0, 1)
    return x[0] if not to.is_float else _rounded(x[0], to)


def _is_of_integers(value: Value) -> bool:
    """Return whether the elements were integers before a cast: none is NaN."""
    node = value.producer
    while node is not None and _rule_of(node, value) is _first:
        value = node.operand(0)
        node = value.producer
    return node is not None and node.op is CAST and node.operand("x").type.dtype.is_integer


def _rounded(x: Interval, to: DType) -> Interval:
    """Return the interval after rounding exact ends, which keeps the order; f16 may be rounded twice, through f32."""
    if not to.is_float or (x[0] in _AS_THEY_ARE and x[1] in _AS_THEY_ARE):
        return x
    with np.errstate(all="ignore"):
        exact = np.asarray(x, np.float64)
        ends = [exact.astype(to.numpy), exact.astype(np.float32).astype(to.numpy)][: 2 if to.bits == 16 else 1]
        return (float(min(e[0] for e in ends)), float(max(e[1] for e in ends)))


def _add(_: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    (a, c), (p, q) = x
    return _rounded((a + p, c + q), node.result.type.dtype)


def _sub(self: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    (a, c), (p, q) = x
    if node.operand("a") is node.operand("b") and math.isfinite(a) and math.isfinite(c):
        return (0.0, 0.0)
    exact = (a - q, c - p)
    divisor = _divisor_of_remainder(node)
    if divisor is not None:  # a - a / b * b has the sign of a, and is nearer to 0 than b
        most = max(map(abs, self.of(divisor))) - 1
        exact = (max(exact[0], -most if a < 0 else 0.0), min(exact[1], most if c > 0 else 0.0))
    return _rounded(exact, node.result.type.dtype)


def _divisor_of_remainder(node: Node) -> Value | None:
    """The divisor ``b`` if the node is ``a - a / b * b`` of integers: their quotient truncates."""
    product = node.operand("b").producer
    if product is None or product.op is not b.MUL or not node.result.type.dtype.is_integer:
        return None
    for name, other in (("a", "b"), ("b", "a")):
        quotient, divisor = product.operand(name).producer, product.operand(other)
        if quotient is not None and quotient.op is b.DIV and quotient.operands == (node.operand("a"), divisor):
            return divisor
    return None


def _is_square(node: Node) -> bool:
    return node.op is b.MUL and node.operand("a") is node.operand("b")


def _mul(_: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    exact = _squared(x[0]) if _is_square(node) else _corners(_times, x[0], x[1])
    return _rounded(exact, node.result.type.dtype)


def _div(_: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    dtype, (low, high) = node.result.type.dtype, x[1]
    if low <= 0 <= high:
        return _anything(dtype)
    exact = _corners(lambda p, q: 0.0 if math.isinf(q) else p / q, x[0], x[1])
    if not all(map(math.isfinite, exact)):
        return exact if dtype.is_float else _anything(dtype)
    return _wider(exact, dtype, 1) if dtype.is_float else (math.floor(exact[0]), math.ceil(exact[1]))


def _floordiv(_: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    """Bound quotients of integers that are not negative by positive ones; others are not looked at."""
    dtype = node.result.type.dtype
    if not dtype.is_integer or x[0][0] < 0 or x[1][0] <= 0:
        return _anything(dtype)
    return (0.0, x[0][1])


def _mod(_: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    """A remainder has the divisor's sign, and is nearer to 0 than it."""
    dtype, (low, high) = node.result.type.dtype, x[1]
    if not dtype.is_integer or low <= 0 <= high:
        return _anything(dtype)
    return (0.0, high - 1) if low > 0 else (low + 1, 0.0)


def _iota(known: Intervals, node: Node, __: Sequence[Interval]) -> Interval:
    """Numbers from 0 on, which wrap where the dtype is too small for them."""
    a = node.attributes_as(IotaAttributes)
    return (0.0, max(_size(a.length, a.dtype, known)[1], 0.0))


def _reciprocal(_: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    low, high = x[0]
    if low <= 0 <= high:
        return EVERYTHING
    return _wider((1 / high, 1 / low), node.result.type.dtype)


def _pow(_: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    power, dtype = scalar_of(node.operand("b")), node.result.type.dtype
    if power == 2:
        return _wider(_squared(x[0]), dtype)
    if power == 1:
        return _wider(x[0], dtype)
    if power is None or not 0 < power < 64 or x[0][0] < 0:
        return _anything(dtype)
    return _wider(_rising(lambda end: end ** float(power))(x[0]), dtype)


def _rising(function: Callable[[float], float]) -> Callable[[Interval], Interval]:
    """A function that keeps the order."""

    def ends(x: Interval) -> Interval:
        out = []
        for end in x:
            try:
                out.append(function(end))
            except OverflowError:
                out.append(INF)
        return (out[0], out[1])

    return ends


def _whole(function: Callable[[float], int]) -> _Rule:
    ends = _rising(lambda end: end if math.isinf(end) else float(function(end)))
    return lambda _, node, x: _wider(ends(x[0]), node.result.type.dtype, 0)


def _exp(_: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    return _wider(_rising(math.exp)(x[0]), node.result.type.dtype)


def _sqrt(_: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    low, high = (math.sqrt(max(end, 0.0)) for end in x[0])
    return _wider((low, high), node.result.type.dtype, 1)


def _abs(_: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    low, high = x[0]
    return (0.0 if low <= 0 <= high else min(abs(low), abs(high)), max(abs(low), abs(high)))


def _neg(_: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    return (-x[0][1], -x[0][0])


def _relu(_: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    return (max(x[0][0], 0.0), max(x[0][1], 0.0))


def _min(_: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    return (min(x[0][0], x[1][0]), min(x[0][1], x[1][1]))


def _max(_: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    return (max(x[0][0], x[1][0]), max(x[0][1], x[1][1]))


def clip_bounds(node: Node) -> Interval:
    """Return the bounds of a clip; an end is infinite where it has none."""
    a, dtype = node.attributes_as(ClipAttributes), node.result.type.dtype
    least, most = (None if v is None else float(np.asarray(v).astype(dtype.numpy)) for v in (a.min, a.max))
    return (-INF if least is None else least, INF if most is None else most)


def _clip(_: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    low, high = x[0]
    least, most = clip_bounds(node)
    return (min(max(low, least), most), min(max(high, least), most))


def _where(_: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    return _hull(x[1:])


def _scatter(_: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    return _hull([x[0], x[2]])


def _cumsum(self: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    """Sums of one to all elements of the axis, or of none."""
    length = float(self.graph.dims.interval(node.operand("x").shape[node.attributes_as(ScanAttributes).axis])[1])
    (low, high), dtype = x[0], node.result.type.dtype
    return _wider((min(_times(low, length), low, 0.0), max(_times(high, length), high, 0.0)), dtype, length)


def _pad(_: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    value = float(node.attributes_as(m.PadAttributes).value)
    return _hull([x[0], _rounded((value, value), node.result.type.dtype)])


def _size(size: Dim, dtype: DType, known: Intervals) -> Interval:
    """The interval of a size as a number. Every size fits integers of 32 bits and more: the language says so."""
    low, high = known.graph.dims.interval(size)
    if dtype.is_integer and dtype.bits >= 32:
        low, high = max(low, dtype.lowest), min(high, dtype.highest, _EXACT)
    return _rounded((float(low), float(high)), dtype)


def _full(known: Intervals, node: Node, __: Sequence[Interval]) -> Interval:
    a = node.attributes_as(FullAttributes)
    if isinstance(a.value, DimExpr):
        return _size(a.value, a.dtype, known)
    value = float(np.asarray(a.value).astype(a.dtype.numpy))
    return (value, value)


def _one_hot(_: Intervals, node: Node, __: Sequence[Interval]) -> Interval:
    a: Any = node.attributes_as(OneHotAttributes)
    ends = [float(np.asarray(v).astype(a.dtype.numpy)) for v in (a.on, a.off)]
    return (min(ends), max(ends))


# --- reductions


def _sum(self: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    return _total(self, node, x[0])


def _total(self: Intervals, node: Node, term: Interval) -> Interval:
    """The sum of up to so many terms, or of none."""
    most = self.most(node)
    ends = (_times(min(term[0], 0.0), most), _times(max(term[1], 0.0), most))
    return _accumulated(ends, node.result.type.dtype, most)


def _accumulated(exact: Interval, dtype: DType, most: float) -> Interval:
    """Return the interval of a rounded sum or mean of at most ``most`` terms; f16 is accumulated in f32."""
    if not dtype.is_float:
        return exact
    if most > _MANY:
        return (2 * min(exact[0], 0.0), 2 * max(exact[1], 0.0))
    size = max(abs(exact[0]), abs(exact[1]))
    slack = 0.0 if math.isinf(size) else size * (most * 2.0**-23 + _UNITS * float(np.finfo(dtype.numpy).eps))
    low, high = exact[0] - slack, exact[1] + slack
    return (max(low, 0.0) if exact[0] >= 0 else low, min(high, 0.0) if exact[1] <= 0 else high)


def _mean(self: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    if not node.result.type.dtype.is_float:
        return (min(x[0][0], 0.0), max(x[0][1], 0.0))
    return _accumulated(x[0], node.result.type.dtype, self.most(node))


def _sum_square(self: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    return _total(self, node, _squared(x[0]))


def _l1(self: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    return _total(self, node, _abs(self, node, x))


def _l2(self: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    return _sqrt(self, node, [_total(self, node, _squared(x[0]))])


def _extreme(self: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    """Return the interval of a max or min: the whole dtype if it may reduce no elements."""
    dims, axes = self.graph.dims, axes_of(node)
    if any(dims.promises_empty(node.operand("x").shape[axis]) for axis in axes):
        return _anything(node.result.type.dtype)
    return x[0]


def _rule_of(node: Node, value: Value) -> _Rule | None:
    if node.op is select.TOP_K:
        return _indices if value.index == 1 else _first
    rule = _RULES.get(node.op)
    if rule is not None or node.op is not OPAQUE:
        return rule
    if any(is_opaque(node, name) for name in _COUNTING):
        return _indices
    return _first if any(is_opaque(node, name) for name in _PICKING) else None


#: ONNX operators that move or pick elements of their first operand: of sizes that are not known, they are opaque.
_PICKING = ("Reshape", "Expand", "Transpose", "Squeeze", "Unsqueeze", "Slice", "Split", "Gather", "GatherElements",
            "GatherND", "Compress", "Tile", "Identity")  # fmt: skip
#: ONNX operators whose results are positions and sizes.
_COUNTING = ("Shape", "Size", "NonZero", "ArgMax", "ArgMin")


def _indices(self: Intervals, node: Node, x: Sequence[Interval]) -> Interval:
    """Places along the axes that are searched together."""
    most = min(float(node.results[-1].type.dtype.highest), self.counted)
    if node.op is OPAQUE:
        return (0.0, most)
    a: Any = node.attributes
    axes = (a.axis,) if node.op is select.TOP_K else a.axes
    places = self.graph.dims.interval(product([node.operand("x").shape[axis] for axis in axes]))[1] - 1
    return (0.0, max(min(most, float(places)), 0.0))


_TRUTH = (b.EQUAL, b.NOT_EQUAL, b.LESS, b.LESS_EQUAL, b.GREATER, b.GREATER_EQUAL)
_RULES: dict[Operation, _Rule] = {
    CONSTANT: _constant, CAST: _cast, CLIP: _clip, WHERE: _where, FULL: _full, IOTA: _iota, ONE_HOT: _one_hot,
    b.ADD: _add, b.SUB: _sub, b.MUL: _mul, b.DIV: _div, b.FLOORDIV: _floordiv, b.MOD: _mod,
    b.POW: _pow, b.MIN: _min, b.MAX: _max,
    e.ABS: _abs, e.NEG: _neg, e.EXP: _exp, e.SQRT: _sqrt, e.RECIPROCAL: _reciprocal, e.RELU: _relu,
    e.FLOOR: _whole(math.floor), e.CEIL: _whole(math.ceil), e.ROUND: _whole(round),
    select.ARGMAX: _indices, select.ARGMIN: _indices,
    CUMSUM: _cumsum,
    m.RESHAPE: _first, m.TRANSPOSE: _first, m.SQUEEZE: _first, m.UNSQUEEZE: _first, m.EXPAND: _first, m.SLICE: _first,
    m.CONCAT: _any_of, m.PAD: _pad, m.TILE: _first, GATHER: _first, GATHER_ELEMENTS: _first, SCATTER_ELEMENTS: _scatter,
    reduce.REDUCE_SUM: _sum, reduce.REDUCE_MEAN: _mean, reduce.REDUCE_SUM_SQUARE: _sum_square,
    reduce.REDUCE_L1: _l1, reduce.REDUCE_L2: _l2, reduce.REDUCE_MAX: _extreme, reduce.REDUCE_MIN: _extreme,
}  # fmt: skip
#: Operations on floats of which one operand without bounds decides that the result has none.
_OPEN_WITH_OPERAND = frozenset((b.ADD, b.SUB, b.MUL, b.DIV, e.NEG, reduce.REDUCE_SUM, reduce.REDUCE_MEAN))
#: Intervals that no operand decides.
_BOUNDS: dict[Operation, Interval] = {
    **{op: op.bounds for op in e.UNARY if op not in _RULES},
    **dict.fromkeys((normalize.SOFTMAX, select.HARDMAX, *_TRUTH), (0.0, 1.0)),
}
