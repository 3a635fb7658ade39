"""The kinds of attributes: how what a user wrote becomes the canonical value in the graph.

An operation's attributes are a frozen record whose fields are annotated with :func:`attribute`; the field's kind
checks and canonicalises the raw value (a Python number, word, dtype, dim or list of them) once the operands are
known. Text and builder share it, so both give the same errors.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from dmlc.diagnostics import Help, proposal, removing, suggestion, writing
from dmlc.diagnostics.catalogue import shapes as codes
from dmlc.ir import Attributes, Dim, DimExpr, DType, OpError, TensorType, as_dtype, symbol
from dmlc.ir.dtype import f32
from dmlc.ir.size_number import SizeNumber
from dmlc.ops.rules import beyond_i64


class _Sentinel:
    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


#: No default: the attribute must be written.
REQUIRED = _Sentinel("required")
#: The default of ``axes``: all axes of the first operand.
ALL = _Sentinel("all")
#: Other libraries' names of attributes, by their names here.
ATTRIBUTE_SPELLINGS: dict[str, tuple[str, ...]] = {
    "axes": ("axis", "dim", "dims"), "axis": ("axes", "dim", "dims"), "keepdims": ("keepdim", "keep_dims"),
    "epsilon": ("eps",), "shape": ("size", "sizes"), "perm": ("permutation", "order"),
}  # fmt: skip


class ValueOf(_Sentinel):
    """A default that is the value of another attribute of the call, by name."""


class Binding(Struct, frozen=True):
    """Context of an attribute's conversion: its name and the operand types."""

    name: str
    op: str
    types: Sequence[TensorType | None]
    operand_names: Sequence[str]
    required: bool = False

    @property
    def first(self) -> TensorType:
        found = self.types[0]
        assert found is not None
        return found

    def fail(self, message: str, *, element: int | None = None, help: Help = "") -> OpError:
        """A wrong value for this attribute."""
        at = self.name if element is None else (self.name, element)
        return OpError(codes.WRONG_ATTRIBUTE, message, at=at, help=help)


class Kind:
    """Kind of an attribute value: its type, conversion and checks.

    ``spelling`` is its type on the pages, ``example`` a value that most operands allow, ``hint`` the Python annotation.
    """

    spelling = "value"
    example = "1"
    hint = "object"
    #: The part of a tensor's type that ``like`` gives in place of a value: ``dtype``, ``shape``, or none.
    like = ""
    #: The meaning of the default ``ALL``.
    all_means = "all axes"

    def convert(self, raw: Any, at: Binding) -> Any:
        """The canonical value. Raises ``OpError``."""
        raise NotImplementedError


def _is_int(raw: Any) -> bool:
    if isinstance(raw, bool):
        return False
    try:
        operator.index(raw)
    except TypeError:
        return False
    return True


def _items(raw: Any) -> list[Any] | None:
    """A list's items; None for what is not a list."""
    if isinstance(raw, (list, tuple)):
        return list(raw)
    if hasattr(raw, "tolist") and getattr(raw, "ndim", 0) == 1:
        return list(raw.tolist())
    return None


def show(raw: Any) -> str:
    """A raw attribute value as the language writes it."""
    if isinstance(raw, bool):
        return "true" if raw else "false"
    if isinstance(raw, int) and raw.bit_length() > 128:  # Python refuses to print very long ones
        return f"an integer of {raw.bit_length()} bits"
    if isinstance(raw, (list, tuple)):
        return "[" + ", ".join(map(show, raw)) + "]"
    return repr(raw) if isinstance(raw, str) else str(raw)


def integer_help(raw: Any) -> Help:
    """The help where an integer is wanted and a number with a fraction stands; empty for everything else."""
    if not isinstance(raw, float) or not math.isfinite(raw):
        return ""
    if raw == int(raw):
        return writing(str(int(raw)), safe=True)
    text = "/ gives a number with a fraction; // gives an integer:"
    if " / " not in str(raw):
        return f"{text} a // b"
    written = str(raw).replace(" / ", " // ")
    return proposal(f"{text} {written}", written)


def size_help(number: SizeNumber) -> str:
    """The help where a size is wanted and a number made of dims that is not a size stands."""
    return "division of sizes is //" if number.sign == "/" else "sizes have + - * //"


class AxisKind(Kind):
    """One axis; negative ones count from the end. ``extra`` is 1 where the result has one axis more."""

    spelling = "axis"
    example = "0"
    hint = "int"

    def __init__(self, *, extra: int = 0) -> None:
        self.extra = extra

    def convert(self, raw: Any, at: Binding) -> int:
        if not _is_int(raw):
            items = _items(raw) or []
            help = writing(show(items[0]), safe=True) if len(items) == 1 and _is_int(items[0]) else integer_help(raw)
            raise at.fail(f"{at.name} must be an integer, not {show(raw)}", help=help)
        return normalize_axis(int(raw), at, None, self.extra)


