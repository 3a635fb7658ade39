"""Number of ONNX nodes that operations are emitted as, for fusions that may cost more than they save."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dmlc.ir import DType, Graph, Node, Operation, Value
from dmlc.ir.dtype import f16, f64
from dmlc.ops.constant import CONSTANT
from dmlc.ops.normalize import LOG_SOFTMAX, LP_NORM, SOFTMAX
from dmlc.ops.reduce import REDUCE_LOG_SUM_EXP
from dmlc.passes.manager import PassContext
from dmlc.passes.rewrite import Match, Miss
from dmlc.targets.needed_kernels import NEEDS

#: The casts around a node that is computed in a wider type.
_CASTS = 2
#: More than any pattern has: the operation cannot be computed in that dtype at all.
_NEVER = 1000
#: The nodes of a log-sum-exp with the maximum taken out and kept finite; one more where a sum is cheaper alone.
_SHIFTED = 6
#: The norm, the test for 0, the choice of the divisor and the division.
_LP_NORM_IN_PARTS = 4


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
    if op in (SOFTMAX, LOG_SOFTMAX):
        count = _softmax(context, op, x, axes, imported)
    elif op is LP_NORM and _repairs_lp_norm(context):
        count = _LP_NORM_IN_PARTS
    elif op is REDUCE_LOG_SUM_EXP and not (imported and context.target.portable):
        count = _shifted(context)
    else:
        count = 1
    return count + _casts(context, op, dtype)


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
            total += 1 if context.capabilities.table is None else _respelled(context, node, x, axes)
    return total


def _respelled(context: PassContext, node: Node, x: Value, axes: tuple[int, ...]) -> int:
    """The nodes of a model's node, which gets no casts."""
    if node.op in (SOFTMAX, LOG_SOFTMAX):
        return _softmax(context, node.op, x, axes, True)
    is_wrong = context.capabilities.has_fault("log-sum-exp", "ReduceLogSumExp", "T", x.type.dtype)
    if node.op is REDUCE_LOG_SUM_EXP and is_wrong and not context.target.portable:
        return _shifted(context) + _CASTS * (x.type.dtype is f16)
    return 1


def _shifted(context: PassContext) -> int:
    return _SHIFTED + (context.target.costs is not None)


def _repairs_lp_norm(context: PassContext) -> bool:
    is_wrong = context.capabilities.fault("lp-epsilon", "LpNormalization") is not None
    return is_wrong and context.wants("lp-norm-in-parts")


def _casts(context: PassContext, op: Operation, dtype: DType) -> int:
    if op not in NEEDS:
        return 0
    home = context.capabilities.compute_dtype(op, dtype)
    return _NEVER if home is None else _CASTS * (home is not dtype)


def _softmax(context: PassContext, op: Operation, x: Value, axes: tuple[int, ...], imported: bool) -> int:
    """Return the number of nodes that ``lower-hardmax`` and ``codegen/onnx/softmax.py`` make."""
    sound = bool(axes) and (imported or not (op is LOG_SOFTMAX and x.type.dtype is f64))
    if sound and axes == tuple(range(axes[0], x.type.rank)) and (context.opset < 13 or len(axes) == 1):
        return 1
    if sound and context.opset >= 13 and axes[-1] - axes[0] == len(axes) - 1:
        return 1 if len(axes) == 1 else 3
    parts = 5 if op is SOFTMAX or context.target.costs is None else 6
    return parts + _CASTS * (x.type.dtype is f16)


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
