"""``compose``: operations that the target has no operator for are computed by others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.ir import Graph, Node, product
from dmlc.ops.elementwise import UNARY, UnaryOperation
from dmlc.ops.index import GATHER, GatherAttributes
from dmlc.ops.reduce import REDUCE_LOG_SUM_EXP, REDUCE_MAX, axes_of
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.legalize import is_of_program
from dmlc.passes.lowering import KEEP, Lowered, NodeRule, lowers
from dmlc.passes.manager import PassContext
from dmlc.passes.primitives import log_sum_exp
from dmlc.passes.rewrite import RewritePass, Rule, rules_of
from dmlc.targets.needed_kernels import UNCHECKED


def _as_written(rule: NodeRule, node: Node, graph: Graph) -> bool:
    """A node of a model stays as it is at the model's own opset, where ONNX Runtime may run it by ONNX's definition."""
    return node.origin is None or (graph.origin is not None and graph.opset != graph.origin.versions.get("", 1))


@lowers(*[op for op in UNARY if op.composed is not None], offered=_as_written)
def compose_unary(e: Sketch, node: Node, x: Term) -> Lowered:
    """An elementwise function without an operator at the opset, or a kernel for its dtype, is written in others.

    The language fixes no rounding of such functions. f16 is rounded once.
    """
    if node.op not in UNCHECKED and e.target.compute_dtype(node.op, x.dtype) is not None:
        return KEEP
    assert isinstance(node.op, UnaryOperation)
    wide = x if e.target.target.native_f16 else x.widened()
    return e.composed(node.op, wide, node.attributes).cast(x.dtype)


@lowers(GATHER, offered=is_of_program)
def gather_by_elements(e: Sketch, node: Node, x: Term, i: Term) -> Lowered:
    """A gather with batch axes before other axes becomes one of elements, at indices that are repeated.

    ONNX's GatherND, from opset 12 on, gathers along the first axis behind the batch axes.
    """
    a = node.attributes_as(GatherAttributes)
    if not a.batch_axes or (a.axis == a.batch_axes and e.target.opset >= _GATHER_ND):
        return KEEP
    between, behind = a.axis - a.batch_axes, x.rank - a.axis - 1
    count = product(i.shape[a.batch_axes :])
    row = i.reshape((*i.shape[: a.batch_axes], *[1] * between, count, *[1] * behind))
    shape = (*x.shape[: a.axis], count, *x.shape[a.axis + 1 :])
    row = row if row.shape == shape else e.expand(row, shape=shape)
    return e.gather_elements(x, row, axis=a.axis).reshape(node.result.shape)


@lowers(REDUCE_LOG_SUM_EXP, offered=is_of_program)
def log_sum_exp_beside_max(e: Sketch, node: Node, x: Term) -> Lowered:
    """A log-sum-exp takes out the maximum over the same axes, where that is computed too.

    Its lowering computes the maximum itself. An infinite one counts as the largest number, so that no infinity is
    subtracted from itself.
    """
    beside, axes = _maximum_beside(node), axes_of(node)
    if beside is None or _is_one_node(e):
        return KEEP
    kept = tuple([1 if axis in axes else size for axis, size in enumerate(x.shape)])
    peak = e.again(beside, x)[0].with_ones(kept).widened()
    return log_sum_exp(e, x, axes, peak).with_ones(node.result.shape)


@lowers(REDUCE_LOG_SUM_EXP, offered=is_of_program)
def lower_log_sum_exp(e: Sketch, node: Node, x: Term) -> Lowered:
    """A log-sum-exp subtracts the maximum first, and adds it again at the end.

    DirectML's own operator overflows, and ONNX Runtime's CPU provider is several times faster so. A node of a model
    keeps ONNX's operator, and so does a model's log-sum-exp that is to run anywhere. ``shift-log-sum-exp`` takes up
    those that go wrong on DirectML, where that is allowed.
    """
    axes = axes_of(node)
    if node.origin is not None or _is_one_node(e) or not axes:
        return KEEP
    return log_sum_exp(e, x, axes).with_ones(node.result.shape)


def _is_one_node(e: Sketch) -> bool:
    """Return whether a log-sum-exp belongs to a model that is to run anywhere."""
    return e.graph.dims.least == 0 and e.target.target.portable


def _maximum_beside(node: Node) -> Node | None:
    """The maximum of the same value over the same axes."""
    axes = axes_of(node)
    beside = [user for user in node.operand("x").users if user.op is REDUCE_MAX]
    return next((user for user in beside if axes_of(user) == axes), None)


#: The first opset whose GatherND has batch_dims.
_GATHER_ND = 12
_RULES = rules_of(globals())


class Compose(RewritePass, frozen=True):
    """Runs before the repairs, so that they see the nodes that the program will have."""

    name: ClassVar[str] = "compose"
    summary: ClassVar[str] = "Write operations that the target has no operator for in others."

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return [] if context.capabilities.table is None else _RULES