def normalize_axis(axis: int, at: Binding, element: int | None, extra: int = 0) -> int:
    """A non-negative axis of the first operand. Raises E0301."""
    rank = at.first.rank + extra
    if -rank <= axis < rank:
        return axis + rank if axis < 0 else axis
    where = at.name if element is None else (at.name, element)
    name = at.operand_names[0] if not extra else "the result"
    help: Help
    if rank == 0:
        text, help = f"axis {show(axis)} does not exist: {name} is a scalar", "a scalar has no axes"
    else:
        span = "0" if rank == 1 else f"0 to {rank - 1}"
        text = f"axis {show(axis)} does not exist: {name} has {rank} {'axis' if rank == 1 else 'axes'}, {span}"
        help = proposal(f"the last axis is {rank - 1}, or -1", str(rank - 1))
    raise OpError(codes.AXIS_OUT_OF_RANGE, text, at=where, under="no such axis", about=0, help=help)


class AxesKind(Kind):
    """A set of axes: an integer or a list. Canonical: non-negative, sorted, unique."""

    spelling = "axes"
    example = "[0]"
    hint = "int | Sequence[int]"

    def convert(self, raw: Any, at: Binding) -> tuple[int, ...]:
        if raw is ALL:
            return tuple(range(at.first.rank))
        return tuple(sorted(self.in_order(raw, at)))

    def in_order(self, raw: Any, at: Binding) -> tuple[int, ...]:
        """The axes as they were written, non-negative and unique. Raises E0301 to E0304."""
        items = [raw] if _is_int(raw) else _items(raw)
        if items is None:
            message = f"{at.name} must be an integer or a list of integers, not {show(raw)}"
            raise at.fail(message, help=integer_help(raw))
        if not items:
            raise OpError(
                codes.EMPTY_AXES,
                f"{at.name}=[] names no axis",
                at=at.name,
                under="empty",
                help=f"name the axes, such as {at.name}=[0]"
                if at.required
                else removing("name the axes, or leave the attribute out for its default", at.name),
            )
        seen: dict[int, int] = {}
        for i, item in enumerate(items):
            if not _is_int(item):
                raise at.fail(f"an axis must be an integer, not {show(item)}", element=i, help=integer_help(item))
            axis = self._normal(int(item), at, i)
            if axis in seen:
                raise OpError(
                    codes.DUPLICATE_AXIS,
                    f"axis {show(item)} is named twice: it is there already as {show(items[seen[axis]])}",
                    at=(at.name, i),
                    under="again",
                    help=removing("name each axis once"),
                )
            seen[axis] = i
        return tuple(seen)

    def _normal(self, axis: int, at: Binding, element: int) -> int:
        return normalize_axis(axis, at, element)


class NewAxesKind(AxesKind):
    """The axes of the result that ``unsqueeze`` inserts: the result has one axis more for each."""

    def convert(self, raw: Any, at: Binding) -> tuple[int, ...]:
        return _AxesOfResult(len(_items(raw) or [raw])).convert(raw, at)


class _AxesOfResult(AxesKind):
    def __init__(self, extra: int) -> None:
        self.extra = extra

    def _normal(self, axis: int, at: Binding, element: int) -> int:
        return normalize_axis(axis, at, element, self.extra)


class WordKind(Kind):
    """One of a few words."""

    def __init__(self, *words: str) -> None:
        self.words = words
        self.spelling: str = "|".join(words)
        self.example: str = words[0]
        self.hint: str = "Literal[" + ", ".join(f'"{w}"' for w in words) + "]"

    def convert(self, raw: Any, at: Binding) -> str:
        raw = "none" if raw is None and "none" in self.words else raw  # the language's literal of that name
        if isinstance(raw, str) and raw in self.words:
            return raw
        near = suggestion(raw, self.words) if isinstance(raw, str) else ""
        expected = " or ".join(self.words)
        raise at.fail(f"{at.name} must be {expected}, not {str(raw) if isinstance(raw, str) else show(raw)}", help=near)


class FlagKind(Kind):
    """``true`` or ``false``."""

    spelling = "true|false"
    example = "true"
    hint = "bool"

    def convert(self, raw: Any, at: Binding) -> bool:
        if isinstance(raw, bool):
            return raw
        help = writing("true" if raw else "false", safe=True) if isinstance(raw, int) and raw in (0, 1) else ""
        raise at.fail(f"{at.name} must be true or false, not {show(raw)}", help=help)


class IntKind(Kind):
    """An integer known while compiling."""

    spelling = "integer"
    hint = "int"

    def convert(self, raw: Any, at: Binding) -> int:
        if not _is_int(raw):
            raise at.fail(f"{at.name} must be an integer, not {show(raw)}", help=integer_help(raw))
        return _int64(raw, at, None)


