"""The graph that a Python program builds: inputs, dims, outputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dmlc import ir
from dmlc.builder.place import PythonSpan, call_site, caller
from dmlc.builder.tensor import DTypeLike, Home, Tensor, constant_value, mistake, not_a_tensor
from dmlc.diagnostics import Code, DmlcError, Label, did_you_mean, fail
from dmlc.diagnostics.catalogue import builder as codes
from dmlc.diagnostics.catalogue import names, shapes
from dmlc.diagnostics.catalogue.limits import RANK
from dmlc.diagnostics.given import integer_of
from dmlc.diagnostics.limits import DEFAULTS
from dmlc.diagnostics.shown import Shown
from dmlc.ir import Dim, DimExpr, DType, OpError, TensorType, as_dtype, dim_names, symbol
from dmlc.ir.fixed_shapes import LARGEST_SIZE, is_too_large
from dmlc.ops.ranges import Range, range_of
from dmlc.ops.size_of import size_of

#: NumPy holds no more axes.
_MAX_RANK = DEFAULTS.rank
_ARTICLE = {"dim": "a", "input": "an", "output": "an"}

#: One size of a shape: a number, the name of a dim, or an expression of dims.
Size = int | str | DimExpr


class Graph(Shown):
    """A model under construction.

    ``graph`` is the graph of the compiler that the calls fill; compiling works on a copy, so building may go on.
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise mistake(codes.BAD_NAME, f"a graph is named by a text that is not empty, not {name!r}")
        self.graph: ir.Graph = ir.Graph(name)
        self._home = Home(self.graph, loose=False)
        self._places: dict[tuple[str, str], PythonSpan | None] = {}

    def dim(self, name: str, min: int = 1, max: int | None = None) -> DimExpr:
        """Declare a dim and its inclusive bounds; returns it for shapes, attributes and arithmetic.

        Raises ``DmlcError``: E0204 for a name that is taken, E0333 for bounds that hold no size.
        """
        self._check_free("dim", name)
        bounds_are_sizes = _is_size(min) and (max is None or _is_size(max))
        if not bounds_are_sizes or (max is not None and min > max):
            text = f"{min}..{'' if max is None else max}"
            raise self._mistake(
                shapes.WRONG_BOUNDS,
                f"no size is in {text}",
                at="max" if bounds_are_sizes else "min",
                parameters=("name", "min", "max"),
                help="bounds are integers from 0 to 2^63 - 1, both inclusive",
            )
        self._places["dim", name] = caller()
        self.graph.declare_dim(name, (int(min), math.inf if max is None else int(max)))
        return symbol(name)

    def input(
        self,
        name: str,
        dtype: DTypeLike,
        shape: Sequence[Size] | Size,
        *,
        range: tuple[float, float] | None = None,
    ) -> Tensor:
        """Declare an input. A text in the shape is a dim, unbounded unless ``dim`` declares it.

        ``range`` promises that every fed element lies within the two numbers and is not NaN.

        Raises ``DmlcError``: E0342 or E0311 for a wrong range, E0204 for a name that is taken, E0211 for a wrong dtype,
        E0332 for a wrong shape, E0336 for a shape of more axes than NumPy has.
        """
        self._check_free("input", name)
        type_ = TensorType(self._dtype(dtype), self._shape(shape))
        for dim in sorted({dim for size in type_.shape for dim in dim_names(size)} & self.graph.dims.provided):
            message = f"{dim} is the name of a size already, which an ONNX operator before gives"
            raise mistake(names.NAME_TWICE, message, help="give the dim another name, or declare the input earlier")
        if range is not None:
            self.graph.ranges[name] = self._range(type_.dtype, range)
        place = self._places["input", name] = caller()
        return Tensor(self._home, self.graph.add_input(name, type_, place))

    def output(self, name: str, value: Tensor) -> None:
        """Name a result. One tensor may be several outputs.

        Raises ``DmlcError``: E0204 or E0210 for a name that an output or input has, E0335 for what is not a tensor.
        """
        self._check_free("output", name, against=("output", "input"))
        if not isinstance(value, Tensor):
            raise not_a_tensor(value)
        result = self._home.value(value)
        if result.name is None:
            result.name = name
        self._places["output", name] = caller()
        self.graph.add_output(name, result)

    def headline(self) -> str:
        """Return the name, and the number of inputs and nodes."""
        return self.graph.headline()

    def __str__(self) -> str:
        """The graph as the text of a program."""
        return self.to_text().rstrip("\n")

    # --- checks

    def _check_free(self, kind: str, name: str, against: Sequence[str] = ()) -> None:
        if not isinstance(name, str) or not name:
            raise mistake(codes.BAD_NAME, f"{_ARTICLE[kind]} {kind} is named by a text that is not empty, not {name!r}")
        for other in against or (kind,):
            if (other, name) in self._places:
                before = self._places[other, name]
                labels = [Label(before, f"{other} {name} is named here")] if before else []
                raise mistake(
                    names.NAME_TWICE if other == kind else names.RESULT_LIKE_INPUT,
                    f"{name} is {_ARTICLE[other]} {other} already",
                    labels=labels,
                    help=f"give the {kind} another name",
                )

    def _dtype(self, dtype: DTypeLike) -> DType:
        try:
            return as_dtype(dtype)
        except KeyError:
            near = did_you_mean(str(dtype), [text for d in ir.DTYPES for text in (d.name, d.long_name)])
            raise self._mistake(
                names.UNKNOWN_DTYPE,
                f"the language has no dtype {dtype}",
                at="dtype",
                help=near or "it has f16 f32 f64, i8 to i64, u8 to u64 and bool",
            ) from None

    def _range(self, dtype: DType, range: tuple[float, float]) -> Range:
        message, help = f"a range is a pair of numbers, not {range!r}", "write range=(0.0, 1.0)"
        if not isinstance(range, (list, tuple)) or len(range) != 2:
            raise self._mistake(shapes.WRONG_RANGE, message, at="range", help=help)
        try:
            return range_of(dtype, *range)
        except OpError as error:
            raise self._mistake(error.code, error.message, at="range", help=help) from None

    def _shape(self, shape: Sequence[Size] | Size) -> tuple[Dim, ...]:
        sizes: Any = (shape,) if isinstance(shape, (int, str, DimExpr)) else shape
        if not isinstance(sizes, (list, tuple)):
            raise self._mistake(
                shapes.WRONG_SIZE, f"a shape is a list of sizes, not {type(sizes).__name__}", at="shape"
            )
        if len(sizes) > _MAX_RANK:
            raise self._mistake(RANK, f"this shape has {len(sizes)} axes, the limit is {_MAX_RANK}", at="shape")
        found = tuple([self._size(size, i) for i, size in enumerate(sizes)])
        if is_too_large(found):
            raise self._mistake(shapes.WRONG_SIZE, "a tensor has at most 2^63 - 1 elements", at="shape")
        return found

    def _size(self, size: Any, element: int) -> Dim:
        if isinstance(size, str) and size:
            return symbol(size)
        if isinstance(size, DimExpr):
            return size
        if _is_size(size):
            return int(size)
        raise self._mistake(
            shapes.WRONG_SIZE,
            f"a size is an integer from 0 to 2^63 - 1, the name of a dim, or an expression of dims, not {size!r}",
            at=("shape", element),
        )

    def _mistake(
        self,
        code: Code,
        message: str,
        *,
        at: ir.Place,
        parameters: Sequence[str] = ("name", "dtype", "shape"),
        help: str = "",
    ) -> DmlcError:
        place = call_site(caller(), parameters).place(at)
        return fail(code, message, *((Label(place),) if place else ()), help=help)


