"""The normal form of a value has the numbers of the value: random expressions, and what must stay closed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pass_helpers import Building, evaluate

from dmlc.ir import Value
from dmlc.ir.dtype import f16, f32, f64, i16, i64
from dmlc.ops.binary import ADD, DIV, MAX, MUL, POW, SUB
from dmlc.ops.choose import CAST
from dmlc.ops.elementwise import NEG, RECIPROCAL, SQRT
from dmlc.ops.move import EXPAND
from dmlc.ops.reduce import REDUCE_MEAN, REDUCE_SUM, REDUCE_SUM_SQUARE
from dmlc.passes.normal_form import ONE, Form, Forms, Mean, Sum, atom, bare, plus, power, times

SHAPE = (3, 4)
ORDINARY = (-3.5, -1.25, -0.3, 0.2, 0.75, 1.5, 2.25)
SPECIAL = (0.0, -0.0, np.inf, np.nan, -1.0, 2.0)
HUGE = (1e300, -1e300, 1e-300, 3e200, 1.0)


class Random:
    """Random expressions of three inputs."""

    def __init__(self, seed: int, choices: tuple[float, ...]) -> None:
        self.rng, self.choices = np.random.default_rng(seed), choices
        self.b = Building()
        self.inputs = [self.b.input(name, SHAPE, f64) for name in "xyz"]

    def number(self) -> Value:
        return self.b.constant(self.rng.choice(self.choices), f64)

    def value(self, depth: int) -> Value:
        b, rng = self.b, self.rng
        if not depth or rng.random() < 0.1:
            return self.inputs[rng.integers(3)]
        op = (ADD, SUB, MUL, DIV, NEG, RECIPROCAL, SQRT, POW, REDUCE_MEAN, REDUCE_SUM, REDUCE_SUM_SQUARE, MAX)[
            rng.integers(12)
        ]
        x = self.value(depth - 1)
        if op in (NEG, RECIPROCAL):
            return b(op, x)
        if op is SQRT:
            return b(op, b(REDUCE_MEAN, b(MUL, x, x), axes=[1]) if rng.random() < 0.5 else b(MUL, x, x))
        if op is POW:
            return b(op, x, b.constant(rng.choice([-2.0, -1.0, 1.0, 2.0, 3.0]), f64))
        if op in (REDUCE_MEAN, REDUCE_SUM, REDUCE_SUM_SQUARE):
            return b(op, x, axes=[int(rng.integers(2))])
        if op is MAX:
            x = self.inputs[rng.integers(3)]  # a variance that is 0 but for rounding may be below 0
            m = b(REDUCE_MEAN, x, axes=[1])
            v = b(SUB, b(REDUCE_MEAN, b(MUL, x, x), axes=[1]), b(MUL, m, m))
            return b(MAX, v, b.constant(0.0, f64))
        other = self.number() if rng.random() < 0.3 else self.value(int(rng.integers(depth)))
        return b(op, x, other)


def numbers(form: Form, known: dict[Value, Any]) -> tuple[Any, Any]:
    """The numbers of a form, and the sum of the magnitudes of its terms."""
    total, size = 0.0, 0.0
    for product, factor in form.items():
        term: Any = factor
        for part, exponent in product:
            if isinstance(part, Value):
                base = known[part]
            else:
                assert isinstance(part, Mean | Sum)
                base = numbers(dict(part.of), known)[0]
                if isinstance(part, Mean):
                    base = np.mean(np.broadcast_to(base, SHAPE), axis=part.axes, keepdims=True)
            term = term * np.power(base, exponent)
        total, size = total + term, size + np.abs(term)
    return total, size


def compared(seed: int, choices: tuple[float, ...]) -> tuple[Any, Any, Any, bool]:
    """The value by its operations, by its form, the magnitude of the terms; whether it was opened at all."""
    made = Random(seed, choices)
    root = made.value(4)
    graph = made.b.done(root, *[node.result for node in made.b.graph if node.results])
    feeds = {name: made.rng.choice(choices, SHAPE) for name in "xyz"}
    with np.errstate(all="ignore"):
        plain, *others = evaluate(graph, feeds)
        known = dict(zip([n.result for n in graph if n.results], others, strict=True))
        known |= {value: feeds[value.name or ""] for value in made.inputs}
        forms = Forms(*made.inputs)
        found, size = numbers(forms.of(root), known)
    plain, found, size = (np.broadcast_to(array, SHAPE) for array in (plain, found, size))
    return plain, found, size, bool(forms.opened)


def test_numbers_of_random_expressions() -> None:
    opened = 0
    for seed in range(300):
        plain, found, size, is_open = compared(seed, ORDINARY)
        if np.isfinite(plain).all():
            np.testing.assert_allclose(found, plain, rtol=1e-6, atol=1e-9 * np.max(size), err_msg=str(seed))
            opened += is_open
    assert opened > 200


def test_no_form_makes_a_number_of_nan_or_infinity() -> None:
    for seed in range(300):
        plain, found, _, _ = compared(seed, SPECIAL)
        there = np.isfinite(found)
        np.testing.assert_allclose(plain[there], found[there], rtol=1e-6, atol=1e-9, err_msg=str(seed))


def test_what_does_not_overflow_in_either_form_is_equal() -> None:
    for seed in range(300):
        plain, found, size, _ = compared(seed, HUGE)
        there = np.isfinite(plain) & np.isfinite(found) & (np.abs(plain) > 1e-280) & (np.abs(plain) > 1e-6 * size)
        np.testing.assert_allclose(found[there], plain[there], rtol=1e-6, err_msg=str(seed))


CLOSED: dict[str, Callable[[Building, Value, Value], Value]] = {
    "x - x": lambda b, x, y: b(SUB, x, x),
    "2 x - x": lambda b, x, y: b(SUB, b(MUL, x, b.constant(2.0)), x),
    "(x + y) - y": lambda b, x, y: b(SUB, b(ADD, x, y), y),
    "(x + y) (x - y)": lambda b, x, y: b(MUL, b(ADD, x, y), b(SUB, x, y)),
    "x / x": lambda b, x, y: b(DIV, x, x),
    "x x / x": lambda b, x, y: b(DIV, b(MUL, x, x), x),
    "sqrt(x) sqrt(x)": lambda b, x, y: b(MUL, b(SQRT, x), b(SQRT, x)),
    "0 x": lambda b, x, y: b(MUL, x, b.constant(0.0)),
    "x / 0": lambda b, x, y: b(DIV, x, b.constant(0.0)),
    "x ** 0": lambda b, x, y: b(POW, x, b.constant(0.0)),
    "x ** y": lambda b, x, y: b(POW, x, y),
    "a factor too large": lambda b, x, y: b(
        MUL, b(MUL, b(CAST, x, to=f64), b.constant(1e300, f64)), b.constant(1e300, f64)
    ),
    "a factor too small": lambda b, x, y: b(DIV, b(CAST, x, to=f64), b.constant(1e-320, f64)),
    "max(x, 0)": lambda b, x, y: b(MAX, x, b.constant(0.0)),
    "a cast that rounds": lambda b, x, y: b(CAST, x, to=f16),
    "the root of a sum, rounded": lambda b, x, y: b(CAST, b(SQRT, b(ADD, x, y)), to=f16),
}


def test_integers_and_their_casts_stay_closed() -> None:
    b = Building()
    x, n = b.input("x", SHAPE), b.input("n", SHAPE, i16)
    half = b(DIV, n, b.constant(2, i16))
    assert Forms(n).of(half) == atom(half)  # it truncates
    assert bare(b(CAST, n, to=f32)) is not n
    whole = b(CAST, x, to=i64)
    assert bare(whole) is whole and Forms(x).of(whole) == atom(whole)


@pytest.mark.parametrize("made", CLOSED.values(), ids=CLOSED)
def test_what_stays_closed(made: Callable[[Building, Value, Value], Value]) -> None:
    b = Building()
    x, y = b.input("x", SHAPE), b.input("y", SHAPE)
    value = made(b, x, y)
    assert Forms(x, y).of(value) == atom(value)


def test_a_root_opens_one_factor() -> None:
    b = Building()
    x, y = b.input("x", SHAPE), b.input("y", SHAPE)
    for under in (b(MUL, x, x), b(MUL, x, y), b(NEG, x)):
        forms = Forms(x, y)
        (product,) = forms.of(b(SQRT, under))
        ((found, exponent),) = product
        assert isinstance(found, Sum) and exponent == 0.5
    assert Forms(x).of(b(SQRT, b(RECIPROCAL, x))) == atom(x, -0.5)


def test_means_of_what_is_broadcast_are_one() -> None:
    """Axes count from the end; the elements of a sum are those that it adds."""
    b = Building()
    x = b.input("x", (3, 1))
    wide = b(EXPAND, x, shape=[2, 3, 4])
    forms = Forms(x)
    assert forms.of(b(REDUCE_MEAN, wide, axes=[2])) == forms.of(b(REDUCE_MEAN, x, axes=[1]))
    (product,) = forms.of(b(REDUCE_SUM, wide, axes=[2]))
    assert forms.of(b(REDUCE_SUM, wide, axes=[2])) == {product: 4.0}
    lying = forms.of(b(REDUCE_MEAN, wide, axes=[2], keepdims=False))
    assert lying != forms.of(b(REDUCE_MEAN, wide, axes=[2]))


def test_one_over_a_count_is_rounded() -> None:
    for dtype in (f16, f32):
        b = Building()
        x = b.input("x", (2, 49), dtype)
        total = b(MUL, b(REDUCE_SUM, x, axes=[1]), b.constant(1 / 49, dtype))
        assert Forms(x).of(total) == Forms(x).of(b(REDUCE_MEAN, x, axes=[1]))
        other = b(MUL, b(REDUCE_SUM, x, axes=[1]), b.constant(1 / 48, dtype))
        assert Forms(x).of(other) != Forms(x).of(b(REDUCE_MEAN, x, axes=[1]))
        nearly = b.constant(1 + np.finfo(dtype.numpy).eps, dtype)
        assert Forms(x).of(b(MUL, x, nearly)) != atom(x)


def test_forms_are_built_as_values_are() -> None:
    b = Building()
    x, y = b.input("x", SHAPE), b.input("y", SHAPE)
    forms = Forms(x, y)
    difference = plus(atom(x), atom(y), -1)
    assert forms.of(b(POW, b(SUB, y, x), b.constant(2.0))) == power(difference, 2)
    assert forms.of(b(MUL, b(SUB, x, y), x)) == times(atom(x), difference)
    assert forms.of(b(ADD, x, b.constant([[3.0]]))) == {**atom(x), ONE: 3.0}


def test_what_depends_on_no_stop_is_an_atom() -> None:
    b = Building()
    x, y = b.input("x", SHAPE), b.input("y", SHAPE)
    scale = b(MUL, y, y)
    forms = Forms(x)
    assert forms.of(b(MUL, x, scale)) == times(atom(x), atom(scale))
    assert scale.producer not in forms.opened
