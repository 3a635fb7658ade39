"""Repairs of normalizations."""

from __future__ import annotations

import math

from dmlc.ir import FOREIGN, Graph, Node, OpError
from dmlc.ir.dtype import f32
from dmlc.onnx_schema.domains import MICROSOFT
from dmlc.ops.normalize import LAYER_NORM, LP_NORM, LpNormAttributes, NormAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of
from dmlc.passes.expressions import Sketch, Term
from dmlc.passes.lowering import KEEP, Lowered, NodeRule, lowers
from dmlc.passes.manager import EXACT, REASSOCIATES, PassContext
from dmlc.passes.primitives import centred, deviation, lp_norm
from dmlc.passes.rewrite import Match, Miss

#: The type of Mean and InvStdDev, f32, as LayerNormalization's attribute says it.
_F32 = 1
#: Means that are so many deviations from 0 cost a norm of f32 a thousandth.
_FAR = 32


def _class_of_results(rule: NodeRule, match: Match, graph: Graph, context: PassContext) -> str:
    return REASSOCIATES if any(v.uses for v in match.root.results[1:]) else EXACT


@lowers(
    onnx=("LayerNormalization",),
    optional=True,
    repairs=("layer-norm-results",),
    gives=_class_of_results,
    rewrite_class=REASSOCIATES,
)
def one_layer_norm_result(e: Sketch, node: Node, x: Term, *factors: Term | None) -> Lowered:
    """A LayerNormalization loses Mean and InvStdDev; where one is used, other nodes compute it.

    ``exact`` where none is used, else ``reassociates``.
    """
    fault = e.target.fault("layer-norm-results", "LayerNormalization")
    kernel = e.target.kernel("LayerNormalization")
    if fault is None or len(node.results) < 2 or kernel is None or x.dtype.name not in kernel.types["T"]:
        return KEEP
    if attribute_of(node, "stash_type", _F32) != _F32:
        return Miss("its statistics are not f32")
    record = _record(node)
    try:
        out = e(LAYER_NORM, x, *[v for v in factors if v is not None], attributes=record)
    except OpError as error:
        return Miss("{0}", (str(error),))
    if not any(v.uses for v in node.results[1:]):
        return out
    axes = range(record.axis, x.rank)
    rest, mean = centred(e, x.cast(f32), axes)
    return [out, mean, e.reciprocal(deviation(e, rest, axes, record.epsilon))][: len(node.results)]


def _record(node: Node) -> NormAttributes:
    axis = int(attribute_of(node, "axis", -1))
    rank = node.operand(0).type.rank
    return NormAttributes(axis=axis + rank if axis < 0 else axis, epsilon=attribute_of(node, "epsilon", 1e-5))


_FULL, _SIMPLIFIED = f"{MICROSOFT}.SkipLayerNormalization", f"{MICROSOFT}.SkipSimplifiedLayerNormalization"
#: The operand of the simplified form that is a bias, and that the provider reads as another.
_BIAS = 3


@lowers(onnx=(_FULL, _SIMPLIFIED), optional=True, repairs=("skip-norm-bias", "skip-norm-broadcast"), gives=REASSOCIATES)
def plain_skip_norm(e: Sketch, node: Node, *operands: Term | None) -> Lowered:
    """A skip that broadcasts is expanded, and the bias of the simplified form is added before the node."""
    simplified = node.attributes_as(OpaqueAttributes).full_name == _SIMPLIFIED
    x, skip, *rest = operands
    if x is None or skip is None or FOREIGN in (x.dtype, skip.dtype):
        return KEEP
    bias = operands[_BIAS] if simplified and len(operands) > _BIAS else None
    if bias is None and not _broadcasts(skip, x):
        return KEEP
    if bias is not None:
        skip, rest = skip + bias.reshape(skip.shape[-1:]), rest[:1]
    if _broadcasts(skip, x):
        skip = e.expand(skip, shape=x.shape)
    return e.results(OPAQUE, x, skip, *rest, attributes=node.attributes)


def _broadcasts(skip: Term, x: Term) -> bool:
    """Return whether the skip broadcasts. Open sizes of which neither is 1 are equal in every model that runs."""
    return skip.rank != x.rank or any(m != n and m == 1 for m, n in zip(skip.shape, x.shape, strict=True))


@lowers(
    LAYER_NORM, onnx=("LayerNormalization",), optional=True, repairs=("norm-far-mean",), gives=REASSOCIATES, trusts=True
)
def centred_norm(e: Sketch, node: Node, x: Term, *_: Term | None) -> Lowered:
    """The mean is taken off before a layer normalization, where ranges show it far from 0.

    The result is the same but for rounding, and the kernel's difference of squares loses no digits then.
    """
    if len(node.results) > 1 or e.target.fault("norm-far-mean", "LayerNormalization") is None:
        return KEEP
    low, high = e.interval(x)
    is_far = (low > 0 or high < 0) and min(abs(low), abs(high)) > _FAR * (high - low) / 2
    if not is_far or not math.isfinite(high - low):
        return KEEP
    record = node.attributes_as(NormAttributes) if node.op is LAYER_NORM else _record(node)
    return e.again(node, centred(e, x, range(record.axis, x.rank))[0])


@lowers(LP_NORM, optional=True, repairs=("lp-epsilon",), gives=REASSOCIATES)
def lp_norm_in_parts(e: Sketch, node: Node, x: Term) -> Lowered:
    """lp_norm becomes a division by its norm; a row of zeros is divided by 1."""
    ask, a = e.target, node.attributes_as(LpNormAttributes)
    if ask.fault("lp-epsilon", "LpNormalization") is None or ask.leaves("LpNormalization", x.dtype):
        return KEEP
    return lp_norm(e, x.widened(), a.axis, a.p).cast(x.dtype)
