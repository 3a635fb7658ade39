"""Facts about one value: element type, shape, and the elements that are known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeAlias

import numpy as np
from msgspec import Struct
from onnx import TensorProto

from dmlc.ir import Dim, DimExpr, Shape
from dmlc.ir.dim import FloorDiv, Negative

#: Elements are kept up to this many per value; a larger value keeps its type alone.
MOST_ELEMENTS = 1024
#: A size with more terms, or of more factors in all, is not followed: products of sums, powers and quotients of
#: quotients grow without end otherwise.
_MOST_TERMS, _MOST_FACTORS = 24, 96
#: A factor of this size makes every size too large but 0.
_LARGEST_FACTOR = 1 << 63

#: Element types by ONNX's number.
FLOATS = frozenset((TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE))
_RANGES = {
    TensorProto.INT8: (-(2**7), 2**7 - 1), TensorProto.UINT8: (0, 2**8 - 1),
    TensorProto.INT16: (-(2**15), 2**15 - 1), TensorProto.UINT16: (0, 2**16 - 1),
    TensorProto.INT32: (-(2**31), 2**31 - 1), TensorProto.UINT32: (0, 2**32 - 1),
    TensorProto.INT64: (-(2**63), 2**63 - 1), TensorProto.UINT64: (0, 2**64 - 1),
}  # fmt: skip
INTEGERS = frozenset(_RANGES)
#: Element types whose elements may be sizes that are not known as numbers.
_WIDE = frozenset((TensorProto.INT64, TensorProto.INT32, TensorProto.UINT64))
_NUMPY_FLOAT: dict[int, Any] = {
    TensorProto.FLOAT: np.float32, TensorProto.FLOAT16: np.float16, TensorProto.DOUBLE: np.float64,
}  # fmt: skip


class Open:
    """An element that is not known. Arithmetic with it gives it again; it equals nothing but itself."""

    __slots__ = ()

    def _same(self, *_: object) -> Open:
        return self

    __add__: ClassVar[Callable[..., Open]] = _same
    __radd__: ClassVar[Callable[..., Open]] = _same
    __sub__: ClassVar[Callable[..., Open]] = _same
    __rsub__: ClassVar[Callable[..., Open]] = _same
    __mul__: ClassVar[Callable[..., Open]] = _same
    __rmul__: ClassVar[Callable[..., Open]] = _same
    __floordiv__: ClassVar[Callable[..., Open]] = _same
    __rfloordiv__: ClassVar[Callable[..., Open]] = _same
    __neg__: ClassVar[Callable[..., Open]] = _same

    def __repr__(self) -> str:
        return "?"


OPEN = Open()
#: A known element: a number, a truth, a size, or ``OPEN``.
Element: TypeAlias = "int | float | bool | DimExpr | Open"
#: Elements of any rank: an array of Python objects, so that NumPy's layout functions move sizes as they move numbers.
Elements: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"


class Fact(Struct, frozen=True, eq=False):
    """``element`` is ONNX's number of the element type, 0 where it is unknown. ``shape`` is None for an unknown rank.

    ``elements`` are the known elements, shaped as the value is; None where the value is large or nothing is known.
    ``proto`` is the serialized ``onnx.TypeProto`` of a sequence, an optional or a map.
    """

    element: int = 0
    shape: Shape | None = None
    elements: Elements | None = None
    proto: bytes = b""

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @property
    def numbers(self) -> tuple[int, ...] | None:
        """The elements in row-major order where all are integers or truths; None otherwise."""
        if self.elements is None:
            return None
        flat = tuple(self.elements.ravel().tolist())
        return flat if all(isinstance(e, int) for e in flat) else None

    def __repr__(self) -> str:
        shape = "?" if self.shape is None else "[" + ", ".join(map(str, self.shape)) + "]"
        return f"<Fact {self.element} {shape}{'' if self.elements is None else f' {self.elements.tolist()}'}>"


NOTHING = Fact()


def of_elements(element: int, elements: Any) -> Fact:
    """The fact about a tensor of these elements. Integers that the element type does not hold become ``OPEN``."""
    array = np.empty((), object)
    if isinstance(elements, np.ndarray):
        array = elements
    else:
        array[()] = elements
    if array.size > MOST_ELEMENTS:
        return Fact(element, array.shape)
    fitted = np.frompyfunc(lambda e: fitting(element, e), 1, 1)(array) if array.size else array
    out = np.empty(array.shape, object)
    out[...] = fitted
    return Fact(element, array.shape, out)


def of_array(element: int, array: Any) -> Fact:
    """The fact about constant data, given as a numeric array."""
    data = np.asarray(array)
    if data.size > MOST_ELEMENTS:
        return Fact(element, data.shape)
    out = np.empty(data.shape, object)
    out[...] = np.array([*data.ravel().tolist(), None], object)[:-1].reshape(data.shape)
    return Fact(element, data.shape, out)


def vector(element: int, items: list[Any]) -> Fact:
    """The fact about a one-dimensional tensor."""
    array = np.empty(len(items), object)
    array[:] = items
    return of_elements(element, array)


def fitting(element: int, value: Element) -> Element:
    """The value as the element type holds it: floats rounded; integers out of range and overlong sizes ``OPEN``."""
    if isinstance(value, Open):
        return value
    if isinstance(value, DimExpr):
        return value if element in _WIDE and is_short(value) else OPEN
    if element in _RANGES:
        low, high = _RANGES[element]
        return int(value) if isinstance(value, int) and low <= value <= high else OPEN
    if element in _NUMPY_FLOAT:
        with np.errstate(all="ignore"):
            return float(_NUMPY_FLOAT[element](value))
    if element == TensorProto.BOOL:
        return bool(value)
    return OPEN


def is_short(size: DimExpr) -> bool:
    """True for an expression that is followed: one that the next operators can still compute with."""
    left, factors = [size], 0
    while left:
        terms = left.pop().terms
        if len(terms) > _MOST_TERMS:
            return False
        for monomial, coefficient in terms:
            factors += 1 + len(monomial)
            if factors > _MOST_FACTORS or abs(coefficient) >= _LARGEST_FACTOR:
                return False
            for atom in monomial:
                if isinstance(atom, FloorDiv):
                    left += [each for each in (atom.numerator, atom.denominator) if isinstance(each, DimExpr)]
                elif isinstance(atom, Negative) and isinstance(atom.size, DimExpr):
                    left.append(atom.size)
    return True


def is_size(value: Element) -> bool:
    """True if the element can be a size: an integer or an expression of dims."""
    return isinstance(value, DimExpr) or (isinstance(value, int) and not isinstance(value, bool))


def as_dim(value: Element) -> Dim:
    """The element as a size. Raises ``TypeError`` for another one."""
    if isinstance(value, (int, DimExpr)):
        return value
    raise TypeError(f"{value!r} is not a size")
