"""The syntax tree: what was written, with its places, and nothing about what it means.

All nodes are frozen and compare without their spans. Chains of one precedence are flat, so the depth of a tree is
bounded by the brackets of the program.
"""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from dmlc.diagnostics import Span


class _Tree(Struct, frozen=True):
    """Base of the nodes."""

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash(self._parts())

    def _parts(self) -> tuple[object, ...]:
        return tuple([getattr(self, name) for name in self.__struct_fields__ if name != "span"])


class Name(_Tree, frozen=True):
    """A name; a quoted one is never read as a word, a number or a dtype."""

    text: str
    quoted: bool
    span: Span


class Number(_Tree, frozen=True):
    """A number as written."""

    text: str
    span: Span


class String(_Tree, frozen=True):
    """A string; ``text`` is what it means."""

    text: str
    span: Span


class ListOf(_Tree, frozen=True):
    items: tuple[Expr, ...]
    span: Span


class Keyword(_Tree, frozen=True):
    name: Name
    value: Expr


class Call(_Tree, frozen=True):
    """``callee`` has several parts for ``onnx.Name``."""

    callee: tuple[Name, ...]
    operands: tuple[Expr, ...]
    keywords: tuple[Keyword, ...]
    span: Span


class Slice(_Tree, frozen=True):
    """``start:stop:step`` in an index; None where one is left out."""

    start: Expr | None
    stop: Expr | None
    step: Expr | None
    span: Span


class Ellipsis(_Tree, frozen=True):
    """``...`` in an index."""

    span: Span


class Index(_Tree, frozen=True):
    """``operand[items][items]``: each of ``subscripts`` holds the items of one bracket."""

    operand: Expr
    subscripts: tuple[tuple[Expr | Slice | Ellipsis, ...], ...]
    span: Span


class Paren(_Tree, frozen=True):
    inner: Expr
    span: Span


class Prefix(_Tree, frozen=True):
    """A sign before an operand."""

    sign: str
    operand: Expr
    span: Span


class Infix(_Tree, frozen=True):
    """Operators of one precedence, applied from the left; powers of powers nest.

    The right side of ``as`` is a ``Name``, the right side of ``|>`` a ``Call``.
    """

    first: Expr
    rest: tuple[tuple[str, Expr], ...]
    span: Span


Expr: TypeAlias = Name | Number | String | ListOf | Call | Index | Paren | Prefix | Infix


class Type(_Tree, frozen=True):
    """``f32[N, 3]``."""

    dtype: Name
    sizes: tuple[Expr, ...]
    span: Span


class Header(_Tree, frozen=True):
    version: Number
    span: Span


class Used(_Tree, frozen=True):
    """A name of another file, and the name that it gets here."""

    name: Name
    alias: Name | None

    @property
    def here(self) -> Name:
        """The name that it has in this file."""
        return self.alias or self.name


class Use(_Tree, frozen=True):
    """``use a, b as c from "file.dml"``; ``file`` is None for the standard library."""

    used: tuple[Used, ...]
    file: String | None
    span: Span


class Dim(_Tree, frozen=True):
    name: Name
    low: Expr
    high: Expr
    span: Span


class Const(_Tree, frozen=True):
    name: Name
    type: Type
    value: Expr
    span: Span


class Assign(_Tree, frozen=True):
    targets: tuple[Name, ...]
    value: Expr
    span: Span


class Return(_Tree, frozen=True):
    values: tuple[Expr, ...]
    span: Span


class Parameter(_Tree, frozen=True):
    """A parameter of a ``def`` after ``*``."""

    name: Name
    default: Expr | None


class Def(_Tree, frozen=True):
    """``body`` ends in its only ``Return``, which ``result`` is."""

    name: Name
    parameters: tuple[Name, ...]
    keywords: tuple[Parameter, ...]
    body: tuple[Assign, ...]
    result: Return
    span: Span


class Input(_Tree, frozen=True):
    """``range`` are the bounds of its elements, where it promises any."""

    name: Name
    type: Type
    range: tuple[Expr, Expr] | None = None


class Result(_Tree, frozen=True):
    name: Name
    type: Type | None


class Model(_Tree, frozen=True):
    """``body`` ends in its only ``Return``, which ``result`` is; ``span`` is the head's."""

    name: Name
    inputs: tuple[Input, ...]
    results: tuple[Result, ...]
    body: tuple[Assign, ...]
    result: Return
    span: Span


Item: TypeAlias = Header | Use | Dim | Const | Def | Model


class Program(_Tree, frozen=True):
    """A whole file, in the order of the file."""

    items: tuple[Item, ...]
