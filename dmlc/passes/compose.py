"""``compose``: operations that the target has no operator for are computed by others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dmlc.ir import Graph, Node, Operation, Value, product
from dmlc.ir.dtype import f16, f32
from dmlc.ops.elementwise import UNARY, UnaryOperation
from dmlc.ops.index import GATHER, GATHER_ELEMENTS, GatherAttributes, IndexAttributes
from dmlc.ops.move import EXPAND, ExpandAttributes
from dmlc.ops.reduce import REDUCE_LOG_SUM_EXP, REDUCE_MAX, ReduceAttributes
from dmlc.passes.layouts import reshape_ones
from dmlc.passes.legalize.widen import LegalRule
from dmlc.passes.manager import PassContext
from dmlc.passes.node_maker import Maker, composed_of, dtype_of
from dmlc.passes.primitives import log_sum_exp
from dmlc.passes.rewrite import Match, RewritePass, Rule
from dmlc.targets.needed_kernels import UNCHECKED


class ComposeUnary(LegalRule):
    """An elementwise function without an operator at the opset, or a kernel for its dtype, is written in others.

    The language fixes no rounding of such functions. A node of a model stays as it is at the model's own opset, where
    ONNX Runtime may run it by ONNX's definition.
    """

    name = "compose-unary"
    roots: ClassVar[tuple[Operation, ...]] = tuple([op for op in UNARY if op.composed is not None])

    def match(self, node: Node, graph: Graph) -> Match | None:
        if node.origin is not None and (graph.origin is None or graph.opset == graph.origin.versions.get("", 1)):
            return None
        return Match(node) if self.wants(node, graph) else None

    def wants(self, node: Node, graph: Graph) -> bool:
        return node.op in UNCHECKED or self.capabilities.compute_dtype(node.op, dtype_of(node)) is None

    def make(self, node: Node, make: Maker) -> Value:
        own = dtype_of(node)
        is_widened = own is f16 and not self.capabilities.target.native_f16
        dtype = f32 if is_widened else own  # so it is rounded once
        assert isinstance(node.op, UnaryOperation)
        return make.cast(composed_of(make, node.op, make.cast(node.operand("x"), dtype), node.attributes), own)


class GatherByElements(LegalRule):
    """A gather with batch axes before other axes becomes one of elements, at indices that are repeated.

    ONNX's GatherND, from opset 12 on, gathers along the first axis behind the batch axes.
    """

    name = "gather-by-elements"
    roots: ClassVar[tuple[Operation, ...]] = (GATHER,)

    def wants(self, node: Node, graph: Graph) -> bool:
        a = node.attributes_as(GatherAttributes)
        return a.batch_axes > 0 and (a.axis > a.batch_axes or self.capabilities.opset < _GATHER_ND)

    def make(self, node: Node, make: Maker) -> Value:
        a = node.attributes_as(GatherAttributes)
        x, i = node.operand("x"), node.operand("i")
        between, behind = a.axis - a.batch_axes, x.type.rank - a.axis - 1
        count = product(i.shape[a.batch_axes :])
        row = make.reshape(i, (*i.shape[: a.batch_axes], *[1] * between, count, *[1] * behind))
        shape = (*x.shape[: a.axis], count, *x.shape[a.axis + 1 :])
        if row.shape != shape:
            row = make(EXPAND, row, attributes=ExpandAttributes(shape=shape))
        found = make(GATHER_ELEMENTS, x, row, attributes=IndexAttributes(axis=a.axis))
        return make.reshape(found, node.result.shape)


class LogSumExpBesideMax(LegalRule):
    """A log-sum-exp takes out the maximum over the same axes, where that is computed too.

    Its lowering computes the maximum itself. An infinite one counts as the largest number, so that no infinity is
    subtracted from itself.
    """

    name = "log-sum-exp-beside-max"
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_LOG_SUM_EXP,)

    def match(self, node: Node, graph: Graph) -> Match | None:
        is_one_node = graph.dims.least == 0 and self.capabilities.target.portable
        return None if is_one_node else super().match(node, graph)

    def wants(self, node: Node, graph: Graph) -> bool:
        return _maximum_beside(node) is not None

    def make(self, node: Node, make: Maker) -> Value:
        beside, axes, own = _maximum_beside(node), node.attributes_as(ReduceAttributes).axes, dtype_of(node)
        assert beside is not None
        kept = tuple([1 if axis in axes else size for axis, size in enumerate(node.operand("x").shape)])
        peak = make(REDUCE_MAX, node.operand("x"), attributes=beside.attributes)
        peak = make.cast(reshape_ones(make.rewriter, peak, kept), own.accumulator)
        return log_sum_exp(make, node, is_fused=self.capabilities.target.costs is None, peak=peak)


class LowerLogSumExp(LegalRule):
    """A log-sum-exp has its maximum taken out.

    DirectML's own operator overflows, and ONNX Runtime's CPU provider is several times faster so. A node of a model
    keeps ONNX's operator, and so does a model's log-sum-exp that is to run anywhere. ``shift-log-sum-exp`` takes up
    those that go wrong on DirectML, where that is allowed.
    """

    name = "lower-log-sum-exp"
    roots: ClassVar[tuple[Operation, ...]] = (REDUCE_LOG_SUM_EXP,)

    def wants(self, node: Node, graph: Graph) -> bool:
        is_one_node = node.origin is not None or (graph.dims.least == 0 and self.capabilities.target.portable)
        return not is_one_node and bool(node.attributes_as(ReduceAttributes).axes)

    def make(self, node: Node, make: Maker) -> Value:
        return log_sum_exp(make, node, is_fused=self.capabilities.target.costs is None)


def _maximum_beside(node: Node) -> Node | None:
    """The maximum of the same value over the same axes."""
    axes = node.attributes_as(ReduceAttributes).axes
    beside = [user for user in node.operand("x").users if user.op is REDUCE_MAX]
    return next((user for user in beside if user.attributes_as(ReduceAttributes).axes == axes), None)


#: The first opset whose GatherND has batch_dims.
_GATHER_ND = 12
_RULES: Sequence[type[LegalRule]] = (ComposeUnary, GatherByElements, LogSumExpBesideMax, LowerLogSumExp)


class Compose(RewritePass, frozen=True):
    """Runs before the repairs, so that they see the nodes that the program will have."""

    name: ClassVar[str] = "compose"
    summary: ClassVar[str] = "Write operations that the target has no operator for in others."

    def rules(self, context: PassContext) -> Sequence[type[Rule[Any]]]:
        return [] if context.capabilities.table is None else _RULES
