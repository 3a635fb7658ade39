"""Norms, softmax, and operations without an operator of their own, in the parts that passes know."""

from __future__ import annotations

from collections.abc import Callable

from dmlc.codegen.onnx.emitter import Emitter
from dmlc.codegen.onnx.registry import lowering_of, lowers
from dmlc.ir import Node
from dmlc.ir.dtype import f64
from dmlc.ops import normalize as n
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.primitives import affine_norm, centred, deviation
from dmlc.passes.primitives import softmax as softmax_in_parts
from dmlc.targets.capabilities import Capabilities


@lowers(n.MEAN_VARIANCE_NORM)
def mean_variance_norm(emitter: Emitter, node: Node) -> str:
    """Lower a mean-variance normalization to its parts.

    ONNX's MeanVarianceNormalization has no epsilon. ONNX Runtime's LayerNormalization computes the variance in one
    pass, which loses digits if the mean is large.
    """
    a = node.attributes_as(n.MeanVarianceAttributes)

    def parts(e: Sketch, x: Term) -> Term:
        out, _ = centred(e, x.widened(), a.axes)
        return (out / deviation(e, out, a.axes, a.epsilon) if a.variance else out).cast(x.dtype)

    return in_parts(emitter, node, parts)


def _fits_one_node(emitter: Emitter, node: Node, axis: int) -> bool:
    """Return whether one fused operator can compute the normalization.

    The fused operators need scale and bias in the exact shape of the normalized axes. ONNX Runtime's kernels refuse an
    empty group.
    """
    group = node.operand("x").shape[axis:]
    if any(emitter.graph.dims.promises_empty(d) for d in group):
        return False
    return all(v is None or v.shape == group for v in node.operands[1:])


@lowers(n.LAYER_NORM)
def layer_norm(emitter: Emitter, node: Node) -> str:
    """ONNX's operator from opset 17 on. ONNX Runtime's CPU provider takes f16 and computes it in f32."""
    a, dtype = node.attributes_as(n.NormAttributes), node.result.type.dtype
    is_wrong = emitter.kernels is not None and emitter.kernels.is_wrong("LayerNormalization", dtype)
    # The operator's epsilon is an f32, which f64 would notice.
    if emitter.opset >= 17 and dtype is not f64 and not is_wrong and _fits_one_node(emitter, node, a.axis):
        operands = [emitter.of(v) for v in node.operands]
        return emitter.op("LayerNormalization", operands, axis=a.axis, epsilon=a.epsilon)
    return _in_parts(emitter, node, a)


@lowers(n.RMS_NORM)
def rms_norm(emitter: Emitter, node: Node) -> str:
    """One node of ONNX Runtime's own schema where the target has it: DirectML runs it as one operator. Elsewhere
    ONNX's own from opset 23 on, and parts below."""
    a, dtype = node.attributes_as(n.NormAttributes), node.result.type.dtype
    kernels = emitter.kernels
    if dtype is not f64 and _fits_one_node(emitter, node, a.axis):
        operands = [emitter.of(v) for v in node.operands]
        own = "SimplifiedLayerNormalization"
        if emitter.target.own_schemas and kernels is not None and dtype in kernels.dtypes(own, emitter.opset):
            emitter.note(f"{own} is ONNX Runtime's own operator: onnx's checker does not know it")
            return emitter.op(own, operands, axis=a.axis, epsilon=a.epsilon, stash_type=1)
        if emitter.opset >= 23:
            return emitter.op("RMSNormalization", operands, axis=a.axis, epsilon=a.epsilon, stash_type=1)
    return _in_parts(emitter, node, a)


def _in_parts(emitter: Emitter, node: Node, a: n.NormAttributes) -> str:
    def parts(e: Sketch, x: Term, scale: Term, bias: Term | None = None) -> Term:
        axes, centre = range(a.axis, x.rank), node.op is n.LAYER_NORM
        return affine_norm(e, x.widened(), axes, a.epsilon, scale, bias, centre=centre)[0].cast(x.dtype)

    return in_parts(emitter, node, parts)


@lowers(n.LP_NORM)
def lp_norm(emitter: Emitter, node: Node) -> str:
    a = node.attributes_as(n.LpNormAttributes)
    return emitter.op("LpNormalization", [emitter.operand(node, 0)], axis=a.axis, p=a.p)


# --- Softmax and its logarithm


@lowers(n.SOFTMAX, n.LOG_SOFTMAX)
def softmax(emitter: Emitter, node: Node) -> str:
    """ONNX's operator over one axis. Below opset 13 it takes all axes from ``axis`` on together. Other axes are
    computed in parts, without a transpose; ``lower-hardmax`` makes neighbouring axes one."""
    x, axes = node.operand("x"), node.attributes_as(n.SoftmaxAttributes).axes
    dtype, rank = x.type.dtype, x.type.rank
    if rank == 0:
        axes = ()
    op_type = "Softmax" if node.op is n.SOFTMAX else "LogSoftmax"
    fits = len(axes) == 1 if emitter.opset >= 13 else axes and axes == tuple(range(axes[0], rank))
    if fits and n.has_sound_kernel(node.op, dtype, emitter.graph.dims):
        return emitter.op(op_type, [emitter.of(x)], axis=axes[0])
    return in_parts(emitter, node, lambda e, x: softmax_in_parts(e, node.op, x.widened(), axes).cast(dtype))


# --- Operations without an operator of their own, in the parts that passes know


def in_parts(emitter: Emitter, node: Node, parts: Callable[..., Term]) -> str:
    """The result that a function of the expression builder makes of the node's operands."""
    e = Sketch(emitter.graph, Capabilities(emitter.target, emitter.opset))
    made = parts(e, *[None if v is None else e.of(v) for v in node.operands])
    drafts = [step for step, _ in e.steps]
    for step in drafts:
        lowering = lowering_of(step.op)
        if lowering is None:  # a constant
            emitter.of(step.result)
        else:
            (name,) = [found] if isinstance(found := lowering(emitter, step), str) else found
            emitter.bind(step.result, name)
    out = emitter.of(made.value)
    for step in drafts:
        emitter.release(step.result)
    return out
