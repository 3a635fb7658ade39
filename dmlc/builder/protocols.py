"""Functions and statements of Python on a tensor: operations where there are some, else errors with the way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, NoReturn, TypeAlias

from dmlc.builder.foreign import NotAnArray
from dmlc.builder.place import caller
from dmlc.diagnostics import Label, fail
from dmlc.diagnostics.catalogue import builder as codes
from dmlc.diagnostics.catalogue import names

#: A function of Python that a tensor does not have; it raises.
_Refusal: TypeAlias = Callable[..., NoReturn]


def _refusal(message: str, help: str, code: Any = codes.NO_TRUTH_VALUE) -> NotAnArray:
    span = caller()
    return NotAnArray(fail(code, message, *([Label(span)] if span else []), help=help).diagnostics)


def _shift(sign: str, instead: str) -> Callable[[Any, object], NoReturn]:
    def refuse(_: Any, __: object) -> NoReturn:
        help = f"a shift is written a {instead} 2 ** n"  # as for programs
        raise _refusal(f"a tensor has no {sign}", help, names.UNKNOWN_OPERATION)

    return refuse


def _number(self: Any, *_: object) -> NoReturn:
    help = "use dmlc's operations, such as dmlc.exp(x) or dmlc.cast(x, to=...)"
    raise _refusal("a tensor is not a number while the graph is built", help)


class PythonProtocols:
    """The parts of a tensor that stand behind Python's syntax and functions beside the operators."""

    __slots__ = ()

    __lshift__: ClassVar[_Refusal] = _shift("<<", "*")
    __rlshift__: ClassVar[_Refusal] = _shift("<<", "*")
    __rshift__: ClassVar[_Refusal] = _shift(">>", "//")
    __rrshift__: ClassVar[_Refusal] = _shift(">>", "//")
    __float__: ClassVar[_Refusal] = _number
    __int__: ClassVar[_Refusal] = _number
    __complex__: ClassVar[_Refusal] = _number
    __index__: ClassVar[_Refusal] = _number
    __trunc__: ClassVar[_Refusal] = _number

    def __pos__(self) -> Any:
        return self._tensor()

    def __divmod__(self, other: Any) -> tuple[Any, Any]:
        return self._tensor() // other, self._tensor() % other

    def __rdivmod__(self, other: Any) -> tuple[Any, Any]:
        return other // self._tensor(), other % self._tensor()

    def __round__(self, digits: object = None) -> Any:
        """Halves to even, as Python rounds them. Raises ``DmlcError`` E0350 for digits."""
        if digits is not None:
            raise _refusal("dmlc rounds to integers alone", "scale before and after: dmlc.round(x * 100) / 100")
        return self._whole("round")

    def __floor__(self) -> Any:
        return self._whole("floor")

    def __ceil__(self) -> Any:
        return self._whole("ceil")

    def __len__(self) -> int:
        """The first size. Raises ``DmlcError`` E0350 for a scalar and for an open size."""
        shape = self._tensor().shape
        if not shape:
            raise _refusal("a scalar has no length", "x.shape has the sizes, dmlc.size(x) the number of elements")
        if not isinstance(shape[0], int):
            raise _refusal(
                f"the length is {shape[0]}, which is open", "write dmlc.size(x, axis=0), a number of a program"
            )
        return shape[0]

    def __iter__(self) -> NoReturn:
        help = "operations take whole tensors; rows are x[i], parts dmlc.split(x, axis=..., sizes=...)"
        raise _refusal("a tensor is not iterable: it has no elements while the graph is built", help)

    def __contains__(self, _: object) -> NoReturn:
        help = "write dmlc.reduce_any(x == value), which is a tensor"
        raise _refusal("what a tensor contains is not known while the graph is built", help)

    def __setitem__(self, _: object, __: object) -> NoReturn:
        help = "choose with dmlc.where(cond, a, b), or write dmlc.scatter_elements(x, i, updates, axis=...)"
        raise _refusal("a tensor is not changed in place", help)

    def _tensor(self) -> Any:
        return self

    def _whole(self, name: str) -> Any:
        """The operation of that name; integers are whole already."""
        x = self._tensor()
        return x if x.dtype.is_integer else self._operation(name)

    def _operation(self, name: str) -> Any:
        """The result of an operation of one operand."""
        raise NotImplementedError
