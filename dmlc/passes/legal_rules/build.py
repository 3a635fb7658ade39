"""Base class of the rules of ``legalize``, and the helpers that make nodes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from dmlc.ir import Attributes, Dim, DType, Graph, Node, Operation, Tensor, Value, product
from dmlc.ops.choose import CAST, CastAttributes
from dmlc.ops.constant import CONSTANT, ConstantAttributes, constant_of
from dmlc.ops.move import RESHAPE, ReshapeAttributes
from dmlc.passes.legal_rules.table import KernelSupport
from dmlc.passes.rewrite import Match, Rewriter, Rule


class Maker:
    """Short spellings for the nodes that rules make."""

    __slots__ = ("rewriter",)

    def __init__(self, rewriter: Rewriter) -> None:
        self.rewriter = rewriter

    def __call__(self, op: Operation, *operands: Value, attributes: Attributes | None = None) -> Value:
        return self.rewriter.add(op, operands, attributes)

    def constant(self, value: Any, dtype: DType) -> Value:
        """A constant; integers wrap to the dtype."""
        array = np.asarray(value)
        if dtype.is_integer and array.dtype == object:
            array = np.asarray(array % 2**64).astype(np.uint64)
        return self(CONSTANT, attributes=ConstantAttributes(value=Tensor(array.astype(dtype.numpy))))

    def cast(self, value: Value, dtype: DType) -> Value:
        """The value in that dtype; itself where it has it, a new constant where it is one."""
        if value.type.dtype is dtype:
            return value
        data = constant_of(value)
        if data is not None:
            return self.constant(data.array, dtype)
        return self(CAST, value, attributes=CastAttributes(to=dtype))

    def reshape(self, value: Value, shape: Sequence[Dim]) -> Value:
        return (
            value
            if value.shape == tuple(shape)
            else self(RESHAPE, value, attributes=ReshapeAttributes(shape=tuple(shape)))
        )


class LegalRule(Rule[Match]):
    """A rule whose root alone says whether it fires. A node as an imported model has it is what its user runs.

    ``keeps_promise`` rules see to what the language says and ONNX does not (integers that wrap): imported models have
    what their runtime does.
    """

    optional = False
    keeps_promise: ClassVar[bool] = False

    def __init__(self, facts: KernelSupport) -> None:
        self.facts = facts

    def match(self, node: Node, graph: Graph) -> Match | None:
        if (node.origin is not None and not _is_lowered(node, graph)) or (self.keeps_promise and graph.dims.least == 0):
            return None
        return Match(node) if self.wants(node, graph) else None

    @abstractmethod
    def wants(self, node: Node, graph: Graph) -> bool:
        """Return whether the node is not legal as it stands."""

    def build(self, match: Match, rewriter: Rewriter) -> Sequence[Value]:
        return [self.make(match.root, Maker(rewriter))]

    def make(self, node: Node, make: Maker) -> Value:
        """Return the replacement of the only result."""
        raise NotImplementedError


#: From here on a lower opset takes what a higher one does, but for types that the language lacks.
_WIDE_OPSET = 20


def _is_lowered(node: Node, graph: Graph) -> bool:
    """Return whether an imported node has an older opset, whose operator may not take its type."""
    return bool(graph.opset < min(node.origin.version, _WIDE_OPSET))


def dtype_of(node: Node) -> DType:
    """The dtype of the first operand."""
    return node.operand(0).type.dtype


def groups(axes: Sequence[int]) -> list[tuple[int, int]]:
    """Sorted axes as runs of neighbours: (first, last + 1) of each."""
    out: list[tuple[int, int]] = []
    for axis in axes:
        if out and out[-1][1] == axis:
            out[-1] = (out[-1][0], axis + 1)
        else:
            out.append((axis, axis + 1))
    return out


def around(shape: Sequence[Dim], first: int, last: int) -> tuple[Dim, Dim, Dim]:
    """Return the number of elements before, within and after the axes ``first`` to before ``last``."""
    return product(shape[:first]), product(shape[first:last]), product(shape[last:])
