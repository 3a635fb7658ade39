"""Sums, means, maxima and minima over several or long axes: one node, a chain of them, or a chain over parts.

ONNX Runtime's CPU provider has kernels for reduced axes that lie together and for a first and a last group; what is
further apart goes element by element. A long row is added faster, and rounded less, in parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from dmlc.ir import Dim, Graph, Node, Operation, Shape
from dmlc.ir.dtype import f16, f32
from dmlc.onnx_schema.einsum import Equation
from dmlc.ops.elementwise import GELU
from dmlc.ops.matmul import MATMUL
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX
from dmlc.ops.opaque import attribute_of
from dmlc.ops.reduce import (
    EXTREMES,
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_LOG_SUM,
    REDUCE_LOG_SUM_EXP,
    REDUCE_MAX,
    REDUCE_MEAN,
    REDUCE_MIN,
    REDUCE_SUM,
    REDUCE_SUM_SQUARE,
    ReduceAttributes,
    axes_of,
    reduction_of,
)
from dmlc.ops.select import TOP_K, TopKAttributes
from dmlc.passes.choose_lowering.plan import Plan, View, divisor_near, plan, view_of
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.layouts import groups, is_unit, ones_between
from dmlc.passes.lowering import Lowered
from dmlc.passes.manager import EXACT, REASSOCIATES
from dmlc.passes.primitives import log_sum_exp, softmax, total_in_parts
from dmlc.passes.repair.einsum import letter_sizes, product_of_letters
from dmlc.passes.rewrite import Miss

ROOTS = (REDUCE_SUM, REDUCE_MEAN, REDUCE_MAX, REDUCE_MIN)
#: A row of n numbers is split into parts of 4*sqrt(n), at least 256 and at most 512; the sums of the parts are added in
#: parts of about 64.
_ROW, _MOST_ROW, _FEW = 256, 512, 64
#: Up to this length a row is not a long one.
LONG = 512
#: A very long row is taken as this many blocks, of no more and no fewer elements than these.
_BLOCKS, _LEAST_BLOCK, _MOST_BLOCK = 32, 1024, 16384
#: A maximum along an axis that others lie behind takes so many elements at a time.
_STRIDED_BLOCK = 8


def is_pool(node: Node) -> bool:
    """Return whether an imported model has the reduction as a global pooling."""
    return node.origin is not None and node.origin.proto.op_type in ("GlobalAveragePool", "GlobalMaxPool")


def _why_not_moved(e: Sketch, x: Term) -> Miss | None:
    """Return the reason why the operand cannot be reshaped."""
    return Miss("it may be empty") if any(e.graph.dims.interval(d)[0] < 1 for d in x.shape) else None


def _with_ones(graph: Graph, shape: Sequence[Dim], axes: Iterable[int]) -> tuple[int, ...]:
    """The axes, and those of size 1 that follow them or come before them all; but not those that follow others.

    ONNX Runtime distinguishes reduced axes by their place alone: an axis of size 1 between them keeps it from
    seeing neighbours as one.
    """
    units, axes = [is_unit(graph, d) for d in shape], tuple(axes)
    out: list[int] = []
    reduced: bool | None = None
    for axis, unit in enumerate(units):
        if not unit:
            reduced = axis in axes
            if reduced and len(out) == 0 and all(units[:axis]):
                out.extend(range(axis))
        if reduced:
            out.append(axis)
    return tuple(out) if reduced is not None else tuple(range(len(shape)))


def _chain(
    e: Sketch, node: Node, x: Term, order: Sequence[Iterable[int]], shape: Sequence[Dim] | None = None
) -> Lowered:
    """A reduction for each of the groups of axes, of the operand in that shape."""
    is_extreme = node.op in EXTREMES
    e.gives = EXACT if is_extreme else REASSOCIATES
    if not axes_of(node):
        return Miss("no axis is reduced")
    if is_pool(node) and not is_extreme:
        return Miss("an average of everything is rounded as its model says it")
    if not is_extreme and not x.dtype.is_float:
        return Miss("partial sums of integers may leave their range")
    if e.target.compute_dtype(node.op, x.dtype) is not x.dtype.accumulator:
        return Miss("{0} takes a detour", (x.dtype,))
    if shape is not None and tuple(shape) != x.shape and (reason := _why_not_moved(e, x)):
        return reason
    value = x.widened().reshape(x.shape if shape is None else shape)
    for axes in order:
        value = e.reduced(node.op, value, _with_ones(e.graph, value.shape, axes))
    if ones_between(e.graph, value.shape, node.result.shape) is None:
        value = value.reshape(node.result.shape)
    return value.with_ones(node.result.shape).cast(node.result.type.dtype)


@plan(*ROOTS, gives=(EXACT, REASSOCIATES))
def reduce_ones_too(e: Sketch, node: Node, x: Term) -> Lowered:
    """A reduction next to axes of size 1 reduces these too, so that its kernel sees fewer groups of axes."""
    if _with_ones(e.graph, x.shape, axes_of(node)) == axes_of(node):
        return Miss("no axis of size 1 is between them")
    return _chain(e, node, x, [axes_of(node)])


@plan(*ROOTS)
def reduce_for_pool(e: Sketch, node: Node, x: Term) -> Lowered:
    """The largest element as a model's GlobalMaxPool becomes a reduction, whose kernel is faster."""
    return _chain(e, node, x, [axes_of(node)]) if is_pool(node) else Miss("it is not a pooling")


