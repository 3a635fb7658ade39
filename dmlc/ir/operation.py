"""Declaration of an operation, from which everything else derives.

The declarations themselves live in ``dmlc.ops``; this module defines their form.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, cached_property
from typing import Any, TypeAlias, get_type_hints

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from dmlc.diagnostics import Code, Help, Span
from dmlc.ir.dim import Dim, DimExpr, Interval, substitute, symbol
from dmlc.ir.dim_table import DimTable
from dmlc.ir.dtype import DType
from dmlc.ir.tensor import Tensor
from dmlc.ir.types import TensorType

Array: TypeAlias = "np.ndarray[Any, np.dtype[Any]]"

#: Location of an error in a call: an operand's number, an attribute's name, (attribute, element), or the call.
Place: TypeAlias = "int | str | tuple[str, int] | None"
#: The name that is called, as a part of a call.
CALLEE = "()"


class OpError(Exception):
    """A wrong call, without a place in any source; whoever knows the source turns it into a diagnostic.

    ``at`` names the guilty part of the call, ``under`` is the text under its caret, ``about`` an operand
    whose type explains the message. ``spans`` are the guilty node's places, where a whole graph was worked on.
    """

    def __init__(
        self,
        code: Code,
        message: str,
        *,
        at: Place = None,
        under: str = "",
        about: int | None = None,
        help: Help = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.at = at
        self.under = under
        self.about = about
        self.help = help
        self.spans: tuple[Span, ...] = ()


class Condition(Struct, frozen=True):
    """A relation between sizes that was not proved; ``run`` and the NumPy code check it.

    ``relation`` is ``<=``, ``==`` or ``!=``; ``why`` finishes the sentence "... does not hold: ".
    """

    left: Dim
    relation: str
    right: Dim
    why: str = ""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Condition) and self._relation() == other._relation()

    def __hash__(self) -> int:
        return hash(self._relation())

    def _relation(self) -> tuple[Dim, str, Dim]:
        return self.left, self.relation, self.right

    def __str__(self) -> str:
        return f"{self.left} {self.relation} {self.right}"

    def holds(self, left: int, right: int) -> bool:
        """The relation between two evaluated sides."""
        if self.relation == "<=":
            return left <= right
        return (left == right) is (self.relation == "==")


def tightened(name: str, bounds: Interval, conditions: Iterable[Condition]) -> Interval:
    """The bounds of a dim, tightened by the relations that hold it against a number."""
    low, high = bounds
    for condition in conditions:
        left, right = condition.left, condition.right
        if condition.relation == "<=" and isinstance(left, int) and right == symbol(name):
            low = max(low, left)
        elif condition.relation == "<=" and isinstance(right, int) and left == symbol(name):
            high = min(high, right)
    return low, high


class Attributes(Struct, frozen=True, kw_only=True):
    """Base of all attribute records: frozen, comparable, canonical (axes non-negative, sorted, unique)."""

    def substitute(self, binding: Mapping[str, Dim]) -> Attributes:
        """The same attributes with dims replaced; itself where it holds none of them."""
        changed: dict[str, Any] = {}
        for name in self.__struct_fields__:
            old = getattr(self, name)
            new = _substitute(old, binding)
            if new is not old:
                changed[name] = new
        return replace(self, **changed) if changed else self

    @classmethod
    def declarations(cls) -> dict[str, Any]:
        """The annotation of each field beside its type, by the name of the field; None where it has none."""
        hints = get_type_hints(cls, include_extras=True)
        return {name: next(iter(getattr(hints[name], "__metadata__", ())), None) for name in cls.__struct_fields__}

    def dims(self) -> list[DimExpr]:
        """The symbolic sizes among the attributes."""
        values = [getattr(self, name) for name in self.__struct_fields__]
        items = [item for value in values for item in (value if isinstance(value, tuple) else (value,))]
        return [item for item in items if isinstance(item, DimExpr)]


def _substitute(value: Any, binding: Mapping[str, Dim]) -> Any:
    if isinstance(value, DimExpr):
        return substitute(value, binding)
    if isinstance(value, tuple) and any(isinstance(v, DimExpr) for v in value):
        return tuple(_substitute(v, binding) for v in value)
    return value


class Operand(Struct, frozen=True):
    """A declared operand. Operands of one ``group`` share their dtype, and a literal takes it."""

    name: str
    dtypes: tuple[DType, ...]
    group: str = "T"
    optional: bool = False
    variadic: bool = False


class Inference(Struct, eq=False):
    """Arguments of an inference rule: one call, and the list for conditions that it could not prove."""

    attributes: Any
    types: Sequence[TensorType | None]
    dims: DimTable
    conditions: list[Condition] = []  # a new one for each call

    def type(self, index: int) -> TensorType:
        """The type of an operand that is present."""
        found = self.types[index]
        assert found is not None
        return found

    def require(self, left: Dim, relation: str, right: Dim, error: OpError) -> None:
        """Prove ``left relation right``; raise ``error`` where it never holds; else leave it to run time."""
        if relation == "<=":
            known = self.dims.at_most(left, right)
        else:
            known = self.dims.equal(left, right)
            if relation == "!=" and known is not None:
                known = not known
        if known is False:
            raise error
        if known is None:
            self.conditions.append(Condition(left, relation, right, error.message))


InferRule: TypeAlias = Callable[[Inference], Sequence[TensorType]]
#: Takes the attributes (all dims bound) and the operand arrays (None where absent); returns the results.
Reference: TypeAlias = Callable[..., "Array | tuple[Array, ...]"]
#: Takes the operands that are constants, None for the others; raises ``OpError`` where their values make no sense.
ConstantCheck: TypeAlias = Callable[[Sequence["Tensor | None"]], None]


class Operation(Struct, frozen=True, eq=False, kw_only=True, dict=True):
    """One operation. Compared by identity; ``name`` is how programs call it, ``title`` names its nodes in an emitted
    model where that is not the name in camel case.

    ``symbol`` is the infix or prefix spelling. Where ``symbol_dtypes`` are given, it takes these alone, and a program
    calls the operation of other dtypes by ``onnx_title``, as an ONNX operator. ``check`` refuses calls with senseless
    constants (a division by zero); nodes that passes make are not checked. ``pure`` operations may be merged and
    removed. ``notes`` are the sentences of ``dmlc ops NAME``: ``nan``, ``overflow``, ``empty``, ``ties`` and the
    like; ``source`` the page that the rule comes from.
    """

    name: str
    operands: tuple[Operand, ...]
    attributes: type[Attributes] = Attributes
    results: tuple[str, ...] = ("result",)
    infer: InferRule
    reference: Reference | None = None
    summary: str
    title: str = ""
    symbol: str | None = None
    symbol_dtypes: tuple[DType, ...] = ()
    check: ConstantCheck | None = None
    pure: bool = True
    source: str = ""
    notes: Mapping[str, str] = {}

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The number of each operand, by its name."""
        return {operand.name: place for place, operand in enumerate(self.operands)}

    @cached_property
    def onnx_title(self) -> str:
        """The title of its nodes: its name in ONNX's manner, where no other is declared."""
        return self.title or "".join([word.title() for word in self.name.split("_")])

    def has_symbol_for(self, dtype: DType) -> bool:
        """Return whether a program writes the operation on operands of the dtype with its symbol."""
        return self.symbol is not None and (not self.symbol_dtypes or dtype in self.symbol_dtypes)

    def __repr__(self) -> str:
        return f"<operation {self.name}>"

    def __copy__(self) -> Operation:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """A deep copy is the global that declares it. Raises ``TypeError`` where no global holds it."""
        return _declared, _declaration(self)


def _declared(module: str, name: str) -> Operation:
    found: Operation = getattr(importlib.import_module(module), name)
    return found


@cache
def _declaration(op: Operation) -> tuple[str, str]:
    """The module and the name of a global that holds the operation, looked up as ``pickle`` does for functions."""
    package = __name__.partition(".")[0]
    for module, loaded in sorted(sys.modules.items()):
        if module.startswith(f"{package}."):
            for name, value in vars(loaded).items():
                if value is op:
                    return module, name
    raise TypeError(f"operation {op.name} cannot be copied or pickled: no global of {package} holds it")
