"""Number of ONNX nodes that operations are emitted as, for fusions that may cost more than they save."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dmlc.ir import DType, Graph, Node, Operation, Value
from dmlc.ir.dtype import f64
from dmlc.ops.constant import CONSTANT
from dmlc.ops.normalize import LOG_SOFTMAX, LP_NORM, SOFTMAX
from dmlc.ops.reduce import REDUCE_LOG_SUM_EXP
from dmlc.passes.expressions import Sketch, Term, plain
from dmlc.passes.manager import PassContext
from dmlc.passes.primitives import log_sum_exp, lp_norm, softmax
from dmlc.passes.rewrite import Match, Miss
from dmlc.targets.needed_kernels import NEEDS

#: The casts around a node that is computed in a wider type.
_CASTS = 2
#: More than any pattern has: the operation cannot be computed in that dtype at all.
_NEVER = 1000


def emitted_nodes(context: PassContext, op: Operation, x: Value, axes: tuple[int, ...], graph: Graph) -> int:
    """The nodes that the target's lowerings and its legal types make of a new ``op`` of ``x``.

    ``axes`` are those that it runs over, () where it has none. Where the target has no kernel table, all are one node.
    """
    if op is CONSTANT:
        return 0
    if context.capabilities.table is None:
        return 1
    dtype, imported = x.type.dtype, graph.dims.least == 0
    if imported and op is LOG_SOFTMAX and dtype is f64:
        return _NEVER  # ONNX Runtime's kernel leaves -inf beside a +inf, where all is NaN
    casts = _casts(context, op, dtype)
    parts = None if casts >= _NEVER else _in_parts(context, op, x, axes, graph)
    if parts is not None:
        return parts
    return casts + (_softmax(context, op, x, axes, imported) or 1)


def _in_parts(context: PassContext, op: Operation, x: Value, axes: tuple[int, ...], graph: Graph) -> int | None:
    """The nodes of an operation that is written in parts, with the casts of f16; None for others."""
    imported = graph.dims.least == 0
    if op in (SOFTMAX, LOG_SOFTMAX) and not _softmax(context, op, x, axes, imported):
        return _counted(context, graph, lambda e: softmax(e, op, e.of(x).widened(), axes).cast(x.type.dtype))
    if op is LP_NORM and _repairs_lp_norm(context):
        axis = (*axes, 0)[0]
        return _counted(context, graph, lambda e: lp_norm(e, e.of(x).widened(), axis, 2).cast(x.type.dtype))
    if op is REDUCE_LOG_SUM_EXP and not (imported and context.target.portable):
        return _counted(context, graph, lambda e: log_sum_exp(e, e.of(x), axes))
    return None


def _counted(context: PassContext, graph: Graph, parts: Callable[[Sketch], Term]) -> int:
    """The nodes that a lowering makes."""
    e = Sketch(graph, context.capabilities)
    parts(e)
    return sum(node.op is not CONSTANT for node, _ in e.steps)


def _standing(context: PassContext, nodes: Iterable[Node], graph: Graph) -> int:
    """The nodes that these become as they stand. One of a model is written as it is, but where its opset or the
    target does not have that form."""
    total = 0
    for node in nodes:
        x = next((v for v in node.operands if v is not None), None)
        attributes: Any = node.attributes
        axes = getattr(attributes, "axes", ())
        if x is None or node.op is CONSTANT:
            total += node.op is not CONSTANT
        elif node.origin is None:
            total += emitted_nodes(context, node.op, x, axes, graph)
        else:
            total += 1 if context.capabilities.table is None else _respelled(context, node, x, axes, graph)
    return total


def _respelled(context: PassContext, node: Node, x: Value, axes: tuple[int, ...], graph: Graph) -> int:
    """The nodes of a model's node, which gets no casts."""
    is_wrong = context.capabilities.has_fault("log-sum-exp", "ReduceLogSumExp", "T", x.type.dtype)
    if node.op in (SOFTMAX, LOG_SOFTMAX) or (node.op is REDUCE_LOG_SUM_EXP and is_wrong):
        return _in_parts(context, node.op, x, axes, graph) or _softmax(context, node.op, x, axes, True) or 1
    return 1


def _repairs_lp_norm(context: PassContext) -> bool:
    is_wrong = context.capabilities.fault("lp-epsilon", "LpNormalization") is not None
    return is_wrong and context.wants("lp-norm-in-parts")


def _casts(context: PassContext, op: Operation, dtype: DType) -> int:
    if op not in NEEDS:
        return 0
    home = context.capabilities.compute_dtype(op, dtype)
    return _NEVER if home is None else _CASTS * (home is not dtype)


def _softmax(context: PassContext, op: Operation, x: Value, axes: tuple[int, ...], imported: bool) -> int:
    """Return the nodes of a softmax over one axis, or over axes that a reshape makes one; 0 for any other operation."""
    if op not in (SOFTMAX, LOG_SOFTMAX) or not axes or (not imported and op is LOG_SOFTMAX and x.type.dtype is f64):
        return 0
    if axes == tuple(range(axes[0], x.type.rank)) and (context.opset < 13 or len(axes) == 1):
        return 1
    if context.opset >= 13 and axes[-1] - axes[0] == len(axes) - 1:
        return 1 if len(axes) == 1 else 3
    return 0


def no_gain(
    context: PassContext, match: Match, op: Operation, x: Value, axes: tuple[int, ...], graph: Graph, *, more: int = 0
) -> Miss | None:
    """The reason against making ``op`` of ``x``, and ``more`` nodes, of a match where that are not fewer nodes."""
    before = _standing(context, (match.root, *match.consumed), graph)
    after = emitted_nodes(context, op, x, axes, graph) + more
    if after < before:
        return None
    if after >= _NEVER:
        return Miss("{0} of {1} has no kernel on {2} that is right", (op.name, x.type.dtype, context.target.name))
    return Miss(
        "on {0} {1} of {2} would be {3} nodes, no fewer than the {4} that are here",
        (context.target.name, op.name, x.type.dtype, after, before),
        saves=0,
    )


def why_no_gain(
    e: Sketch, node: Node, op: Operation, x: Term | Value, axes: tuple[int, ...], *, more: int = 0
) -> Miss | None:
    """The same for the node and what is taken over with it."""
    match = Match(node, tuple(dict.fromkeys(e.taken)))
    return no_gain(e.rule.context, match, op, plain(x), axes, e.graph, more=more)
