"""Declarations to values: ``dim`` and ``const`` lines, and written types such as ``f32[N, 3]``."""

from __future__ import annotations

from typing import Any

import numpy as np

from dmlc.diagnostics import DmlcError, Label, Proposal, fail, writing
from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.diagnostics.counted import counted
from dmlc.diagnostics.limits import Limits
from dmlc.ir import Dim, DimExpr, OpError, Tensor, TensorType
from dmlc.ir.fixed_shapes import LARGEST_SIZE, is_too_large
from dmlc.ir.size_number import SizeNumber
from dmlc.ops.attributes import integer_help, size_help
from dmlc.ops.call import CallSite
from dmlc.ops.literals import literal_array
from dmlc.text.elaborate.blocks import Block
from dmlc.text.elaborate.evaluate import Asked
from dmlc.text.elaborate.files import Folders, LoadError, load_tensor
from dmlc.text.elaborate.scope import POISON, Frame, Unit, bare
from dmlc.text.syntax import tree


def type_of(unit: Unit, written: tree.Type) -> TensorType:
    """The type that was written. Raises ``DmlcError`` E0211, E0332, E0336."""
    block = Block(unit, Frame())
    dtype = block.dtype(written.dtype)
    assert dtype is not None
    if len(written.sizes) > unit.limits.rank:
        raise unit.limits.passed("rank", "this type has", len(written.sizes), Label(written.span))
    shape = tuple([_size(block.evaluate(s, Asked.SIZE), s) for s in written.sizes])
    if is_too_large(shape):
        raise fail(codes.WRONG_SIZE, "a tensor has at most 2^63 - 1 elements", Label(written.span))
    return TensorType(dtype, shape)


def _size(value: Any, expr: tree.Expr) -> Dim:
    if isinstance(value, DimExpr):
        return value
    if isinstance(value, SizeNumber):
        raise fail(codes.WRONG_SIZE, f"sizes have no {value.sign}", Label(expr.span), help=size_help(value))
    if not isinstance(value, int) or isinstance(value, bool):
        help = integer_help(value) or "sizes look like 3, N, N * 2"
        raise fail(codes.WRONG_SIZE, "a size is an integer or a dim", Label(expr.span), help=help)
    if not 0 <= value <= LARGEST_SIZE:
        what = "a dynamic size has a name, such as N" if value == -1 else "a size is 0 or more, and fits 64 bits"
        raise fail(codes.WRONG_SIZE, f"{value} is not a size", Label(expr.span), help=what)
    return value


def read_bounds(unit: Unit, line: tree.Dim) -> tuple[int, int]:
    """The bounds of a dim line. Raises E0333."""
    bounds = []
    for expr in (line.low, line.high):
        value = Block(unit, Frame()).evaluate(expr, Asked.KNOWN)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= LARGEST_SIZE:
            message = "a bound is an integer, 0 or more"
            help = integer_help(value) or "write lo..hi, such as 1..64"
            raise fail(codes.WRONG_BOUNDS, message, Label(expr.span), help=help)
        bounds.append(value)
    low, high = bounds
    if low > high:
        label = Label(line.low.span.to(line.high.span), "no size is between")
        raise fail(codes.WRONG_BOUNDS, f"{low} is more than {high}", label, help=writing(f"{high}..{low}"))
    return low, high


def read_const(unit: Unit, line: tree.Const, folders: Folders) -> Tensor | None:
    """The data of a const; None after a mistake, which is noted in the unit."""
    try:
        if unit.names.open_consts > unit.limits.nesting:
            label, instead = Label(line.name.span), "put consts behind those that they use"
            raise unit.limits.passed("nesting", "consts nest", unit.names.open_consts, label, instead=instead)
        wanted = type_of(unit, line.type)
        sizes = [size for size in wanted.shape if not isinstance(size, int)]
        if sizes:
            message = f"the size {sizes[0]} of a const is not known; its sizes are integers"
            raise fail(codes.WRONG_SIZE, message, Label(line.type.span), help="write the number")
        value = bare(line.value)
        if isinstance(value, tree.Call) and [part.text for part in value.callee] == ["load"]:
            return _load(value, wanted, line.name.text, folders, unit.limits)
        return _List(unit, line.name.text, wanted).read(value)
    except DmlcError as error:
        unit.problems.add(error)
        return None


def _load(call: tree.Call, wanted: TensorType, const: str, folders: Folders, limits: Limits) -> Tensor:
    texts = [bare(operand) for operand in call.operands]
    strings = [text.text for text in texts if isinstance(text, tree.String)]
    if call.keywords or len(strings) != len(texts) or len(strings) not in (1, 2):
        help = 'write load("w.npy") or load("w.npz", "key")'
        raise fail(codes.NOT_KNOWN, "load takes the name of a file, and the key of a .npz", Label(call.span), help=help)
    try:
        return load_tensor(folders, strings[0], strings[1] if len(strings) == 2 else None, wanted, const, limits)
    except LoadError as error:
        found = error.help
        if isinstance(found, Proposal):
            found = found.with_parts(lambda change: texts[0].span)  # the name of the file
        raise fail(error.code, error.message, Label(call.span), help=found) from None


class _List:
    """Numbers in nested lists, as a tensor of a type."""

    def __init__(self, unit: Unit, name: str, wanted: TensorType) -> None:
        self.block = Block(unit, Frame())
        self.name = name
        self.wanted = wanted
        self.shape = [int(str(size)) for size in wanted.shape]
        self.elements: list[Any] = []

    def read(self, expr: tree.Expr) -> Tensor:
        self.axis(expr, 0)
        array = np.array(self.elements, dtype=self.wanted.dtype.numpy)
        return Tensor(array.reshape(self.shape))

    def axis(self, expr: tree.Expr, axis: int) -> None:
        """The elements along one axis. A type has at most 64 of them, so this may call itself."""
        expr = bare(expr)
        if axis == len(self.shape):
            self.elements.append(self.element(expr))
            return
        if not isinstance(expr, tree.ListOf):
            raise self.misfit(expr, f"a number, where a list of {self.shape[axis]} belongs")
        if len(expr.items) != self.shape[axis]:
            message = f"a list has {counted(len(expr.items), 'element')}, axis {axis} has {self.shape[axis]}"
            raise self.misfit(expr, message)
        for item in expr.items:
            self.axis(item, axis + 1)

    def element(self, expr: tree.Expr) -> Any:
        if isinstance(expr, tree.ListOf):
            raise self.misfit(expr, "a number is needed here, not a list")
        value = self.block.evaluate(expr, Asked.KNOWN)
        if value is POISON:
            raise DmlcError(())  # the mistake is noted
        if not isinstance(value, (bool, int, float)):
            message = "a const holds numbers"
            raise fail(codes.NOT_KNOWN, message, Label(expr.span), help="write numbers, lists of them, or load(...)")
        try:
            return literal_array(value, self.wanted.dtype, 0)[()]
        except OpError as error:
            raise self.block.located(error, CallSite(expr.span, (expr.span,))) from None

    def misfit(self, expr: tree.Expr, message: str) -> DmlcError:
        help = f"{self.name} is {self.wanted}"
        return fail(codes.CONST_SHAPE, message, Label(expr.span), help=help)
