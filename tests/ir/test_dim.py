"""Sizes: canonical forms and interval proofs, against brute-force evaluation."""

from __future__ import annotations

import itertools
from math import inf
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dmlc.ir import (
    Dim,
    DimExpr,
    DimTable,
    dim_names,
    evaluate,
    floordiv,
    larger,
    product,
    smaller,
    substitute,
    symbol,
)
from tests.rows import each_row

NAMES = ("a", "b", "c")
A, B, C = (symbol(name) for name in NAMES)


class Tree:
    """An expression twice: as a size, and as a plain function of a binding."""

    def __init__(self, dim: Dim, function: Any) -> None:
        self.dim = dim
        self.function = function


def leaf_number(n: int) -> Tree:
    return Tree(n, lambda _: n)


def leaf_name(name: str) -> Tree:
    return Tree(symbol(name), lambda binding: binding[name])


def join(op: str, x: Tree, y: Tree) -> Tree:
    if op == "+":
        return Tree(x.dim + y.dim, lambda b: x.function(b) + y.function(b))
    if op == "-":
        return Tree(x.dim - y.dim, lambda b: x.function(b) - y.function(b))
    if op == "*":
        return Tree(x.dim * y.dim, lambda b: x.function(b) * y.function(b))
    if op == "<":
        return Tree(smaller(x.dim, y.dim), lambda b: min(x.function(b), y.function(b)))
    if op == ">":
        return Tree(larger(x.dim, y.dim), lambda b: max(x.function(b), y.function(b)))
    assume(y.dim != 0)
    return Tree(floordiv(x.dim, y.dim), lambda b: x.function(b) // y.function(b))


def trees(operators: str) -> st.SearchStrategy[Tree]:
    leaves = st.one_of(st.integers(-4, 6).map(leaf_number), st.sampled_from(NAMES).map(leaf_name))
    return st.recursive(
        leaves, lambda inner: st.builds(join, st.sampled_from(list(operators)), inner, inner), max_leaves=6
    )


def bindings(low: int = 1, high: int = 4) -> list[dict[str, int]]:
    return [dict(zip(NAMES, sizes, strict=True)) for sizes in itertools.product(range(low, high + 1), repeat=3)]


@given(trees("+-*"), st.fixed_dictionaries({name: st.integers(-3, 9) for name in NAMES}))
@settings(max_examples=100)
def test_polynomials_evaluate_as_written(tree: Tree, binding: dict[str, int]) -> None:
    assert evaluate(tree.dim, binding) == tree.function(binding)


@given(trees("+-*"), trees("+-*"))
@settings(max_examples=100)
def test_equal_polynomials_have_equal_forms(x: Tree, y: Tree) -> None:
    """Degree below 7 in each name: agreement on 7 points each would be proof; distinct forms differ somewhere."""
    same = all(x.function(b) == y.function(b) for b in bindings(-3, 3))
    assert (x.dim == y.dim) is same
    if same:
        assert hash(x.dim) == hash(y.dim)
        assert str(x.dim) == str(y.dim)


@given(trees("+-*"))
@settings(max_examples=50)
def test_a_static_size_is_a_plain_int(tree: Tree) -> None:
    assert isinstance(tree.dim, int) or (isinstance(tree.dim, DimExpr) and tree.dim.names())


@given(trees("+-*/<>"), st.fixed_dictionaries({name: st.integers(1, 9) for name in NAMES}))
@settings(max_examples=100)
def test_floor_divisions_evaluate_as_written(tree: Tree, binding: dict[str, int]) -> None:
    try:
        expected = tree.function(binding)
    except ZeroDivisionError:
        assume(False)
    try:
        assert evaluate(tree.dim, binding) == expected
    except ZeroDivisionError:
        raise AssertionError("a division that the program does not make") from None


@given(trees("+-*/<>"), st.sampled_from(NAMES), trees("+-*"))
@settings(max_examples=50)
def test_substitution_is_evaluation_in_two_steps(tree: Tree, name: str, inner: Tree) -> None:
    for binding in bindings(1, 2):
        try:
            replaced = substitute(tree.dim, {name: inner.dim})
            direct = evaluate(tree.dim, {**binding, name: inner.function(binding)})
            assert evaluate(replaced, binding) == direct
        except ZeroDivisionError:
            continue


# --- proofs


def tables() -> st.SearchStrategy[DimTable]:
    bounds = st.tuples(st.integers(0, 3), st.integers(0, 4)).map(lambda p: (p[0], p[0] + p[1]))
    return st.fixed_dictionaries(dict.fromkeys(NAMES, bounds)).map(DimTable)


def sizes_of(table: DimTable) -> list[dict[str, int]]:
    ranges = [range(int(table.bounds[n][0]), int(table.bounds[n][1]) + 1) for n in NAMES]
    return [dict(zip(NAMES, sizes, strict=True)) for sizes in itertools.product(*ranges)]


@given(trees("+-*/<>"), tables())
@settings(max_examples=75)
def test_intervals_hold_every_value(tree: Tree, table: DimTable) -> None:
    low, high = table.interval(tree.dim)
    for binding in sizes_of(table):
        try:
            value = evaluate(tree.dim, binding)
        except ZeroDivisionError:
            continue
        assert low <= value <= high


@given(trees("+-*/<>"), trees("+-*/<>"), tables())
@settings(max_examples=75)
def test_what_is_proved_is_true(x: Tree, y: Tree, table: DimTable) -> None:
    try:
        pairs = [(x.function(b), y.function(b)) for b in sizes_of(table)]
    except ZeroDivisionError:
        assume(False)
    for proved, facts in (
        (table.equal(x.dim, y.dim), [a == b for a, b in pairs]),
        (table.at_most(x.dim, y.dim), [a <= b for a, b in pairs]),
    ):
        assert proved is None or all(fact is proved for fact in facts)
    assert not table.is_one(x.dim) or all(a == 1 for a, _ in pairs)


@given(tables(), st.integers(-3, 3), st.integers(-6, 6), st.integers(-12, 12))
@settings(max_examples=75)
def test_linear_questions_of_one_dim_are_always_decided(table: DimTable, k: int, m: int, n: int) -> None:
    """Interval arithmetic is complete where each name occurs once: no true relation is missed."""
    facts = [k * b["a"] + m <= n for b in sizes_of(table)]
    expected = True if all(facts) else False if not any(facts) else None
    assert table.at_most(k * A + m, n) is expected


@each_row(("dim", "text"), [
    (A + A, "2 * a"), (A * B - B * A, "0"), ((A + 1) * (A - 1), "a * a - 1"), (2 * A + 3 * B - 4, "2 * a + 3 * b - 4"),
    (-A, "-a"), (5 - A, "-a + 5"), (A // 2, "a // 2"), ((A + 1) // 2 * 3, "3 * ((a + 1) // 2)"), (6 * A // 3, "2 * a"),
    (A * B // A, "b"), (A // A, "1"), (7 // symbol("a"), "7 // a"), ((A * B + A) // A, "b + 1"), (B * A, "a * b"),
    (B // 2 * A, "a * (b // 2)"), (smaller(A, 5), "min(a, 5)"), (smaller(5, A), "min(a, 5)"),
    (larger(A - 5, 0), "max(a - 5, 0)"),
    (A - smaller(A, 5), "max(a - 5, 0)"), (smaller(A, B), "min(a, b)"), (smaller(smaller(A, 5), 3), "min(a, 3)"),
    (larger(larger(A, 3) - 4, 0), "max(a - 4, 0)"), (smaller(A, A + 1), "a"),
    (smaller(A, B) * C, "b * c + c * min(a - b, 0)"), (smaller(A, 5) + 1, "min(a + 1, 6)"),
    (smaller(B, A), "min(a, b)"),
    (-(A // 2), "-(a // 2)"),
    (((A + 1) // 2 + 1) // 2, "(a + 3) // 4"), ((A // 3 - 5) // 2, "(a + 3) // 6 - 3"), (A // 2 // B, "(a // 2) // b"),
    (A // 2**20 // 2**20, "(a // 1048576) // 1048576"), (A // 2 // -2, "(a // 2) // -2"),
    (2 * (A // 2) // 3, "(2 * (a // 2)) // 3"), ((A // 2 + B) // 3, "(b + a // 2) // 3"),
    ((4 * A + B) // 4, "a + b // 4"), ((6 * A - B + 1) // 2, "3 * a - b // 2"), ((4 * A + B) // -4, "-a + b // -4"),
    (-A // 4 * -4, "4 * ((a + 3) // 4)"), ((A - B) // 2, "(a - b) // 2"), ((B - A) // 2, "-((a - b + 1) // 2)"),
    (A + (4 - (A - A // 4 * 4)) - (4 - (A - A // 4 * 4)) // 4 * 4, "4 * ((a + 3) // 4)"),
])  # fmt: skip
def test_canonical_texts(dim: Dim, text: str) -> None:
    assert str(dim) == text


@given(trees("+-*"), trees("+-*"))
@settings(max_examples=50)
def test_min_and_max_add_up_and_are_symmetric(x: Tree, y: Tree) -> None:
    assert smaller(x.dim, y.dim) + larger(x.dim, y.dim) == x.dim + y.dim
    assert smaller(x.dim, y.dim) == smaller(y.dim, x.dim)


@each_row(("a", "b"), [
    (smaller(A, 5), A), (smaller(A, 5), 5), (0, larger(A - 5, 0)), (larger(A - 5, 0), A),
    (smaller(A, 3), smaller(A, 9)),
    (smaller(A, B), A), (smaller(A, B), B), (smaller(A, 5) + larger(A - 5, 0), A), (1, smaller(A, B)),
    (A // 2, A), ((A + 1) // 2, A), (A // 2 + A // 3, A),
    (3 * (A // 2), 2 * A), ((A - 1) // 2 + 1, A), (larger(smaller(A, 9) - 3, 0) + smaller(A, 3), A),
    (2 * smaller(A, 4), 8), (smaller(A, 5) // 2, A // 2 + 2),
])  # fmt: skip
def test_min_and_max_are_proved_case_by_case(a: Dim, b: Dim) -> None:
    assert DimTable().at_most(a, b) is True


def test_undeclared_dims_are_1_or_more() -> None:
    table = DimTable()
    assert table.interval(A) == (1, inf)
    assert table.at_most(1, A) is True
    assert table.at_most(0, A - 1) is True
    assert table.at_most(2, A) is None
    assert table.equal(A, 0) is False
    assert table.equal(A, B) is None
    assert table.interval(A * B - 1) == (0, inf)


def test_bounds_prove_what_the_language_page_says() -> None:
    assert DimTable({"anchors": (8, 8400)}).at_most(5, symbol("anchors")) is True
    assert DimTable({"n": (1, 1)}).is_one(symbol("n"))
    assert DimTable({"n": (4, 4)}).equal(symbol("n"), 4) is True
    assert not DimTable({"n": (1, 2)}).is_one(symbol("n"))


def test_divisors_that_may_be_zero_prove_nothing() -> None:
    assert DimTable({"a": (0, 4)}).interval(7 // symbol("a")) == (-inf, inf)
    assert DimTable({"a": (2, 4)}).interval(7 // symbol("a")) == (1, 3)


@each_row("numerator", [3 * A * B + 3 * A, 2 * A + 1, A * B + B, 4 * A * B + 3 * A, A + 2 * A * A])
@each_row("denominator", [2, 2 * A, A, 3 * A * B, B])
def test_only_divisions_that_come_out_even_are_divided_out(numerator: Dim, denominator: Dim) -> None:
    quotient = floordiv(numerator, denominator)
    for binding in bindings():
        assert evaluate(quotient, binding) == evaluate(numerator, binding) // evaluate(denominator, binding)


def test_a_number_beside_multiples_of_the_divisor_is_divided_alone() -> None:
    """As PyTorch halves a batch of pairs, rounding up."""
    assert floordiv(2 * A + 1, 2) == A
    assert floordiv(4 * A * B - 6 * B - 1, 2) == 2 * A * B - 3 * B - 1
    assert floordiv(3 * A + 1, -3) == -A - 1
    assert floordiv(2 * A + B, 2) != A


def test_division_by_zero_is_an_error() -> None:
    for numerator in (3, A):
        with pytest.raises(ZeroDivisionError):
            floordiv(numerator, 0)


def test_names_and_unbound_names() -> None:
    assert dim_names(A * B + C // 2) == {"a", "b", "c"}
    assert dim_names(3) == set()
    assert isinstance(A, DimExpr)
    assert (A.name, (A + 1).name if isinstance(A + 1, DimExpr) else "", (2 * A).name) == ("a", None, None)  # type: ignore[union-attr]
    assert not (A // 2).is_polynomial  # type: ignore[union-attr]
    assert not smaller(A, B).is_polynomial  # type: ignore[union-attr]
    assert (A * B + 1).is_polynomial  # type: ignore[union-attr]
    with pytest.raises(KeyError, match="b"):
        evaluate(A + B, {"a": 1})


def test_products() -> None:
    assert product([]) == 1
    assert product([2, 3]) == 6
    assert product([A, 2, B]) == 2 * A * B
    assert product([A, 0]) == 0


def test_a_size_is_not_a_number_of_the_same_text() -> None:
    assert symbol("n") != "n"
    assert symbol("n") == symbol("n")
    assert {symbol("n"): 1}[symbol("n") + 0] == 1  # type: ignore[index]