def _is_size(size: Any) -> bool:
    found = integer_of(size)
    return found is not None and 0 <= found <= LARGEST_SIZE


def constant(array: Any, *, dtype: DTypeLike | None = None) -> Tensor:
    """Data as a tensor: an array, a number or a nested list. It joins the graph that it is first used in.

    Without ``dtype`` NumPy's own is taken (a list of Python floats is f64). With it floats are rounded, and
    an element that does not fit is an error, not wrapped. Raises ``DmlcError`` E0211, E0311, E0335.
    """
    span = caller()
    home = Home(ir.Graph("constants"), loose=True)
    try:
        wanted = None if dtype is None else as_dtype(dtype)
    except KeyError:
        raise mistake(names.UNKNOWN_DTYPE, f"the language has no dtype {dtype}") from None
    return Tensor(home, constant_value(home, array, wanted, span))


def size(x: Tensor, *, axis: int | None = None) -> Dim:
    """The size of a tensor along an axis, or its number of elements: an integer, or an expression of dims.

    Raises ``DmlcError``: E0301, E0304 for an axis that does not exist, E0335 for what is not a tensor.
    """
    if not isinstance(x, Tensor):
        raise not_a_tensor(x)
    try:
        return size_of(x._value, axis)
    except OpError as error:
        span = caller()
        raise fail(error.code, error.message, *([Label(span)] if span else []), help=str(error.help)) from None


def unsolved_dims(graph: ir.Graph) -> set[str]:
    """The dims in use that no input has as a size by itself, so that no fed array would give their value."""
    sizes: list[Dim] = [size for value in graph.inputs for size in value.shape]
    alone = {size.name for size in sizes if isinstance(size, DimExpr) and size.name}
    for node in graph:
        sizes += node.attributes.dims()
    return {name for size in sizes for name in dim_names(size)} - alone - graph.dims.provided
