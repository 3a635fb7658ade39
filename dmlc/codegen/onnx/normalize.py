"""The norms."""

from __future__ import annotations

from collections.abc import Sequence

from dmlc.codegen.onnx.emitter import Emitter
from dmlc.codegen.onnx.reduce import reduce
from dmlc.codegen.onnx.registry import lowers
from dmlc.ir import DType, Node
from dmlc.ir.dtype import f64
from dmlc.ops import normalize as n


@lowers(n.MEAN_VARIANCE_NORM)
def mean_variance_norm(emitter: Emitter, node: Node) -> str:
    """Lower a mean-variance normalization to its parts.

    ONNX's MeanVarianceNormalization has no epsilon. ONNX Runtime's LayerNormalization computes the variance in one
    pass, which loses digits if the mean is large.
    """
    a, dtype = node.attributes_as(n.MeanVarianceAttributes), node.result.type.dtype
    home = dtype.accumulator
    x = emitter.cast(emitter.operand(node, 0), home, have=dtype)
    out = _centred(emitter, x, a.axes)
    if a.variance:
        out = _scaled(emitter, out, a.axes, a.epsilon, home)
    return emitter.cast(out, dtype, have=home)


def _centred(emitter: Emitter, x: str, axes: Sequence[int]) -> str:
    return emitter.op("Sub", [x, reduce(emitter, "ReduceMean", x, axes, True)]) if axes else emitter.op("Sub", [x, x])


def _scaled(emitter: Emitter, x: str, axes: Sequence[int], epsilon: float, home: DType) -> str:
    """``x`` over the root of its mean square plus epsilon."""
    square = emitter.op("Mul", [x, x])
    mean = reduce(emitter, "ReduceMean", square, axes, True) if axes else square
    root = emitter.op("Sqrt", [emitter.op("Add", [mean, emitter.scalar(epsilon, home)])])
    return emitter.op("Div", [x, root])


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
    axes, home = tuple(range(a.axis, node.result.type.rank)), dtype.accumulator
    x, scale, *bias = [emitter.cast(emitter.of(v), home, have=dtype) for v in node.operands if v is not None]
    out = _scaled(emitter, _centred(emitter, x, axes), axes, a.epsilon, home)
    out = emitter.op("Mul", [out, scale])
    if bias:
        out = emitter.op("Add", [out, bias[0]])
    return emitter.cast(out, dtype, have=home)


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
    axes, home = tuple(range(a.axis, node.result.type.rank)), dtype.accumulator
    x, scale = [emitter.cast(emitter.of(v), home, have=dtype) for v in node.operands]
    out = emitter.op("Mul", [_scaled(emitter, x, axes, a.epsilon, home), scale])
    return emitter.cast(out, dtype, have=home)


@lowers(n.LP_NORM)
def lp_norm(emitter: Emitter, node: Node) -> str:
    a = node.attributes_as(n.LpNormAttributes)
    return emitter.op("LpNormalization", [emitter.operand(node, 0)], axis=a.axis, p=a.p)
