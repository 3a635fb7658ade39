"""Amounts that depend on sizes: as numbers where the sizes are fixed, and as text."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from dmlc.cli.console import human_bytes
from dmlc.importers.types import dim_of_text
from dmlc.ir import Dim, dim_names, substitute

#: The number of terms that are shown of an expression of dims.
_TERMS = 1
#: Functions in the names that exporters give to dims: ``Min(64, s50)``.
_FUNCTIONS: Mapping[str, Callable[..., int]] = {"Min": min, "Max": max}


def amount_at(value: Dim | None, sizes: Mapping[str, int]) -> int | None:
    """The amount where dims have these sizes; None where it depends on others."""
    if value is None or isinstance(value, int):
        return value
    known = dict(sizes)
    for name in dim_names(value) - sizes.keys():
        size = _called(name, sizes)
        if size is None:
            return None
        known[name] = size
    found = substitute(value, known)
    return found if isinstance(found, int) else None


def _called(name: str, sizes: Mapping[str, int]) -> int | None:
    """The size of a dim whose name is a call of a function of other dims."""
    try:
        node = ast.parse(name, mode="eval").body
    except (SyntaxError, ValueError, RecursionError):
        return None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.func.id not in _FUNCTIONS:
        return None
    texts = [f"0 + {ast.unparse(part)}" for part in node.args]  # a sum is read as an expression
    given = [substitute(dim_of_text(text, sizes), sizes) for text in texts]
    known = [size for size in given if isinstance(size, int)]
    return _FUNCTIONS[node.func.id](known) if known and len(known) == len(given) else None


def amount_text(value: Dim | None, *, as_bytes: bool = False) -> str:
    """The amount, of an expression the largest term: ``3 B * N * N + ...``."""
    if value is None:
        return "unknown"
    number: Callable[[int], str] = human_bytes if as_bytes else "{:,}".format
    if isinstance(value, int):
        return number(value)
    terms = sorted(value.terms, key=lambda term: (-len(term[0]), -abs(term[1])))
    texts = []
    for atoms, factor in terms[:_TERMS]:
        factors = [number(factor)] if factor != 1 or as_bytes or not atoms else []
        texts.append(" * ".join([*factors, *map(str, atoms)]))
    return " + ".join(texts + ["..."] * (len(terms) > _TERMS))
