"""The operators that are dispatched, one after another, and the buffers between them."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from dmlc.codegen.dxdispatch.json_text import type_name
from dmlc.codegen.dxdispatch.table import rows
from dmlc.codegen.dxdispatch.view import Buffer, BufferView, Sizes, broadcast_sizes, merged, packed
from dmlc.diagnostics import Code, DmlcError, Label, fail
from dmlc.diagnostics.catalogue import dxdispatch as codes
from dmlc.diagnostics.catalogue.targets import TOO_MANY_AXES
from dmlc.ir import DTYPE_BY_NAME, DType, Node, Tensor, TensorType
from dmlc.ir.dtype import bool_, i32, i64, u32
from dmlc.targets.directml import refusal

MAX_RANK = 8
#: A size, a count and an index are UINT in DirectML.
_MOST_ELEMENTS = 2**32 - 1

Field: TypeAlias = "BufferView | list[BufferView] | int | float | bool | str | list[int] | dict[str, Any]"


class Dispatch(Struct, frozen=True):
    """One operator; its fields in the order of the struct, tensors among them."""

    operator: str
    fields: dict[str, Field]


class DispatchBuilder(Struct):
    """Dispatches, buffers and constants made so far. ``node`` is the one being lowered, for messages."""

    level: str
    dispatches: list[Dispatch] = field(default_factory=list)
    node: Node | None = None
    _constants: dict[Tensor, BufferView] = field(default_factory=dict)

    def refuse(self, code: Code, message: str, help: str = "") -> DmlcError:
        """The error, at the line that the node came from."""
        labels = [] if self.node is None else [Label(span) for span in self.node.spans[:1]]
        return fail(code, message, *labels, help=help)

    # --- buffers

    def new(self, dtype: DType, sizes: Sizes) -> BufferView:
        """A new tensor. Raises ``DmlcError`` E0582, E0583."""
        self.check_size(dtype, sizes)
        view = packed(Buffer(dtype, 1), sizes)
        view.buffer.count = view.count
        return view

    def check_size(self, dtype: DType, sizes: Sizes) -> None:
        """Raises ``DmlcError`` E0582 for an empty tensor, E0583 for one of 2^32 elements or more."""
        text = str(TensorType(dtype, sizes))
        if 0 in sizes:
            raise self.refuse(codes.EMPTY, f"DirectML has no empty tensors: there is a {text}", "bind a larger size")
        if int(np.prod(sizes, dtype=object)) > _MOST_ELEMENTS:
            message = f"DirectML counts elements in 32 bits: {text} has too many"
            raise self.refuse(codes.REFUSED, message, "bind smaller sizes")

    def constant(self, tensor: Tensor) -> BufferView:
        """Return a constant. If all elements are equal, one is stored and broadcast."""
        if tensor not in self._constants:
            array, dtype = tensor.array, tensor.dtype
            sizes = tuple(array.shape)
            self.check_size(dtype, sizes)
            first = array.reshape(-1)[:1]
            if array.size > 1 and array.tobytes() == first.tobytes() * array.size:
                self._constants[tensor] = self.constant(Tensor(first.reshape(()))).broadcast(sizes)
            else:
                self._constants[tensor] = packed(Buffer(dtype, array.size, data=array), sizes)
        return self._constants[tensor]

    def scalar(self, value: Any, dtype: DType) -> BufferView:
        return self.constant(Tensor(np.array(value).astype(dtype.numpy)))

    def iota(self, dtype: DType, count: int) -> BufferView:
        """0, 1, 2 and so on. DxDispatch adds up, which f16 and f32 can only so far."""
        self.check_size(dtype, (count,))
        if dtype.is_float and count > 2 ** (np.finfo(dtype.numpy).nmant + 1) + 1:
            return self.constant(Tensor(np.arange(count).astype(dtype.numpy)))
        return packed(Buffer(dtype, count, iota=True), (count,))

    # --- dispatches

    def call(self, operator: str, **fields: Field) -> None:
        """Dispatch an operator. Raises ``DmlcError`` E0583, E0503 where DirectML's table refuses a tensor."""
        row = f"{operator}.{fields['Function']}" if operator == "REDUCE" else operator
        for name, value in fields.items():
            for view in value if isinstance(value, list) else [value]:
                if isinstance(view, BufferView):
                    self._check(row, name, view)
        self.dispatches.append(Dispatch(operator, fields))

    def _check(self, row: str, name: str, view: BufferView) -> None:
        found = refusal(rows()[row], {name: (view.dtype.name, view.rank)}, self.level)
        if found is None:
            return
        if view.rank > MAX_RANK:
            help = "merge neighbouring axes with reshape first"
            raise self.refuse(TOO_MANY_AXES, found.limit, help)
        help = f"feature level {found.first_level} has it" if found.first_level else "cast it to a type that it takes"
        raise self.refuse(codes.REFUSED, found.limit, help)

    def offers(self, operator: str) -> bool:
        """Return whether DirectML has the operator at the feature level."""
        return rows()[operator].at(self.level) is not None

    def unary(self, operator: str, x: BufferView, dtype: DType | None = None, **fields: Field) -> BufferView:
        """An operator on each element. Copies that strides of 0 make are made after it."""
        small = x.squashed()
        (source,) = merged([small], MAX_RANK)
        out = self.new(dtype or x.dtype, source.sizes)
        self.call(operator, InputTensor=source, OutputTensor=out, **fields)
        return self.regroup(out, small.sizes).broadcast(x.sizes)

    def elementwise(
        self, operator: str, names: tuple[str, ...], operands: list[BufferView], dtype: DType
    ) -> BufferView:
        """An operator on the elements of several tensors, broadcast to each other by strides."""
        sizes = broadcast_sizes(operands)
        views = merged([view.broadcast(sizes) for view in operands], MAX_RANK)
        out = self.new(dtype, views[0].sizes)
        self.call(operator, **dict(zip(names, views, strict=True)), OutputTensor=out)
        return self.regroup(out, sizes)

    def binary(self, operator: str, a: BufferView, b: BufferView, dtype: DType | None = None) -> BufferView:
        return self.elementwise(operator, ("ATensor", "BTensor"), [a, b], dtype or a.dtype)

    def choose(self, condition: BufferView, a: BufferView, b: BufferView) -> BufferView:
        names = ("ConditionTensor", "ATensor", "BTensor")
        return self.elementwise("ELEMENT_WISE_IF", names, [condition, a, b], a.dtype)

    def reduce(self, function: str, x: BufferView, axes: tuple[int, ...]) -> BufferView:
        """A function of REDUCE; the axes stay, as size 1."""
        out = self.new(x.dtype, tuple(1 if i in axes else n for i, n in enumerate(x.sizes)))
        self.call(
            "REDUCE", Function=function, InputTensor=x, OutputTensor=out, AxisCount=len(axes), Axes=list(axes)
        )  # fmt: skip
        return out

    # --- moving

    def regroup(self, x: BufferView, sizes: Sizes) -> BufferView:
        """Row-major in other sizes: the same buffer where strides say it, else a packed copy."""
        view = x.reshaped(sizes)
        if view is None:
            view = self.copy(x).reshaped(sizes)
            assert view is not None
        return view

    def copy(self, x: BufferView) -> BufferView:
        """The elements packed, in a buffer of their own."""
        (source,) = merged([x], MAX_RANK)
        out = self.new(x.dtype, source.sizes)
        self.call("ELEMENT_WISE_IDENTITY", InputTensor=source, OutputTensor=out)
        view = out.reshaped(x.sizes)
        assert view is not None
        return view

    # --- converting

    def cast(self, x: BufferView, dtype: DType) -> BufferView:
        """Another dtype. Integers of the same width and narrower ones are the same memory, read otherwise."""
        source = x.dtype
        if source is dtype:
            return x
        if dtype is bool_:
            equal = self.binary("ELEMENT_WISE_LOGICAL_EQUALS", x.squashed(), self.scalar(0, source), bool_)
            return self.unary("ELEMENT_WISE_LOGICAL_NOT", equal).broadcast(x.sizes)
        if source is bool_ and dtype.is_integer and dtype.bits == 8:
            return replace(x, dtype=dtype)
        if source.is_integer and dtype.is_integer and dtype.bits <= source.bits:
            return x.narrowed(dtype)
        if source.kind == "int" and dtype.kind == "uint":  # CAST of a negative number is unspecified
            return self.unary("CAST", x, DTYPE_BY_NAME[f"i{dtype.bits}"]).narrowed(dtype)
        return self.unary("CAST", x, dtype)

    def widened(self, x: BufferView) -> BufferView:
        """8 and 16 bit integers in 32 bits, which sums and products are there for; they wrap alike."""
        if not x.dtype.is_integer or x.dtype.bits >= 32:
            return x
        return self.cast(x, i32 if x.dtype.kind == "int" else u32)

    def exact(self, x: BufferView) -> BufferView:
        """Integers of up to 32 bits in 64, in which no sum of them overflows."""
        return self.cast(x, i64) if x.dtype.bits < 64 else x


def tensor_desc(view: BufferView) -> dict[str, Any]:
    """A ``DML_TENSOR_DESC``; rank 0 is one axis of size 1."""
    desc: dict[str, Any] = {"DataType": type_name(view.dtype), "Sizes": list(view.sizes) or [1]}
    if not view.is_packed:
        desc["Strides"] = list(view.strides)
    return desc


def whole(view: BufferView) -> bool:
    """Return whether the view covers its whole buffer in its own order."""
    buffer = view.buffer
    return view.is_packed and view.dtype is buffer.dtype and view.count == buffer.count