def _groups_of(e: Sketch, node: Node, x: Term) -> list[range]:
    """The groups of neighbours among the axes."""
    return [range(*group) for group in groups(_with_ones(e.graph, x.shape, axes_of(node)))]


@plan(*ROOTS, gives=(EXACT, REASSOCIATES))
def reduce_inner_first(e: Sketch, node: Node, x: Term) -> Lowered:
    """A reduction over axes that are not adjacent becomes a node for each group of neighbours, the last group first."""
    order = _groups_of(e, node, x)[::-1]
    return _chain(e, node, x, order) if len(order) > 1 else Miss("all axes are neighbours")


@plan(*ROOTS, gives=(EXACT, REASSOCIATES))
def reduce_outer_first(e: Sketch, node: Node, x: Term) -> Lowered:
    """A reduction over axes that are not adjacent becomes one for each group of neighbours, the first group first. Of
    neighbours that were written as several reductions the first axis comes first, then the others."""
    order = _groups_of(e, node, x)
    if len(order) == 1 and len(order[0]) > 1 and node.history.nodes > 1:
        order = [order[0][:1], order[0][1:]]
    return _chain(e, node, x, order) if len(order) > 1 else Miss("all axes are neighbours")


@plan(*ROOTS, gives=(EXACT, REASSOCIATES))
def reduce_in_steps(e: Sketch, node: Node, x: Term) -> Lowered:
    """A reduction over long axes becomes reductions of parts, and of what they leave, until all is one.

    The parts of a sum's row are short enough for its rounding errors to stay like a pairwise sum's.
    """
    view = view_of(e.graph, node, axes_of(node))
    parts: View = view
    for segment in reversed(view.groups):
        size, is_last = view.sizes[segment], segment == len(view.sizes) - 1
        if not isinstance(size, int):
            return Miss("{0} is not known, so that it cannot be divided", (size,))
        if is_last is not (node.op in EXTREMES):
            for part in row_parts(size) if is_last else _parts(size, _STRIDED_BLOCK, 2 * _STRIDED_BLOCK):
                size //= part
                parts = parts.split(segment, size, part)
    if parts.sizes == view.sizes:
        return Miss("no axis is long, or has a divisor that helps")
    if sum(not isinstance(d, int) for d in parts.sizes) > 1:
        return Miss("more than one size is not known")
    return _chain(e, node, x, [(segment,) for segment in reversed(parts.groups)], parts.sizes)


