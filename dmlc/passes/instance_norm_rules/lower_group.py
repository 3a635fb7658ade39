"""A GroupNormalization that no kernel computes becomes what every target has."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dmlc.ir import Graph, Node, TensorType, Value, product
from dmlc.ir.dtype import f16, f32, i64
from dmlc.ops.binary import ADD, MUL
from dmlc.ops.constant import constant_of
from dmlc.ops.move import RESHAPE, UNSQUEEZE, NewAxesAttributes, ReshapeAttributes
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, attribute_of, is_opaque
from dmlc.passes.instance_norm_rules.nodes import GROUP, INSTANCE, averages_several, carry, channels, number
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.rewrite import Match, Miss, Rewriter, Rule


class LowerGroupNorm(Rule[Match]):
    """GroupNormalization becomes an InstanceNormalization of groups between two reshapes, with Mul and Add.

    ``reassociates``. Neither DirectML nor ONNX Runtime's CPU provider has a kernel of it: ONNX Runtime puts the
    operator's function there instead, 29 nodes for 5 (counted with 1.31, which took twice as long).
    """

    name = "lower-group-norm"
    roots = (OPAQUE,)
    rewrite_class = REASSOCIATES

    def match(self, node: Node, graph: Graph) -> Match | None:
        return Match(node) if is_opaque(node, GROUP) else None

    def check(self, match: Match, graph: Graph) -> Miss | None:
        x, scale, bias = match.root.operand(0), match.root.operand(1), match.root.operand(2)
        count, groups = channels(x), attribute_of(match.root, "num_groups")
        if not count or not isinstance(groups, int) or groups < 1 or count % groups:
            return Miss("the channels of {0} are not known to be {1} groups", (x.type, groups))
        if x.type.dtype not in (f16, f32):
            return Miss("{0} has no kernel that is better", (x.type.dtype,), x)
        if {scale.type.dtype, bias.type.dtype} != {x.type.dtype}:
            return Miss("scale and bias are {0} and {1} beside {2}", (scale.type, bias.type, x.type), scale)
        if scale.shape != bias.shape or scale.shape not in ((count,), (groups,)):
            return Miss("scale and bias are {0} and {1} for {2} channels", (scale.type, bias.type, count), scale)
        return None

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        x, scale, bias = match.root.operand(0), match.root.operand(1), match.root.operand(2)
        count, groups = channels(x), attribute_of(match.root, "num_groups")
        assert count is not None
        attributes = {"epsilon": attribute_of(match.root, "epsilon", 1e-5)}
        each = count // groups
        per_group = scale.shape == (groups,)
        ones, zeros = (number(rewriter, np.full(groups, n), x.type.dtype) for n in (1, 0))
        has_bias = per_group and averages_several(rewriter.graph, x, each)
        operands = [scale if per_group else ones, bias if has_bias else zeros]
        if groups == count and x.type.rank > 2:
            out = carry(rewriter, INSTANCE, [x, *operands], x.type, attributes)
        else:
            inner = _grouped(rewriter, x, groups, each)
            out = _back(rewriter, carry(rewriter, INSTANCE, [inner, *operands], inner.type, attributes), x)
        if not per_group:
            out = rewriter.add(MUL, [out, _standing(rewriter, scale, x)])
        return [out if has_bias else rewriter.add(ADD, [out, _standing(rewriter, bias, x)])]


def _grouped(rewriter: Rewriter, x: Value, groups: int, each: int) -> Value:
    """The channels of each group in one row."""
    shape = (x.shape[0], groups, each * product(x.shape[2:]))
    if x.type.is_static:
        return rewriter.add(RESHAPE, [x], ReshapeAttributes(shape=shape))
    sizes = number(rewriter, np.array([0, groups, -1]), i64)
    return carry(rewriter, "Reshape", [x, sizes], x.type.with_shape(shape), {})


def _back(rewriter: Rewriter, value: Value, x: Value) -> Value:
    """The value in the shape of x. Below opset 14 no reshape takes open sizes that may be 0, and a carried one does as
    exporters do."""
    if x.type.is_static or rewriter.graph.opset >= 14:
        return rewriter.add(RESHAPE, [value], ReshapeAttributes(shape=x.shape))
    sizes = OpaqueAttributes(op_type="Shape", types=(TensorType(i64, (x.type.rank,)),))
    return carry(rewriter, "Reshape", [value, rewriter.add(OPAQUE, [x], sizes)], x.type, {})


def _standing(rewriter: Rewriter, value: Value, x: Value) -> Value:
    """One number for each channel, along axis 1 of x."""
    axes = tuple(range(1, x.type.rank - 1))
    known = constant_of(value)
    if known is not None:
        return number(rewriter, known.array.reshape(-1, *[1] * len(axes)), value.type.dtype)
    return rewriter.add(UNSQUEEZE, [value], NewAxesAttributes(axes=axes)) if axes else value
