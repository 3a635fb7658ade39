"""Registry of lowerings, and the call that a lowering receives.

A lowering returns one expression: the result, or a tuple of the results. It is called again with plainer operands if a
line gets too long, so it has no side effects except through ``NumpyCall``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct

from dmlc.codegen.numpy.expr import Argument, Expr, call, method, name
from dmlc.codegen.numpy.literals import dtype_expr, keeps_dtype, number, scalar
from dmlc.ir import Dim, DType, Graph, Node, Operation, Value, product
from dmlc.ir.dtype import f16, f32
from dmlc.ops.constant import constant_of

Style: TypeAlias = Literal["fast", "plain"]

#: Up to here the plain form is as fast as any.
SMALL = 1 << 12


def axis_or_axes(axes: tuple[int, ...]) -> int | tuple[int, ...]:
    """One axis as an integer."""
    return axes[0] if len(axes) == 1 else axes


class Scope(Protocol):
    """The function that is being written."""

    #: The file's name for NumPy, usually ``np``.
    numpy: str
    style: Style
    graph: Graph

    def value(self, value: Value, *, inline: bool) -> Expr:
        """A value: its name or, where that is allowed, the expression that gives it."""

    def dim(self, dim: Dim) -> Expr:
        """A size."""

    def support(self, function: Callable[..., Any]) -> str:
        """The name of a support function, which the file will carry."""

    def may_exceed(self, dim: Dim, most: int) -> bool:
        """Return whether a size may exceed ``most``: it is not proved to be at most that."""

    def may_be_zero(self, dim: Dim) -> bool:
        """Return whether a size may be zero: it is not proved to be 1 or more."""


class NumpyCall:
    """One node, as its lowering sees it."""

    __slots__ = ("attributes", "inline", "node", "scope")

    def __init__(self, scope: Scope, node: Node, *, inline: bool) -> None:
        self.scope: Scope = scope
        self.node: Node = node
        self.attributes: Any = node.attributes
        self.inline: bool = inline

    def operand(self, index: int = 0, *, often: bool = False) -> Expr:
        """An operand as an array; a name where the lowering writes it more than once."""
        value = self.node.operand(index)
        constant = constant_of(value)
        if constant is not None and constant.array.ndim == 0:
            return scalar(constant.array[()], self.scope.numpy)
        return self.scope.value(value, inline=self.inline and not often)

    def beside(self, index: int, other: int) -> Expr:
        """An operand that stands beside another: a constant with one element is a Python number there.

        Not beside a scalar, where NumPy 1 would widen the result.
        """
        value, partner = self.node.operand(index), self.node.operand(other)
        constant = constant_of(value)
        fits = partner.type.rank >= max(1, value.type.rank)
        if constant is None or constant.array.size != 1 or not fits or constant_of(partner) is not None:
            return self.operand(index)
        element = constant.array.reshape(-1)[0]
        return number(element, self.scope.numpy) if keeps_dtype(element) else scalar(element, self.scope.numpy)

    def pair(self) -> tuple[Expr, Expr]:
        """Both operands of an elementwise operation."""
        return self.beside(0, 1), self.beside(1, 0)

    def is_fast(self) -> bool:
        """Return whether the lowering may write the fast form: the style is fast and the first operand may be large."""
        return self.scope.style == "fast" and self.scope.may_exceed(product(self.operand_shape), SMALL)

    @property
    def operand_dtype(self) -> DType:
        """The first operand's dtype."""
        return self.node.operand(0).type.dtype

    @property
    def operand_shape(self) -> tuple[Dim, ...]:
        """The first operand's shape."""
        return self.node.operand(0).shape

    def dim(self, dim: Dim) -> Expr:
        return self.scope.dim(dim)

    def dims(self, dims: tuple[Dim, ...]) -> tuple[Expr, ...]:
        return tuple([self.scope.dim(d) for d in dims])

    def np(self, function: str, *arguments: Argument, **keywords: Argument) -> Expr:
        """``np.function(...)``."""
        return call(f"{self.scope.numpy}.{function}", *arguments, **keywords)

    def support(self, function: Callable[..., Any], *arguments: Argument, **keywords: Argument) -> Expr:
        """A call of a support function."""
        return call(self.scope.support(function), *arguments, **keywords)

    def dtype(self, dtype: DType) -> Expr:
        """``np.float32``."""
        return dtype_expr(dtype, self.scope.numpy)

    def number(self, value: Any) -> Expr:
        """A NumPy scalar as an argument with its dtype."""
        return scalar(value, self.scope.numpy)

    def literal(self, value: Any) -> Expr:
        """A NumPy scalar beside the first operand: a Python number unless the operand is a scalar too."""
        if self.operand_shape and keeps_dtype(value):
            return number(value, self.scope.numpy)
        return self.number(value)

    def cast(self, x: Expr, dtype: DType) -> Expr:
        """``x.astype(np.float32)``."""
        return method(x, "astype", self.dtype(dtype))

    def wide(self, x: Expr) -> Expr:
        """The first operand's f16 as f32, in which all of its sums are taken; others as they are."""
        return self.cast(x, f32) if self.operand_dtype is f16 else x

    def narrow(self, x: Expr) -> Expr:
        """Back from ``wide``."""
        return self.cast(x, f16) if self.operand_dtype is f16 else x

    def ufunc(self, function: str) -> Expr:
        """A function of NumPy as an argument."""
        return name(f"{self.scope.numpy}.{function}")


Lower: TypeAlias = Callable[[NumpyCall], Expr]


class Lowering(Struct, frozen=True):
    """``quiet``: NumPy never warns about it, whatever the values."""

    lower: Lower
    quiet: bool


LOWERINGS: dict[Operation, Lowering] = {}


def lowers(*operations: Operation, quiet: bool = False) -> Callable[[Lower], Lower]:
    """Register the lowering of operations."""

    def register(lower: Lower) -> Lower:
        for operation in operations:
            assert operation not in LOWERINGS, f"{operation.name} is lowered twice"
            LOWERINGS[operation] = Lowering(lower, quiet)
        return lower

    return register
