"""The user's Python line behind a builder call: cheap to note, looked up only when a message shows it."""

from __future__ import annotations

import ast
import linecache
import os
import sys
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

from dmlc.diagnostics import Source, Span
from dmlc.ops.call import AttributeSite, CallSite

#: Files below these folders are ours, or NumPy's, whose functions call tensors; the first frame outside is the user's.
_OURS = (str(Path(__file__).parents[1]) + os.sep, str(Path(np.__file__).parent) + os.sep)


class PythonSpan(Span):
    """A call in a Python file, noted as its code object and instruction.

    Line numbers are found by walking the code's position table, which is slow in a long function, so it happens when
    a message wants them. Without columns, which ``python -X no_debug_ranges`` leaves out, the whole line is meant.
    """

    __slots__ = ("_code", "_instruction")

    def __init__(self, code: CodeType, instruction: int) -> None:
        self._code = code
        self._instruction = instruction

    def __getattr__(self, name: str) -> Any:
        """Look the range up when a part of it is first asked for."""
        if name not in Span.__slots__:
            raise AttributeError(name)
        self.source: Source = python_source(self._code.co_filename)
        self.line, self.column, self.end_line, self.end_column = _positions(self._code, self._instruction)
        return getattr(self, name)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as the place itself: code objects cannot be."""
        return Span, (self.source, self.line, self.column, self.end_line, self.end_column)

    def __copy__(self) -> PythonSpan:
        return self  # it never changes

    def __deepcopy__(self, memo: object) -> PythonSpan:
        return self

    def __eq__(self, other: object) -> bool:
        if isinstance(other, PythonSpan) and self._code is other._code:
            return self._instruction == other._instruction  # without columns, all calls of a line have one range
        return super().__eq__(other)

    def __hash__(self) -> int:
        return super().__hash__()  # an equal span may be a pickled one, which has no code


@lru_cache(maxsize=256)
def python_source(filename: str) -> Source:
    return Source.python(filename)


def caller() -> PythonSpan | None:
    """The innermost call outside this package."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_OURS):
            return PythonSpan(code, frame.f_lasti)
        frame = frame.f_back
    return None