def row_parts(size: int) -> list[int]:
    """The lengths of the parts of a long row, the one within first."""
    if size <= LONG:
        return []
    row = divisor_near(size, max(_ROW, min(_MOST_ROW, 4 * math.sqrt(size))))
    return [row, *_parts(size // row, _FEW, _FEW)] if _ROW // 4 <= row <= 4 * _ROW else []


def _parts(size: int, wanted: int, most: int) -> list[int]:
    """Divisors near what is wanted, until no more than so many are left."""
    out = []
    while size > most:
        inner = divisor_near(size, wanted)
        if not 2 <= inner <= 4 * wanted or inner == size:
            break
        out.append(inner)
        size //= inner
    return out


@plan(REDUCE_SUM, REDUCE_MEAN, gives=REASSOCIATES)
def sum_blocks_first(e: Sketch, node: Node, x: Term) -> Lowered:
    """A sum or mean over very long rows adds blocks of a row to each other first, which are many columns at once."""
    view = view_of(e.graph, node, axes_of(node))
    if view.kind not in ("R", "KR"):
        return Miss("other axes lie behind or between")
    size = view.sizes[-1]
    if not isinstance(size, int):
        return Miss("{0} is not known, so that it cannot be divided", (size,))
    block = divisor_near(size, min(_MOST_BLOCK, max(_LEAST_BLOCK, size / _BLOCKS)))
    if not _LEAST_BLOCK // 2 <= block <= 2 * _MOST_BLOCK or size // block < _BLOCKS // 2:
        return Miss("no row is very long")
    parts, kept = row_parts(block), view.sizes[:-1]
    shape: Shape = (*kept, size // block, block // math.prod(parts), *reversed(parts))
    return _chain(e, node, x, [(axis,) for axis in (len(kept), *range(len(shape) - 1, len(kept), -1))], shape)


@plan(REDUCE_SUM, REDUCE_MEAN, gives=REASSOCIATES)
def sum_by_product(e: Sketch, node: Node, x: Term) -> Lowered:
    """A sum or mean over the first axes becomes the product of a row of equal numbers with a matrix.

    The kernel of the reduction adds few rows column by column, the kernel of the product takes many columns at once.
    """
    view, home = view_of(e.graph, node, axes_of(node)), x.dtype.accumulator
    rows = view.sizes[0]
    if not x.dtype.is_float or view.kind != "RK":
        return Miss("it is not a sum of floats over the first axes")
    if not isinstance(rows, int):
        return Miss("{0} rows are not a known number of them", (rows,))
    if reason := _why_not_moved(e, x):
        return reason
    if not e.target.has_kernel(MATMUL, home):
        return Miss("the target has no matrix product of {0}", (x.dtype,))
    row = e.full(shape=(1, rows), value=1 / rows if node.op is REDUCE_MEAN else 1, dtype=home)
    made = e.matmul(row, x.cast(home).reshape(view.sizes))
    return made.cast(node.result.type.dtype).reshape(node.result.shape)


#: The first of two that come to the same nodes is taken: it needs fewer rewrites.
PLANS: tuple[type[Plan], ...] = (
    reduce_in_steps,
    sum_blocks_first,
    sum_by_product,
    reduce_inner_first,
    reduce_outer_first,
    reduce_for_pool,
    reduce_ones_too,
)


# --- Plans for softmax, log-sum-exp and norms, in parts that are vectorised; and plans that are chosen by times alone

NORMS = (REDUCE_L1, REDUCE_L2, REDUCE_SUM_SQUARE, REDUCE_LOG_SUM)
_SUMS = (REDUCE_SUM, REDUCE_MEAN, REDUCE_L1, REDUCE_L2, REDUCE_SUM_SQUARE, REDUCE_LOG_SUM_EXP)


def _why_not(e: Sketch, op: Operation, x: Term, axes: Sequence[int]) -> Miss | None:
    """The reason why a node cannot be written with reductions ``op``; None if it can."""
    if not axes:
        return Miss("it is over no axis")
    return None if e.target.compute_dtype(op, x.dtype) is x.dtype.accumulator else Miss(f"{x.dtype} takes a detour")


@plan(SOFTMAX, LOG_SOFTMAX, gives=REASSOCIATES)
def softmax_in_parts(e: Sketch, node: Node, x: Term) -> Lowered:
    """A softmax that is not along the last axes becomes a maximum, powers, their sum and a quotient.

    The logarithm of a softmax subtracts the logarithm of the sum instead.
    """
    axes = axes_of(node)
    if all(is_unit(e.graph, x.shape[axis]) for axis in axes):
        return Miss("its axes have one element, whose reductions are nodes all the same")
    return _why_not(e, REDUCE_MAX, x, axes) or softmax(e, node.op, x.widened(), axes).cast(x.dtype)


@plan(REDUCE_LOG_SUM_EXP, gives=REASSOCIATES)
def log_sum_exp_in_parts(e: Sketch, node: Node, x: Term) -> Lowered:
    """A log-sum-exp becomes the maximum, powers of what is below it, their sum, its logarithm, and their sum.

    An infinite maximum counts as the largest number, so that no infinity is subtracted from itself.
    """
    axes = axes_of(node)
    return _why_not(e, REDUCE_MAX, x, axes) or log_sum_exp(e, x, axes).with_ones(node.result.shape)


@plan(*NORMS, gives=REASSOCIATES)
def norm_in_parts(e: Sketch, node: Node, x: Term) -> Lowered:
    """A norm or a logarithm of a sum becomes a plain sum, with what is done to the elements before and to it after."""
    record = node.attributes_as(ReduceAttributes)
    if not x.dtype.is_float:
        return Miss("partial sums of integers may leave their range")
    parts = _why_not(e, REDUCE_SUM, x, record.axes)
    return parts or total_in_parts(e, reduction_of(node), x.widened(), record).cast(x.dtype)


@plan(TOP_K, is_estimated=False)
def top_k_by_argmax(e: Sketch, node: Node, x: Term) -> Lowered:
    """The one largest or smallest element is found by an argmax or argmin, and gathered."""
    a = node.attributes_as(TopKAttributes)
    if e.target.has_provider or a.k != 1:
        return Miss("top-k-by-search does it" if e.target.has_provider else "more than one element is wanted")
    find = e.argmax if a.order == "largest" else e.argmin
    index = find(x, axes=(a.axis,), ties="first", dtype=a.dtype, keepdims=True)
    return [e.gather_elements(x, index, axis=a.axis), index]


@plan(TOP_K, is_estimated=False)
def top_k_of_last(e: Sketch, node: Node, x: Term) -> Lowered:
    """A top_k along another axis than the last is one along the last axis, between transposes."""
    a, last = node.attributes_as(TopKAttributes), x.rank - 1
    if a.axis == last:
        return Miss("it is along the last axis")
    perm = tuple([{a.axis: last, last: a.axis}.get(i, i) for i in range(last + 1)])
    found = e.results(TOP_K, e.transpose(x, perm=perm), attributes=replace(a, axis=last))
    return [e.transpose(value, perm=perm) for value in found]


@plan(GELU, is_estimated=False, gives=REASSOCIATES)
def gelu_in_parts(e: Sketch, node: Node, x: Term) -> Lowered:
    """A gelu becomes erf or sigmoid, with the operations around it."""
    return e.composed(GELU, x, node.attributes)


@plan(onnx=("Einsum",), is_estimated=False, gives=REASSOCIATES)
def einsum_by_product(e: Sketch, node: Node, *operands: Term) -> Lowered:
    """An Einsum of two operands is a matmul between transposes and reshapes."""
    equation = Equation.parse(str(attribute_of(node, "equation", "")))
    if equation is None or len(equation.terms) != 2 or not equation.summed:
        return Miss("it is not a product of two operands")
    sizes = letter_sizes(equation, operands)
    return sizes if isinstance(sizes, Miss) else product_of_letters(e, operands, equation, sizes)


@plan(*_SUMS, is_estimated=False, gives=REASSOCIATES)
def reduce_in_f32(e: Sketch, node: Node, x: Term) -> Lowered:
    """A sum, mean or norm of f16 is computed in f32, and rounded once."""
    if x.dtype is not f16 or e.target.compute_dtype(node.op, f16) is not f16:
        return Miss("it is not computed in f16")
    return e.again(node, x.cast(f32))[0].cast(f16)


LOG_SUM_EXP: tuple[type[Plan], ...] = (log_sum_exp_in_parts,)
BY_TIMES: tuple[type[Plan], ...] = (top_k_by_argmax, top_k_of_last, gelu_in_parts, einsum_by_product)
IN_PARTS: tuple[type[Plan], ...] = (reduce_in_f32, softmax_in_parts, norm_in_parts)
