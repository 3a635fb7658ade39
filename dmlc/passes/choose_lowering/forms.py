"""Plans for softmax, log-sum-exp and norms, in parts that are vectorised; and plans that are chosen by times alone.

ONNX Runtime's CPU provider has a softmax for the last axis. For others it transposes twice, and the parts cost less
unless the runs behind the axis are short. Its log-sum-exp takes each element's power alone, and its norms are slow off
the last axes.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from dmlc.ir import Node, Operation
from dmlc.ir.dtype import f16, f32
from dmlc.onnx_schema.einsum import Equation
from dmlc.ops.elementwise import GELU
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX, SoftmaxAttributes
from dmlc.ops.opaque import attribute_of
from dmlc.ops.reduce import (
    REDUCE_L1,
    REDUCE_L2,
    REDUCE_LOG_SUM,
    REDUCE_LOG_SUM_EXP,
    REDUCE_MAX,
    REDUCE_MEAN,
    REDUCE_SUM,
    REDUCE_SUM_SQUARE,
    ReduceAttributes,
    reduction_of,
)
from dmlc.ops.select import TOP_K, TopKAttributes
from dmlc.passes.choose_lowering.plan import Plan, plan
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.layouts import is_unit
from dmlc.passes.lowering import Lowered
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.primitives import log_sum_exp, softmax, total_in_parts
from dmlc.passes.repair.einsum import letter_sizes, product_of_letters
from dmlc.passes.rewrite import Miss

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
    axes = node.attributes_as(SoftmaxAttributes).axes
    if all(is_unit(e.graph, x.shape[axis]) for axis in axes):
        return Miss("its axes have one element, whose reductions are nodes all the same")
    return _why_not(e, REDUCE_MAX, x, axes) or softmax(e, node.op, x.widened(), axes).cast(x.dtype)


@plan(REDUCE_LOG_SUM_EXP, gives=REASSOCIATES)
def log_sum_exp_in_parts(e: Sketch, node: Node, x: Term) -> Lowered:
    """A log-sum-exp becomes the maximum, powers of what is below it, their sum, its logarithm, and their sum.

    An infinite maximum counts as the largest number, so that no infinity is subtracted from itself.
    """
    axes = node.attributes_as(ReduceAttributes).axes
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