@lru_cache(maxsize=4096)
def _positions(code: CodeType, instruction: int) -> tuple[int, int, int, int]:
    """Line, column, end line, end column, as spans count them."""
    first, last, start, end = _table(code)[instruction // 2]
    if first is None or last is None or start is None or end is None:
        return _whole_line(code.co_filename, first or code.co_firstlineno)
    return first, _column(code.co_filename, first, start), last, _column(code.co_filename, last, end)


@lru_cache(maxsize=4)
def _table(code: CodeType) -> Sequence[tuple[int | None, int | None, int | None, int | None]]:
    """Line, end line, column and end column of every instruction, each two bytes long."""
    return tuple(code.co_positions())


def _whole_line(filename: str, line: int) -> tuple[int, int, int, int]:
    text = linecache.getline(filename, line).rstrip()
    indent = len(text) - len(text.lstrip())
    return line, indent + 1, line, max(len(text), indent + 1) + 1


def _column(filename: str, line: int, offset: int) -> int:
    """A column counted in characters from 1, from an offset in bytes of UTF-8."""
    text = linecache.getline(filename, line)
    return len(text.encode("utf-8")[:offset].decode("utf-8", "ignore")) + 1


# --- a call taken apart, once it is known to be wrong


def call_site(
    span: PythonSpan | None, parameters: Sequence[str] = (), *, method: bool = False, sign: str | None = None
) -> CallSite:
    """The places of a call's operands and keywords, read from the Python source where it is at hand.

    Positional arguments are operands, or the ``parameters`` where those are given; ``method`` makes the object before
    the dot the first operand. ``sign`` is the infix operation that was called: Python calls ``x > 2`` for ``2 < x``.
    """
    if span is None:
        return CallSite()
    node = _expression(span)
    if node is None or isinstance(node, ast.Attribute):
        return CallSite(span)
    source = span.source

    def at(part: ast.expr) -> Span:
        return Span(source, *_range(source.name, part))

    operands, keywords = _parts(node, parameters, method)
    if isinstance(node, ast.Compare) and _SIGNS.get(type(node.ops[0]), sign) != sign:
        operands.reverse()
    attributes = {
        name: AttributeSite(
            value=at(value),
            elements=tuple([at(e) for e in value.elts]) if isinstance(value, (ast.List, ast.Tuple)) else (),
        )
        for name, value in keywords
    }
    return CallSite(span, [at(o) for o in operands], attributes, [_name(o) for o in operands])


_SIGNS: dict[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


def _name(node: ast.expr) -> str | None:
    """Return the name of an operand for messages: its source text, if that is short."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        return ast.unparse(node)
    return None


def _parts(node: ast.AST, parameters: Sequence[str], method: bool) -> tuple[list[ast.expr], list[tuple[str, ast.expr]]]:
    if isinstance(node, ast.BinOp):
        return [node.left, node.right], []
    if isinstance(node, ast.AugAssign):
        return [node.target, node.value], []
    if isinstance(node, ast.UnaryOp):
        return [node.operand], []
    if isinstance(node, ast.Compare):
        return [node.left, *node.comparators], []
    assert isinstance(node, ast.Call)
    if any(isinstance(a, ast.Starred) for a in node.args):
        return [], [(k.arg, k.value) for k in node.keywords if k.arg]
    keywords = [(k.arg, k.value) for k in node.keywords if k.arg]
    if not method and not parameters:
        return list(node.args), keywords
    operands = [node.func.value] if method and isinstance(node.func, ast.Attribute) else []
    return operands, [*zip(parameters, node.args, strict=False), *keywords]


def foreign_call(span: PythonSpan | None) -> tuple[list[str], dict[str, str]] | None:
    """Return the texts of the operands and keywords of ``x.mean(dim=-1)``, for the span of ``x.mean``, or of
    ``np.sum(x, axis=1)``, for its own.

    An attribute that is not called has its tensor as the operand. None where the source is not at hand, or has a star.
    """
    node = None if span is None else _expression(span)
    if span is None or not isinstance(node, (ast.Attribute, ast.Call)):
        return None
    if isinstance(node, ast.Attribute):
        return [ast.unparse(node.value)], {}
    if any(isinstance(a, ast.Starred) for a in node.args) or any(k.arg is None for k in node.keywords):
        return None
    operands = list(node.args)
    if isinstance(node.func, ast.Attribute) and _range(span.source.name, node.func) == span.range[1:]:
        operands.insert(0, node.func.value)
    return [ast.unparse(each) for each in operands], {k.arg: ast.unparse(k.value) for k in node.keywords if k.arg}


def _expression(span: PythonSpan) -> ast.AST | None:
    """The expression that the span covers; None where the source is not at hand."""
    places = _expressions(span.source.name, "".join(linecache.getlines(span.source.name)))
    return places.get((span.line, span.column, span.end_line, span.end_column))


def _range(filename: str, node: ast.expr | ast.AugAssign) -> tuple[int, int, int, int]:
    """Line, column, end line, end column of an expression."""
    end_line, end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    return node.lineno, _column(filename, node.lineno, node.col_offset), end_line, _column(filename, end_line, end)


@lru_cache(maxsize=4)
def _expressions(filename: str, text: str) -> dict[tuple[int, int, int, int], ast.AST]:
    """The calls and signs of a Python file by their place, the outer ones first; a loop may make many wrong calls.

    The place of an attribute has the attribute, or the call of it.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return {}
    found: dict[tuple[int, int, int, int], ast.AST] = {}
    for node in ast.walk(tree):
        if isinstance(node, (ast.Call, ast.BinOp, ast.Compare, ast.UnaryOp, ast.AugAssign)):
            found.setdefault(_range(filename, node), node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            found.setdefault(_range(filename, node.func), node)
        if isinstance(node, ast.Attribute):
            found.setdefault(_range(filename, node), node)
    return found
