"""``hoist``: what can be done after a reduction is done after it, to fewer elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from dmlc.ir import DType, Graph, Node, Operation, StoredTensor, Tensor, Value, product
from dmlc.ir.dtype import f16
from dmlc.ops.binary import ADD, DIV, MAX, MIN, MUL, SUB
from dmlc.ops.choose import CAST, CLIP
from dmlc.ops.constant import constant_of
from dmlc.ops.elementwise import ERF, NEG, RELU, SIGMOID, SOFTSIGN, TANH, UNARY
from dmlc.ops.matmul import MATMUL
from dmlc.ops.move import EXPAND
from dmlc.ops.normalize import SOFTMAX
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, title_of
from dmlc.ops.reduce import (
    DUALS,
    EXTREMES,
    REDUCE_LOG_SUM_EXP,
    REDUCE_MEAN,
    REDUCE_SUM,
    REDUCTIONS,
    ReduceAttributes,
    axes_of,
)
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.fold_constants.layouts import MOVE_RULES
from dmlc.passes.fuse_selection import name_of, why_no_extreme, why_order_may_not_turn
from dmlc.passes.intervals import Intervals
from dmlc.passes.layouts import is_unit
from dmlc.passes.lowering import KEEP, Lowered, simplifies
from dmlc.passes.manager import EXACT, RANGE, REASSOCIATES, PassContext
from dmlc.passes.patterns import made_by, may_be_empty
from dmlc.passes.repair.norms import find_gelu
from dmlc.passes.rewrite import Miss, RewritePass, Rule, rules_of, used_elsewhere

# --- Matchers of a reduction with the operation before it

_Numbers: TypeAlias = "np.ndarray[Any, Any]"
#: Elementwise operations of two operands that rules take apart.
_PAIRS = (ADD, SUB, MUL, DIV, MIN, MAX)

#: Operations that runtimes compute together with the node before them, at no cost.
_ABSORBED = frozenset((RELU, CLIP, SIGMOID, TANH, ADD))
_ABSORBING = frozenset(("Conv", "ConvTranspose", "Gemm", "BatchNormalization", "InstanceNormalization"))


class Split(Struct, frozen=True):
    """The elementwise ``node`` before the reduction ``root``, its operand ``x``, and of two operands the one that is
    the same for all that is reduced, or a constant.

    ``varies`` is a reduced axis along which ``fixed`` is not the same: then nothing can be hoisted. ``first`` is true
    if ``x`` is the first operand.
    """

    root: Node
    node: Node
    x: Value
    fixed: Value | None = None
    first: bool = True
    varies: int | None = None

    @property
    def number(self) -> _Numbers | None:
        """The numbers of a constant ``fixed``."""
        tensor = constant_of(self.fixed)
        return None if tensor is None else tensor.array

    @property
    def record(self) -> ReduceAttributes:
        return self.root.attributes_as(ReduceAttributes)

    @property
    def dropped(self) -> tuple[int, ...]:
        """The axes of ``fixed`` that the reduction takes out."""
        if self.fixed is None or self.record.keepdims:
            return ()
        offset = self.node.result.type.rank - self.fixed.type.rank
        return tuple([a - offset for a in self.record.axes if a >= offset])

    def hoisted(self, e: Sketch, op: Operation, numbers: _Numbers | None = None) -> Term:
        """The elementwise operation after ``op`` over the same axes, with these numbers in the place of a constant."""
        offset = self.node.result.type.rank - self.x.type.rank
        axes = tuple([a - offset for a in self.record.axes])
        total, fixed = e(op, self.x, attributes=replace(self.record, axes=axes)), self.fixed
        if fixed is None:
            return e(self.node.op, total, attributes=self.node.attributes)
        numbers = self.number if numbers is None and self.dropped else numbers
        other = fixed if numbers is None else np.squeeze(numbers, axis=self.dropped)
        return e(self.node.op, *((total, other) if self.first else (other, total)), attributes=self.node.attributes)


def _split(e: Sketch, root: Node, *ops: Operation) -> Split | None:
    """The elementwise operation before a reduction, if it is one of ``ops``, whose work is taken over."""
    return None if e.made_by(root.operand("x"), *ops) is None else _split_of(e.graph, root)


def _split_of(graph: Graph, root: Node) -> Split | None:
    """An operation of one operand, or of two: then one is the same along all reduced axes, or at least a constant."""
    inner, axes = root.operand("x").producer, axes_of(root)
    assert inner is not None
    if inner.op not in _PAIRS:
        return Split(root, inner, inner.operand("x"))
    rank, a, b = inner.result.type.rank, inner.operand("a"), inner.operand("b")
    for x, fixed in ((a, b), (b, a)) if axes else ():
        if _varies(x, axes, rank, graph, everywhere=True) is None:
            varies = _varies(fixed, axes, rank, graph)
            if varies is None or (constant_of(fixed) is not None and constant_of(x) is None):
                return Split(root, inner, x, fixed, x is a, varies)
    return None


def _varies(value: Value, axes: Sequence[int], rank: int, graph: Graph, *, everywhere: bool = False) -> int | None:
    """Return an axis along which the value has more than one element. With ``everywhere``: an axis along which it has
    only one."""
    offset = rank - value.type.rank
    for axis in axes:
        long = axis >= offset and not is_unit(graph, value.shape[axis - offset])
        if long is not everywhere:
            return axis
    return None


def _why_not_hoisted(split: Split) -> Miss | None:
    """The reasons that all rules share."""
    node, fixed = split.node, split.fixed
    if fixed is not None and split.varies is not None:
        return Miss("{0} varies along axis {1}, which is reduced", (name_of(fixed), split.varies), fixed)
    absorbed = _why_absorbed(node, split.x)
    if absorbed is not None:
        return absorbed
    if fixed is not None and split.dropped and constant_of(fixed) is None:
        return Miss("{0} would have to be squeezed, one node more", (name_of(fixed),), fixed)
    return used_elsewhere(node.result)


def _why_absorbed(node: Node, x: Value) -> Miss | None:
    """The reason against moving an elementwise node that costs nothing where it stands, behind what makes ``x``."""
    producer = x.producer
    if node.op in _ABSORBED and producer is not None and producer.results[0].is_used_once and _absorbs(producer):
        return Miss("{0} is computed together with the {1} before it", (node.op.name, title_of(producer)), node.result)
    return None


def _absorbs(node: Node) -> bool:
    return node.op is MATMUL or (node.op is OPAQUE and node.attributes_as(OpaqueAttributes).op_type in _ABSORBING)


# --- Operations with constants, one after another, that are one operation with one constant

_Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"
#: A constant of more elements is not computed: the model would hold it beside those that others need.
_MOST_ELEMENTS = 1 << 22
#: A sum of floats smaller than this part of its larger term has lost the digits that rounded ``x + c`` before.
_LEAST_SUM = 0.5


class _ConstantStep(Struct, frozen=True):
    """``x + c``, or ``c - x`` where it is ``inverted``; ``x * c``, or ``c / x``."""

    node: Node
    x: Value
    constant: Tensor
    inverted: bool

    def wide(self) -> _Array:
        """``c``, floats as f64: the reciprocal of a divisor, a negated subtrahend."""
        op, array = self.node.op, self.constant.array
        wide = array.astype(np.float64) if array.dtype.kind == "f" else array
        if self.inverted or op is ADD or op is MUL:
            return wide
        return np.asarray(1 / wide if op is DIV else 0 - wide, wide.dtype)


_TERMS, _FACTORS = (ADD, SUB), (MUL, DIV)


@simplifies(
    *(ADD, SUB, MUL, DIV),
    fed_by=(ADD, SUB, MUL, DIV),
    gives=(REASSOCIATES, EXACT),
    describe=lambda rule, match: f"{match.root.op.name} of {match.consumed[0].op.name} by constants",
)
def constants_in_a_row(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """``x * c * d`` becomes ``x * (c * d)``, and ``x + c + d`` becomes ``x + (c + d)``; ``/`` and ``-`` count too.

    ``exact`` for integers, ``reassociates`` for floats: not where terms cancel or a product leaves the dtype's range.
    """
    second, is_product, dtype = _step(node), node.op in _FACTORS, node.result.type.dtype
    e.gives = REASSOCIATES if dtype.is_float else EXACT
    inner = None if second is None else made_by(second.x, *(_FACTORS if is_product else _TERMS))
    first = None if inner is None else _step(inner)
    if second is None or first is None:
        return KEEP
    most = max(first.constant.size, second.constant.size)
    if most > _MOST_ELEMENTS:
        return Miss("a constant has {0} elements", (most,))
    with np.errstate(all="ignore"):
        wide = _combined(node.op, second, first)
        constant = np.asarray(wide).astype(dtype.numpy)
        if reason := _why_kept(node.op, first, second, wide, constant):
            return reason
    e.taken.append(first.node)
    inverted = first.inverted != second.inverted
    if not e.target.has_kernel(DIV if inverted else MUL, dtype):
        return Miss("the target computes {0} with casts around it", (dtype,))
    if reason := used_elsewhere(first.node.result):
        return reason
    x, row = e.of(first.x), e.number(constant, dtype)
    if inverted:
        return row / x if is_product else row - x
    return x * row if is_product else x + row


def _step(node: Node) -> _ConstantStep | None:
    """The node as an operation with one constant; None if it is not one. Quotients of integers round."""
    a, b = node.operand("a"), node.operand("b")
    for x, other in ((a, b), (b, a)):
        tensor = constant_of(other)
        if tensor is None or (isinstance(tensor, StoredTensor) and tensor.is_apart):
            continue
        if constant_of(x) is not None or (node.op is DIV and not x.type.dtype.is_float):
            return None
        return _ConstantStep(node, x, tensor, other is a and node.op in (SUB, DIV))
    return None


def _combined(op: Operation, second: _ConstantStep, first: _ConstantStep) -> _Array:
    """The constant of both steps at once."""
    outer, inner = second.wide(), first.wide()
    if op in _FACTORS:
        return np.asarray(outer / inner if second.inverted else outer * inner)
    return np.asarray(outer - inner if second.inverted else outer + inner)


def _why_kept(
    op: Operation, first: _ConstantStep, second: _ConstantStep, wide: _Array, constant: _Array
) -> Miss | None:
    most = max(first.constant.size, second.constant.size)
    if constant.size > most:
        return Miss("both constants together have {0} elements, and the larger one {1}", (constant.size, most))
    if constant.dtype.kind != "f":
        return None
    sizes = np.abs(wide)
    if op in _FACTORS:
        limits = np.finfo(constant.dtype)
        fits = (sizes >= limits.tiny) & (sizes <= limits.max)
        return None if fits.all() else Miss("the product of the constants leaves the range of {0}", (constant.dtype,))
    larger = np.maximum(np.abs(first.wide()), np.abs(second.wide()))
    fits = np.isfinite(constant) & (sizes >= _LEAST_SUM * larger)
    return None if fits.all() else Miss("the constants cancel: their sum has fewer digits than they have")


# --- A monotone elementwise function commutes with max and min

#: They choose one of two numbers, or round a rising function to the nearest: never falling, bit for bit.
_RISING = frozenset((*(op for op in UNARY if op.rises and op.rounding == "exact"), CLIP, MIN, MAX, CAST))
#: Rising functions whose kernels approximate them: neighbours may come out in the wrong order by a rounding.
_APPROXIMATED = frozenset(op for op in UNARY if op.rises and op.rounding != "exact")
#: Operations that make a NaN of a number below 0.
_OF_POSITIVE = frozenset(op for op in UNARY if op.domain_from == 0)
#: Their results are 0 or more.
_POSITIVE = frozenset((
    *(op for op in UNARY if op.bounds[0] >= 0), SOFTMAX,
    *(op for op in REDUCTIONS if op.before in ("abs", "square") and op.after != "log"),
))  # fmt: skip


@simplifies(
    *EXTREMES,
    fed_by=(*_PAIRS, *_RISING, *_APPROXIMATED, NEG),
    gives=(EXACT, REASSOCIATES, RANGE),
)
def rising_after_extreme(e: Sketch, node: Node, y: Term) -> Lowered:
    """reduce_max(relu(x)) becomes relu(reduce_max(x)), and so on for what never falls or never rises.

    ``exact`` for relu, clip, floor, ceil, round, sign, neg, casts that keep the order, and min and max with a number.
    It is ``exact`` for sums and products with numbers of one sign too. If f as computed never falls, f(max(x)) is
    max(f(x)) bit for bit. Rounding keeps a function that never falls so. Kernels approximate exp, log, tanh and the
    like: ``reassociates``. A NaN that the function makes reaches the maximum in one form alone. So log, sqrt and
    softsign are of class ``range``. A falling function turns the maximum into a minimum. Integers may wrap and keep
    their sums and products. The language says nothing of NaN, of the sign of a zero, and of a cast float that no
    integer holds. Not where nothing may be reduced.
    """
    split = _split(e, node, *_PAIRS, *_RISING, *_APPROXIMATED, NEG)
    if split is None:
        return KEEP
    if may_be_empty(e.graph, y.value, split.record.axes):
        return Miss("the maximum or minimum of no elements is not a {0} of anything", (split.node.op.name,))
    sign = _promised_sign(split, e.graph)
    if reason := _why_not_ordered(e, split, sign) or _why_not_hoisted(split):
        return reason
    _say_class(e, split, sign)
    return split.hoisted(e, DUALS[node.op] if _falls(split, sign) else node.op)


def _say_class(e: Sketch, split: Split, sign: int) -> None:
    """Say the class, and for ``range`` what promised ranges do."""
    op, x, known = split.node.op, split.x, Intervals(e.graph)
    if not sign and op is not SOFTSIGN and (op not in _OF_POSITIVE or _is_never_negative(x)):
        e.gives = REASSOCIATES if op in _APPROXIMATED else EXACT
        return
    e.gives = RANGE
    if sign and split.fixed is not None:
        e.promised = known.promised(split.fixed)
    elif (promised := known.promised_of(x)) is not None:
        holds = np.isfinite(promised).all() if op is SOFTSIGN else promised[0] >= 0
        e.promised = known.promised(x) if holds else ()


def _why_not_ordered(e: Sketch, split: Split, sign: int) -> Miss | None:
    op, x = split.node.op, split.x
    if op is CAST:
        return _why_not_cast(e, split.root.op, x.type.dtype, split.node.result.type.dtype)
    if op is NEG:
        return why_order_may_not_turn(x, e.graph)
    if op in (ADD, SUB, MUL, DIV) and not x.type.dtype.is_float:
        return Miss("{0} of integers may wrap", (op.name,))
    return _why_no_factor(split) if op in (MUL, DIV) and not sign else None


def _why_not_cast(e: Sketch, op: Operation, source: DType, to: DType) -> Miss | None:
    if not _keeps_order(source, to):
        return Miss("a cast from {0} to {1} does not keep the order", (source, to))
    if not e.target.takes("ReduceMax", source):
        return Miss("{0} has no ReduceMax of {1}", (e.target.target.name, source))
    if source is f16 and not e.target.emits_nodes:
        return Miss("NumPy compares f16 one by one, slower than it casts them")
    return why_no_extreme(e.target, op, source)


def _is_never_negative(value: Value) -> bool:
    node = value.producer
    if node is None:
        return False
    return node.op in _POSITIVE or (node.op is MUL and node.operand("a") is node.operand("b"))


def _promised_sign(split: Split, graph: Graph) -> int:
    """The sign of a factor or divisor that promised ranges give; 0 where they give none.

    A factor may be 0: what is not finite beside it gives a NaN, of which the maximum is unspecified. A divisor of 0
    may have either sign.
    """
    fixed, op = split.fixed, split.node.op
    if fixed is None or op not in (MUL, DIV) or split.number is not None or (op is DIV and not split.first):
        return 0
    promised = Intervals(graph).promised_of(fixed)
    if promised is None:
        return 0
    low, high = promised
    if low > 0 or (low == 0 and op is MUL):
        return 1
    return -1 if high < 0 or (high == 0 and op is MUL) else 0


def _falls(split: Split, sign: int) -> bool:
    op, numbers = split.node.op, split.number
    if op is MUL or op is DIV:
        return sign < 0 if sign or numbers is None else bool((numbers < 0).any())
    return op is NEG or (op is SUB and not split.first)


def _why_no_factor(split: Split) -> Miss | None:
    """The reason why multiplying with ``fixed``, or dividing by it, may neither keep nor turn the order."""
    assert split.fixed is not None
    numbers, name = split.number, name_of(split.fixed)
    if numbers is None:
        return Miss("the sign of {0} is not known", (name,), split.fixed)
    if split.node.op is DIV and not split.first:
        return Miss("a number divided by {0} neither rises nor falls", (name_of(split.x),), split.x)
    if not np.isfinite(numbers).all() or not ((numbers > 0).all() or (numbers < 0).all()):
        return Miss("the factors are not all positive, or all negative, and finite", (), split.fixed)
    return None


def _keeps_order(source: DType, to: DType) -> bool:
    """Return whether a cast keeps the order of numbers; out of range, only wrapping integers may break it.

    Floats round to the nearest or toward zero. Floats outside the range of an integer give an unspecified result.
    """
    if to.kind == "bool":
        return source.kind in ("bool", "uint")
    if source.kind == "bool" or source.is_float or to.is_float:
        return True
    return int(to.lowest) <= int(source.lowest) and int(source.highest) <= int(to.highest)


# --- Rules of ``hoist`` for sums and means: scales, shifts and sums of sums

#: Nodes between the last factor of a GELU and its erf or tanh, at most.
_MOST_STEPS = 8
_TOTALS = tuple([op for op in REDUCTIONS if op.base is REDUCE_SUM and op.after != "log"])


@simplifies(*_TOTALS, REDUCE_MEAN, fed_by=(MUL, DIV, NEG), gives=(EXACT, REASSOCIATES))
def scale_after_sum(e: Sketch, node: Node, y: Term) -> Lowered:
    """reduce_sum(x * c) becomes reduce_sum(x) * c, and so on for means, norms, quotients and negations.

    ``c`` is the same for all elements of a group. For norms and sums of squares it is a constant, which becomes its
    magnitude or its square. ``exact`` for the negation of a sum or mean, else ``reassociates``: each element is
    rounded once less. Partial sums are as much larger or smaller as ``c`` says. Floats only; a sum of f16 never
    becomes larger than it was, for it might overflow.
    """
    negates = (NEG,) if node.op in (REDUCE_SUM, REDUCE_MEAN) else ()
    split = _split(e, node, MUL, DIV, *negates) if y.dtype.is_float else None
    if split is None:
        return KEEP
    reason = _why_not_hoisted(split)
    if reason is None and split.fixed is not None:
        reason = _why_no_scale(split) or _why_in_gelu(split)
    numbers, power = split.number, _POWER.get(node.op)
    e.gives = EXACT if split.node.op is NEG else REASSOCIATES
    return reason or split.hoisted(e, node.op, None if numbers is None or power is None else power(numbers))


def _why_in_gelu(split: Split) -> Miss | None:
    """The reason against taking the half out of a GELU, which is one operator where it is whole."""
    assert split.fixed is not None
    pending = [split.x]
    for _ in range(_MOST_STEPS):
        node = pending.pop(0).producer if pending else None
        if node is not None and (node.op is ERF or node.op is TANH):
            found = find_gelu(node)
            if found is not None and found.root is split.node and found.factor == 1:
                return Miss("{0} is the half of a GELU", (name_of(split.fixed),), split.fixed)
        elif node is not None and node.op in (ADD, SUB, MUL, DIV):
            pending += [value for value in node.operands if value is not None]
    return None


def _square(numbers: _Numbers) -> _Numbers:
    with np.errstate(all="ignore"):
        return np.asarray(numbers * numbers)


def _magnitude(numbers: _Numbers) -> _Numbers:
    return np.asarray(np.abs(numbers))


#: The factor outside by the one inside.
_POWER: dict[Operation, Callable[[_Numbers], _Numbers]] = {
    op: _square if op.before == "square" and not op.after else _magnitude for op in _TOTALS if op.before
}


def _why_no_scale(split: Split) -> Miss | None:
    op, fixed, numbers = split.root.op, split.fixed, split.number
    assert fixed is not None
    name, may_overflow = name_of(fixed), op in _TOTALS and split.root.result.type.dtype is f16
    if split.node.op is DIV and not split.first:
        return Miss("{0} is divided by the summed value", (name,), fixed)
    if numbers is None:
        if op in _POWER:
            return Miss("{0} is not a constant, and its magnitude would take a node more", (name,), fixed)
        return Miss("without {0} the sum of f16 might overflow", (name,), fixed) if may_overflow else None
    kept = _POWER[op](numbers) if op in _POWER else numbers
    if not np.isfinite(kept).all() or not kept.all():
        return Miss("the factors, as {0} takes them, are not all finite and other than 0", (op.name,), fixed)
    grows = numbers if split.node.op is MUL else 1 / numbers.astype(np.float64)
    if may_overflow and (np.abs(grows) < 1).any():
        return Miss("the sum of f16 might overflow before it is scaled by less than 1")
    return None


@simplifies(REDUCE_MEAN, REDUCE_SUM, REDUCE_LOG_SUM_EXP, fed_by=(ADD, SUB), gives=REASSOCIATES)
def shift_after_mean(e: Sketch, node: Node, y: Term) -> Lowered:
    """reduce_mean(x + c) becomes reduce_mean(x) + c, a sum adds c times the number of elements, a log-sum-exp c.

    ``reassociates``. ``c`` is a constant that is the same for all elements of a group; floats only, and no sums of
    f16. Where ``x`` and ``c`` nearly cancel, what is lost is what changing ``x`` in its last place changes too.
    """
    split = _split(e, node, ADD, SUB) if y.dtype.is_float else None
    numbers = None if split is None else split.number
    if split is None or numbers is None:
        return KEEP
    if reason := _why_not_hoisted(split):
        return reason
    if node.op is REDUCE_LOG_SUM_EXP and split.node.op is SUB and not split.first:
        return Miss("the exponentials of what is subtracted do not add up")
    if node.op is REDUCE_SUM:
        count = product([y.shape[a] for a in split.record.axes])
        if y.dtype is f16:
            return Miss("a sum of f16 might overflow without the shift, or by it")
        if not isinstance(count, int):
            return Miss("how often the number is added is not known while compiling")
        with np.errstate(all="ignore"):
            numbers = np.asarray(numbers.astype(np.float64) * count).astype(numbers.dtype)
    if not np.isfinite(numbers).all():
        return Miss("the sum of the added numbers is not finite")
    return split.hoisted(e, node.op, numbers if node.op is REDUCE_SUM else None)


# --- Rules of ``hoist`` for operations that copy elements: concat and expand


@simplifies(*REDUCTIONS, fed_by=(EXPAND,))
def reduction_before_expand(e: Sketch, node: Node, y: Term) -> Lowered:
    """reduce_sum(expand(x)) becomes expand(reduce_sum(x)), where axes are broadcast that are not reduced.

    ``exact``: equal groups have equal results. An operand that is broadcast along reduced axes stays
    so, and ``reduction-of-expand`` takes that away.
    """
    inner, record = e.made_by(y, EXPAND), node.attributes_as(ReduceAttributes)
    if inner is None:
        return KEEP
    x, axes = e.of(inner.operand("x")), record.axes
    offset = y.rank - x.rank
    before = (*[1] * offset, *x.shape)
    shape = tuple([size if axis in axes else before[axis] for axis, size in enumerate(y.shape)])  # only these axes
    if shape == y.shape:
        return KEEP
    own = [a for a in axes if a >= offset and x.shape[a - offset] == shape[a] != 1]
    if own and any(a not in own and shape[a] != 1 for a in axes):
        return Miss("axes {0} are reduced and others broadcast: that would be one node more", (own,))
    if reason := used_elsewhere(y.value):
        return reason
    if shape[offset:] == x.shape and all(a >= offset for a in axes):
        record = replace(record, axes=tuple([a - offset for a in axes]))
    elif shape != x.shape:
        x = e.expand(x, shape=shape)
    return e.expand(e(node.op, x, attributes=record), shape=node.result.shape)


_RULES = rules_of(globals())


class Hoist(RewritePass, frozen=True):
    """Runs after the fusions that want an elementwise operation before its reduction (norms, softmax, means).

    A tensor that only a reduction reads is then not written: less memory on every target, with as many nodes.
    Constants that meet become one.
    """

    name: ClassVar[str] = "hoist"
    summary: ClassVar[str] = "Move operations behind a reduction, where they have fewer elements."
    rewrite_class: ClassVar[str] = REASSOCIATES

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return (*_RULES, *MOVE_RULES)