class IntsKind(Kind):
    """A list of integers known while compiling."""

    spelling = "integers"
    example = "[1]"
    hint = "Sequence[int]"

    def convert(self, raw: Any, at: Binding) -> tuple[int, ...]:
        items = [raw] if _is_int(raw) else _items(raw)
        if items is None:
            raise at.fail(f"{at.name} must be a list of integers, not {show(raw)}", help=integer_help(raw))
        for i, item in enumerate(items):
            if not _is_int(item):
                raise at.fail(f"{at.name} must hold integers, not {show(item)}", element=i, help=integer_help(item))
        return tuple([_int64(item, at, i) for i, item in enumerate(items)])


def _int64(raw: Any, at: Binding, element: int | None) -> int:
    """A Python integer in the range that every target can hold."""
    value = int(raw)
    if not -(2**63) <= value < 2**63:
        raise at.fail(f"{show(value)} is too large for {at.name}", element=element)
    return value


class NumberKind(Kind):
    """A number, kept as Python's int, float or bool; operations convert it to the operand's dtype."""

    spelling = "number"
    hint = "float"

    def convert(self, raw: Any, at: Binding) -> int | float | bool:
        if hasattr(raw, "item") and getattr(raw, "ndim", None) == 0:
            raw = raw.item()
        if isinstance(raw, (bool, int, float)):
            return float(raw) if isinstance(raw, float) else raw
        raise at.fail(f"{at.name} must be a number, not {show(raw)}")


class RealKind(NumberKind):
    """A finite real number such as ``epsilon``."""

    def convert(self, raw: Any, at: Binding) -> float:
        value = super().convert(raw, at)
        if isinstance(value, bool) or not math.isfinite(value):
            raise at.fail(f"{at.name} must be a finite number, not {show(raw)}")
        return float(value)


class DimKind(Kind):
    """A size: an integer or an expression of dims."""

    spelling = "size"
    hint = "int | str | DimExpr"

    def convert(self, raw: Any, at: Binding) -> Dim:
        return _dim(raw, at, None)


class DimsKind(Kind):
    """A list of sizes."""

    spelling = "sizes"
    example = "[1]"
    hint = "int | str | DimExpr | Sequence[int | str | DimExpr]"

    def convert(self, raw: Any, at: Binding) -> tuple[Dim, ...]:
        items = _items(raw)
        if items is None:
            items = [raw]
        return tuple([_dim(item, at, i) for i, item in enumerate(items)])


def _dim(raw: Any, at: Binding, element: int | None) -> Dim:
    where = at.name if element is None else (at.name, element)
    if isinstance(raw, DimExpr):
        number = beyond_i64(raw)
        if number is not None:
            raise OpError(codes.LITERAL_DOES_NOT_FIT, f"{number} does not fit the 64 bits of a size", at=where)
        return raw
    if _is_int(raw):
        return _int64(raw, at, element)
    if isinstance(raw, str) and raw.isidentifier():
        return symbol(raw)
    if isinstance(raw, SizeNumber):
        raise OpError(codes.WRONG_SIZE, f"sizes have no {raw.sign}", at=where, help=size_help(raw))
    message = f"{at.name} takes sizes: integers or dims, not {show(raw)}"
    raise at.fail(message, element=element, help=integer_help(raw))


class DTypeKind(Kind):
    """A dtype out of ``allowed``."""

    hint = "DTypeLike"
    like = "dtype"

    def __init__(self, allowed: Sequence[DType]) -> None:
        self.allowed: tuple[DType, ...] = tuple(allowed)
        self.spelling: str = "|".join(d.name for d in self.allowed)
        self.example: str = "f32" if f32 in self.allowed else self.allowed[0].name

    def convert(self, raw: Any, at: Binding) -> DType:
        try:
            found = as_dtype(raw)
        except KeyError:
            near = suggestion(
                str(raw), [d.name for d in self.allowed], then=f"it may be {', '.join(map(str, self.allowed))}"
            )
            if str(raw).lower() in ("bf16", "bfloat16"):
                near = "there is no bfloat16; f32 has its range, f16 ends at 65504"
            raise at.fail(f"{show(raw)} is not a dtype", help=near) from None
        if found not in self.allowed:
            raise at.fail(
                f"{at.name} of {at.op} cannot be {found.name}",
                help="it may be " + ", ".join(d.name for d in self.allowed),
            )
        return found


class Synonym(Struct, frozen=True):
    """Another keyword for an attribute, with its own words."""

    name: str
    words: Mapping[str, str]


class AttributeSpec(Struct, frozen=True):
    """One declared attribute, as the call form, the pages and the builder see it."""

    name: str
    kind: Kind
    default: Any
    doc: str
    synonym: Synonym | None

    @property
    def required(self) -> bool:
        return self.default is REQUIRED


def attribute(kind: Kind, doc: str, *, default: Any = REQUIRED, synonym: Synonym | None = None) -> AttributeSpec:
    """The annotation of a field of an attribute record. Passes that build records directly give every field."""
    return AttributeSpec("", kind, default, doc, synonym)


@cache
def attribute_specs(record: type[Attributes]) -> tuple[AttributeSpec, ...]:
    """The declared attributes of a record, in order."""
    return tuple(replace(spec, name=name) for name, spec in record.declarations().items())
