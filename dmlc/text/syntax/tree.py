"""The syntax tree: what was written, with its places, and nothing about what it means.

All nodes are frozen and compare without their spans. Chains of one precedence are flat, so the depth of a tree is
bounded by the brackets of the program.
"""

from __future__ import annotations

from dataclasses import field
from typing import TypeAlias

from dmlc.diagnostics import Span
from dmlc.records import dataclass, unguarded


def _span() -> Span:
    place: Span = field(compare=False, repr=False)
    return place


@unguarded
@dataclass(frozen=True, slots=True)
class Name:
    """A name; a quoted one is never read as a word, a number or a dtype."""

    text: str
    quoted: bool
    span: Span = _span()


@unguarded
@dataclass(frozen=True, slots=True)
class Number:
    """A number as written."""

    text: str
    span: Span = _span()


@unguarded
@dataclass(frozen=True, slots=True)
class String:
    """A string; ``text`` is what it means."""

    text: str
    span: Span = _span()


@unguarded
@dataclass(frozen=True, slots=True)
class ListOf:
    items: tuple[Expr, ...]
    span: Span = _span()


@unguarded
@dataclass(frozen=True, slots=True)
class Keyword:
    name: Name
    value: Expr


@unguarded
@dataclass(frozen=True, slots=True)
class Call:
    """``callee`` has several parts for ``onnx.Name``."""

    callee: tuple[Name, ...]
    operands: tuple[Expr, ...]
    keywords: tuple[Keyword, ...]
    span: Span = _span()


@unguarded
@dataclass(frozen=True, slots=True)
class Slice:
    """``start:stop:step`` in an index; None where one is left out."""

    start: Expr | None
    stop: Expr | None
    step: Expr | None
    span: Span = _span()


@unguarded
@dataclass(frozen=True, slots=True)
class Ellipsis:
    """``...`` in an index."""

    span: Span = _span()


@unguarded
@dataclass(frozen=True, slots=True)
class Index:
    """``operand[items][items]``: each of ``subscripts`` holds the items of one bracket."""

    operand: Expr
    subscripts: tuple[tuple[Expr | Slice | Ellipsis, ...], ...]
    span: Span = _span()


@unguarded
@dataclass(frozen=True, slots=True)
class Paren:
    inner: Expr
    span: Span = _span()


@unguarded
@dataclass(frozen=True, slots=True)
class Prefix:
    """Signs before an operand, the outermost first."""

    signs: tuple[str, ...]
    operand: Expr
    span: Span = _span()


@unguarded
@dataclass(frozen=True, slots=True)
class Power:
    """``a ** b ** c``, which is ``a ** (b ** c)``."""

    operands: tuple[Expr, ...]
    span: Span = _span()


@unguarded
@dataclass(frozen=True, slots=True)
class Cast:
    """``operand as a as b``."""

    operand: Expr
    dtypes: tuple[Name, ...]
    span: Span = _span()


@unguarded
@dataclass(frozen=True, slots=True)
class Infix:
    """Operators of one precedence, applied from the left."""

    first: Expr
    rest: tuple[tuple[str, Expr], ...]
    span: Span = _span()


@unguarded
@dataclass(frozen=True, slots=True)
class Pipe:
    """``first |> call |> call``."""

    first: Expr
    calls: tuple[Call, ...]
    span: Span = _span()


Expr: TypeAlias = Name | Number | String | ListOf | Call | Index | Paren | Prefix | Power | Cast | Infix | Pipe


@unguarded
@dataclass(frozen=True, slots=True)
class Type:
    """``f32[N, 3]``."""

    dtype: Name
    sizes: tuple[Expr, ...]
    span: Span = _span()


@unguarded
@dataclass(frozen=True, slots=True)
class Header:
    version: Number
    span: Span = _span()


@unguarded
@dataclass(frozen=True, slots=True)
class Used:
    """A name of another file, and the name that it gets here."""

    name: Name
    alias: Name | None

    @property
    def here(self) -> Name:
        """The name that it has in this file."""
        return self.alias or self.name


@unguarded
@dataclass(frozen=True, slots=True)
class Use:
    """``use a, b as c from "file.dml"``; ``file`` is None for the standard library."""

    used: tuple[Used, ...]
    file: String | None
    span: Span = _span()


@unguarded
@dataclass(frozen=True, slots=True)
class Dim:
    name: Name
    low: Expr
    high: Expr
    span: Span = _span()


@unguarded
@dataclass(frozen=True, slots=True)
class Const:
    name: Name
    type: Type
    value: Expr
    span: Span = _span()


@unguarded
@dataclass(frozen=True, slots=True)
class Assign:
    targets: tuple[Name, ...]
    value: Expr
    span: Span = _span()


@unguarded
@dataclass(frozen=True, slots=True)
class Return:
    values: tuple[Expr, ...]
    span: Span = _span()


@unguarded
@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a ``def`` after ``*``."""

    name: Name
    default: Expr | None


@unguarded
@dataclass(frozen=True, slots=True)
class Def:
    """``body`` ends in its only ``Return``, which ``result`` is."""

    name: Name
    parameters: tuple[Name, ...]
    keywords: tuple[Parameter, ...]
    body: tuple[Assign, ...]
    result: Return
    span: Span = _span()


@unguarded
@dataclass(frozen=True, slots=True)
class Input:
    """``range`` are the bounds of its elements, where it promises any."""

    name: Name
    type: Type
    range: tuple[Expr, Expr] | None = None


@unguarded
@dataclass(frozen=True, slots=True)
class Result:
    name: Name
    type: Type | None


@unguarded
@dataclass(frozen=True, slots=True)
class Model:
    """``body`` ends in its only ``Return``, which ``result`` is; ``span`` is the head's."""

    name: Name
    inputs: tuple[Input, ...]
    results: tuple[Result, ...]
    body: tuple[Assign, ...]
    result: Return
    span: Span = _span()


Item: TypeAlias = Header | Use | Dim | Const | Def | Model


@unguarded
@dataclass(frozen=True, slots=True)
class Program:
    """A whole file, in the order of the file."""

    items: tuple[Item, ...]
