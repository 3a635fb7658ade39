"""Names of dims that exporters write as expressions: ``((s50//20)) - 1``."""

from __future__ import annotations

import ast
import random
from collections.abc import Collection

from dmlc.ir import Dim, DimExpr, floordiv, substitute, symbol

#: A longer text is a name.
_MOST_TEXT = 200
#: Two expressions that agree on this many samples are taken for equal.
_SAMPLES = 16


def dim_of_text(text: str, names: Collection[str]) -> Dim:
    """The dim of that name; the expression that the name says where it is one of the dims ``names``."""
    if text in names or len(text) > _MOST_TEXT or not any(sign in text for sign in "+-*/"):
        return symbol(text)
    try:
        return _read(ast.parse(text.strip(), mode="eval").body, names)
    except (SyntaxError, ValueError, RecursionError, ZeroDivisionError):
        return symbol(text)


def _read(node: ast.expr, names: Collection[str]) -> Dim:
    """Raises ``ValueError`` for other than sums, products and floor divisions of numbers and the names."""
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return node.value
    if isinstance(node, ast.Name) and node.id in names:
        return symbol(node.id)
    if not isinstance(node, ast.BinOp):
        raise ValueError
    a, b = _read(node.left, names), _read(node.right, names)
    if isinstance(node.op, ast.Add):
        return a + b
    if isinstance(node.op, ast.Sub):
        return a - b
    if isinstance(node.op, ast.Mult):
        return a * b
    if isinstance(node.op, ast.FloorDiv):
        return floordiv(a, b)
    raise ValueError


def simpler(size: Dim, claimed: Dim) -> Dim:
    """The shorter of two expressions where samples show no difference between them; else the first."""
    if not isinstance(size, DimExpr) or not isinstance(claimed, DimExpr) or len(str(claimed)) >= len(str(size)):
        return size
    if not claimed.names() <= size.names():
        return size
    draw = random.Random(0)
    for _ in range(_SAMPLES):
        binding: dict[str, Dim] = {name: draw.randrange(1 << 10, 1 << 20) for name in sorted(size.names())}
        if substitute(size, binding) != substitute(claimed, binding):
            return size
    return claimed
