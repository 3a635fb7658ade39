"""Registry of lowerings, and the call that a lowering receives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from dmlc.codegen.dxdispatch.builder import DispatchBuilder
from dmlc.codegen.dxdispatch.view import BufferView, Sizes
from dmlc.ir import DType, Node, Operation, Value, evaluate
from dmlc.ops.constant import constant_of


class DispatchCall:
    """One node, as its lowering sees it."""

    __slots__ = ("attributes", "build", "node", "views")

    def __init__(self, build: DispatchBuilder, node: Node, views: dict[Value, BufferView]) -> None:
        self.build: DispatchBuilder = build
        self.node: Node = node
        self.attributes: Any = node.attributes
        self.views: dict[Value, BufferView] = views

    def view(self, index: int = 0) -> BufferView:
        """An operand as a tensor."""
        return view_of(self.node.operand(index), self.build, self.views)

    @property
    def sizes(self) -> Sizes:
        """The sizes of the first result."""
        return static(self.node.results[0])

    @property
    def dtype(self) -> DType:
        """The dtype of the first result."""
        return self.node.results[0].type.dtype


def view_of(value: Value, build: DispatchBuilder, views: dict[Value, BufferView]) -> BufferView:
    """A value as a tensor; a constant is made when it is first asked for."""
    if value not in views:
        tensor = constant_of(value)
        assert tensor is not None
        views[value] = build.constant(tensor)
    return views[value]


def static(value: Value) -> Sizes:
    return tuple(evaluate(size, {}) for size in value.shape)


Lower: TypeAlias = Callable[[DispatchCall], "BufferView | list[BufferView]"]

LOWERINGS: dict[Operation, Lower] = {}
#: Lowerings of ONNX operators by name, for nodes without an equivalent operation of the language.
ONNX_LOWERINGS: dict[str, Lower] = {}


def lowering_of(node: Node) -> Lower | None:
    """Return the lowering of a node; None if DirectML's operators cannot express it."""
    return LOWERINGS.get(node.op) or ONNX_LOWERINGS.get(getattr(node.attributes, "full_name", ""))


def lowers_onnx(name: str) -> Callable[[Lower], Lower]:
    """Register the lowering of an ONNX operator."""

    def register(lower: Lower) -> Lower:
        assert name not in ONNX_LOWERINGS, f"{name} is lowered twice"
        ONNX_LOWERINGS[name] = lower
        return lower

    return register


def lowers(*operations: Operation) -> Callable[[Lower], Lower]:
    """Register the lowering of operations."""

    def register(lower: Lower) -> Lower:
        for operation in operations:
            assert operation not in LOWERINGS, f"{operation.name} is lowered twice"
            LOWERINGS[operation] = lower
        return lower

    return register
