"""Softmax and its logarithm: the kernel, or its parts.

ONNX Runtime's CPU provider has a kernel for the last axis. For others it transposes twice, and the parts cost less
unless the runs behind the axis are short.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar

from dmlc.ir import DType, Graph, Node, Operation, Value
from dmlc.ops.normalize import LOG_SOFTMAX, SOFTMAX, SoftmaxAttributes
from dmlc.ops.reduce import REDUCE_MAX, REDUCE_SUM
from dmlc.passes.choose_lowering.plan import Maker, Plan, Sizes, Standing, Step
from dmlc.passes.choose_lowering.reduce import chain_steps, home_of, reduce_step, why_not_in_parts
from dmlc.passes.choose_lowering.view import after, view_of
from dmlc.passes.layouts import is_unit
from dmlc.passes.manager import REASSOCIATES
from dmlc.passes.node_maker import groups
from dmlc.passes.primitives import accumulated, softmax

ROOTS = (SOFTMAX, LOG_SOFTMAX)
#: From so many bytes between neighbours on a transpose is slowed down by the cache.
_PAGE = 4096


#: The steps of a reduction: of an operation and a dtype, a shape and axes.
Reductions = Callable[[Operation, DType, Sequence[int], Sequence[int]], Sequence[Step]]


def broadcast_step(dtype: DType, shape: Sequence[int], axes: Sequence[int]) -> Step:
    """An elementwise node whose second operand is the same along the axes."""
    total = math.prod(shape)
    flags = [i in axes for i in range(len(shape)) if shape[i] != 1]
    sizes = [d for d in shape if d != 1]
    run = 1
    for size, flag in zip(reversed(sizes), reversed(flags), strict=True):
        if flag is not flags[-1]:
            break
        run *= size
    return Step("Broadcast", dtype, total, total, run)


def _axes(node: Node) -> tuple[int, ...]:
    return node.attributes_as(SoftmaxAttributes).axes


def one_reduction(op: Operation, dtype: DType, shape: Sequence[int], axes: Sequence[int]) -> Sequence[Step]:
    """The reduction as one node."""
    return [reduce_step(op, dtype, shape, axes)]


def shifted_powers(
    home: DType, shape: Sequence[int], axes: Sequence[int], reduce: Reductions, *, log: bool
) -> tuple[list[Step], int]:
    """Maximum, difference, power, sum, and its logarithm; and the number of its elements."""
    total = math.prod(shape)
    small = total // max(math.prod([shape[a] for a in axes]), 1)
    out = [*reduce(REDUCE_MAX, home, shape, axes)]
    out += [broadcast_step(home, shape, axes), Step("Exp", home, total, total)]
    out += reduce(REDUCE_SUM, home, shape, axes)
    return out + [Step("Log", home, small, small)] * log, small


def _parts_steps(node: Node, sizes: Sizes, reduce: Reductions) -> list[Step]:
    home, shape, axes = home_of(node), sizes.of(node.operand("x")), _axes(node)
    powers, _ = shifted_powers(home, shape, axes, reduce, log=node.op is LOG_SOFTMAX)
    return [*powers, broadcast_step(home, shape, axes)]


class SoftmaxAsItStands(Standing):
    """One node where the axes are neighbours."""

    roots: ClassVar[tuple[Operation, ...]] = ROOTS

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Step]:
        axes, home = _axes(node), home_of(node)
        view = view_of(node.graph, node, axes)
        if not axes or len(view.groups) > 1 or len(groups(axes)) > 1:
            return _parts_steps(node, sizes, one_reduction)
        shape = view.at(sizes)
        (segment,) = view.groups
        total = math.prod(shape)
        behind = after(shape, segment)
        far = behind * home.numpy.itemsize >= _PAGE
        kernel = "Softmax" if behind == 1 else "Softmax far" if far else "Softmax strided"
        return [Step(kernel, home, total, total, shape[segment])]


class SoftmaxInParts(Plan):
    """A softmax that is not along the last axes becomes a maximum, powers, their sum and a quotient.

    The logarithm of a softmax subtracts the logarithm of the sum instead.
    """

    name: ClassVar[str] = "softmax-in-parts"
    roots: ClassVar[tuple[Operation, ...]] = ROOTS
    rewrite_class = REASSOCIATES

    def applies(self, node: Node, graph: Graph) -> str | None:
        if all(is_unit(graph, node.operand("x").shape[axis]) for axis in _axes(node)):
            return "its axes have one element, whose reductions are nodes all the same"
        return why_not_in_parts(self.capabilities, REDUCE_MAX, node, _axes(node))

    def steps(self, node: Node, sizes: Sizes) -> Sequence[Step]:
        return _parts_steps(node, sizes, chain_steps)

    def build(self, node: Node, make: Maker) -> Sequence[Value]:
        return [accumulated(make, node.operand("x"), lambda x: softmax(make, node.op, x, _axes(node)))]


PLANS: Sequence[type[Plan]] = (SoftmaxAsItStands, SoftmaxInParts)
