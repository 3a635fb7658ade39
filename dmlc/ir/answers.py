"""Answers: records whose fields are the keys of the JSON that commands print and ``to_json`` returns."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeAlias, TypeVar

from msgspec import Meta, Struct, to_builtins

from dmlc.diagnostics import Span
from dmlc.ir.dim import DimExpr

#: A size, or a count that depends on dynamic sizes: a number or an expression of dims.
Size: TypeAlias = int | str
if TYPE_CHECKING:
    Real: TypeAlias = float
else:  # JSON has no NaN and no infinities, so they are texts
    Real = float | Literal["nan", "inf", "-inf"]


def words(*names: str) -> Meta:
    """Return the mark of a text that is one of these."""
    return Meta(extra_json_schema={"enum": list(names)})


class JsonRecord:
    """A record that JSON has as ``facts``."""

    __slots__ = ()

    def facts(self) -> Answer:
        """Return the answer with the keys of the JSON object."""
        raise NotImplementedError

    def to_json(self) -> dict[str, Any]:
        """Return the result as plain data, which is valid JSON."""
        return plain(self.facts())


class Answer(JsonRecord, Struct, frozen=True):
    """A record whose fields are the keys of a JSON object."""

    def facts(self) -> Answer:
        """Return the record itself."""
        return self

    @classmethod
    def of(cls, record: object, **fields: Any) -> Self:
        """Return the answer about a record: its attributes of the same names, and the ``fields`` that it lacks."""
        names = [name for name in cls.__struct_fields__ if name not in fields]
        return cls(**{name: getattr(record, name) for name in names}, **fields)


def plain(document: object) -> dict[str, Any]:
    """Return a record, or a dictionary that holds some, as plain data, which is valid JSON."""
    found: dict[str, Any] = _valid(to_builtins(document, enc_hook=_text))
    return found


Fact = TypeVar("Fact")


class BeforeAfter(Answer, Generic[Fact], frozen=True):
    """A fact about a program as written and as compiled."""

    before: Fact
    after: Fact


def _text(value: object) -> str:
    """The text of a size or a source place."""
    if isinstance(value, (DimExpr, Span)):
        return str(value)
    raise NotImplementedError(f"no JSON for {type(value).__name__}")


def _valid(value: Any) -> Any:
    """The value with lists for tuples, and texts for NaN and infinities."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, dict):
        return {key: _valid(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_valid(each) for each in value]
    return value
