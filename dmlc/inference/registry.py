"""Rules by operator and opset, and the one way to ask them."""

from __future__ import annotations

import importlib
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from operator import is_
from typing import TypeAlias

from onnx import TensorProto

from dmlc.inference.fact import NOTHING, Fact, is_short
from dmlc.inference.query import Fault, Query
from dmlc.ir import Dim

#: Gives the facts about the results, as many as it knows of.
Rule: TypeAlias = Callable[[Query], Sequence[Fact]]

_ELEMENTS = frozenset(TensorProto.DataType.values())
#: A longer shape is not followed: a few dozen nodes can double it each.
_MOST_AXES = 4096
#: Sizes are integers of 64 bits.
_LARGEST_SIZE = 1 << 63

_RULES: dict[tuple[str, str], list[tuple[int, Rule]]] = {}
#: Operators, by domain and name, that count elements: sizes of their results depend on data.
_COUNTING: set[tuple[str, str]] = set()
_FAMILIES = ("elementwise", "layout", "index", "matmul", "window", "microsoft", "learning")


def rule(*names: str, domain: str = "", since: int = 1, counts: bool = False) -> Callable[[Rule], Rule]:
    """Register a function as the rule of operators from an opset of their domain on.

    ``counts`` says that a size of a result is a number of elements that the data decide."""

    def register(function: Rule) -> Rule:
        for name in names:
            rows = _RULES.setdefault((domain, name), [])
            if any(first == since for first, _ in rows):
                raise ValueError(f"{name} has two rules at opset {since}")
            rows.append((since, function))
            rows.sort(key=lambda row: row[0])
            if counts:
                _COUNTING.add((domain, name))
        return function

    return register


@cache
def _load() -> None:
    for family in _FAMILIES:
        importlib.import_module(f"dmlc.inference.rules.{family}")


@lru_cache(maxsize=4096)
def _find(domain: str, op_type: str, opset: int) -> Rule | None:
    _load()
    rows = _RULES.get((domain, op_type), [])
    index = bisect_right([first for first, _ in rows], opset)
    return rows[index - 1][1] if index else None


def ruled_operators(domain: str | None = None) -> set[str]:
    """The names of the operators of a domain that have a rule; of all domains without one."""
    _load()
    return {name for found, name in _RULES if domain in (None, found)}


def has_rule(domain: str, op_type: str, opset: int) -> bool:
    return _find(domain, op_type, opset) is not None


def counts_elements(domain: str, op_type: str) -> bool:
    """Return whether sizes of the operator's results depend on data."""
    _load()
    return (domain, op_type) in _COUNTING


def infer(query: Query) -> list[Fact]:
    """The facts about a node's results; ``NOTHING`` for each that no rule infers.

    A node with operands or attributes that its operator does not take has no facts; ``query.fault`` says why where no
    runtime loads it.
    """
    found = _find(query.domain, query.op_type, query.opset)
    facts: Sequence[Fact] = ()
    if found is not None:
        try:
            facts = found(query)
        except Fault as fault:
            query.fault = str(fault)
        except (IndexError, ValueError, TypeError, ZeroDivisionError, OverflowError):
            facts = ()  # senseless attributes or elements
    sensible = [_sensible(fact, query.new_dim) for fact in facts]
    return [*sensible, *[NOTHING] * query.results][: query.results]


def _sensible(fact: Fact, new_dim: Callable[[], Dim]) -> Fact:
    """The fact without an element type that ONNX does not have, and without a shape that no tensor has. Sizes that are
    not followed are open."""
    element = fact.element if fact.element in _ELEMENTS else 0
    sizes = fact.shape or ()
    is_possible = len(sizes) <= _MOST_AXES and all(not isinstance(d, int) or 0 <= d < _LARGEST_SIZE for d in sizes)
    if not is_possible:
        return Fact(element)
    short = [d if isinstance(d, int) or is_short(d) else new_dim() for d in sizes]
    if element == fact.element and all(map(is_, short, sizes)):
        return fact
    return Fact(element, None if fact.shape is None else tuple(short))
