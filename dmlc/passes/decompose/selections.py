"""Softmax, hardmax and the reductions that are a plain sum of something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from dmlc.ir import Node, Operation, Value, product
from dmlc.ir.dtype import i64
from dmlc.ops.index import ONE_HOT, OneHotAttributes
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX, SoftmaxAttributes
from dmlc.ops.reduce import REDUCE_LOG_SUM_EXP, REDUCTIONS, ReduceAttributes, reduction_of
from dmlc.ops.select import ARGMAX, HARDMAX, ArgAttributes, HardmaxAttributes
from dmlc.passes.decompose.decomposition import Decomposition
from dmlc.passes.manager import EXACT
from dmlc.passes.node_maker import Maker
from dmlc.passes.primitives import accumulated, log_sum_exp, softmax, total_in_parts
from dmlc.passes.rewrite import Miss


class DecomposeSoftmax(Decomposition):
    """A softmax becomes a maximum, powers, their sum and a quotient; its logarithm subtracts the sum's logarithm.

    A group without elements is an error for ReduceMax on some runtimes.
    """

    name = "decompose-softmax"
    roots: ClassVar[tuple[Operation, ...]] = (SOFTMAX, LOG_SOFTMAX)
    operators: ClassVar[tuple[str, ...]] = ("Softmax", "LogSoftmax")

    def why_not(self, node: Node) -> Miss | None:
        return None if node.attributes_as(SoftmaxAttributes).axes else Miss("it is over no axis")

    def parts(self, node: Node, make: Maker) -> Sequence[Value]:
        axes = node.attributes_as(SoftmaxAttributes).axes
        return [accumulated(make, node.operand("x"), lambda x: softmax(make, node.op, x, axes))]


_NOT_PLAIN = tuple([op for op in REDUCTIONS if op.before or op.after])


class DecomposeReduction(Decomposition):
    """A norm, a sum of squares or a logarithm of a sum becomes a plain sum between elementwise operations.

    Of a logarithm of a sum of exponentials the maximum is taken out first.
    """

    name = "decompose-reduction"
    roots: ClassVar[tuple[Operation, ...]] = _NOT_PLAIN
    operators: ClassVar[tuple[str, ...]] = tuple([op.onnx for op in _NOT_PLAIN])

    def why_not(self, node: Node) -> Miss | None:
        return None if node.attributes_as(ReduceAttributes).axes else Miss("it is over no axis")

    def parts(self, node: Node, make: Maker) -> Sequence[Value]:
        if node.op is REDUCE_LOG_SUM_EXP:
            return [log_sum_exp(make, node)]
        record = node.attributes_as(ReduceAttributes)
        return [accumulated(make, node.operand("x"), lambda x: total_in_parts(make, reduction_of(node), x, record))]


class DecomposeHardmax(Decomposition):
    """A hardmax becomes argmax and one_hot."""

    name = "decompose-hardmax"
    roots: ClassVar[tuple[Operation, ...]] = (HARDMAX,)
    operators: ClassVar[tuple[str, ...]] = ("Hardmax",)
    rewrite_class = EXACT

    def why_not(self, node: Node) -> Miss | None:
        axes = node.attributes_as(HardmaxAttributes).axes
        are_neighbours = bool(axes) and axes == tuple(range(axes[0], axes[-1] + 1))
        return None if are_neighbours else Miss("its axes are not neighbours")

    def parts(self, node: Node, make: Maker) -> Sequence[Value]:
        x, axes = node.operand("x"), node.attributes_as(HardmaxAttributes).axes
        shape = x.shape
        if len(axes) > 1:  # one axis of all
            first, last = axes[0], axes[-1]
            x = make.reshape(x, (*shape[:first], product(shape[first : last + 1]), *shape[last + 1 :]))
        axis = axes[0]
        index = make(ARGMAX, x, attributes=ArgAttributes(axes=(axis,), ties="first", dtype=i64, keepdims=False))
        record = OneHotAttributes(depth=x.shape[axis], axis=axis, on=1, off=0, dtype=x.type.dtype)
        return [make.reshape(make(ONE_HOT, index, attributes=record), shape)]
