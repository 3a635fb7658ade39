"""One element of each elementwise operation, in Python's own arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tools.oracles.core import bits

NAN, INF = math.nan, math.inf


def _nan_passes(function: Callable[[float], float]) -> Callable[[float, str], Any]:
    return lambda x, _: NAN if isinstance(x, float) and math.isnan(x) else function(x)


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return INF


def _log(x: float) -> float:
    return math.log(x) if x > 0 else (-INF if x == 0 else NAN)


def _round(x: float) -> float:
    """The nearest integer, the even one of two."""
    if math.isinf(x):
        return x
    low = math.floor(x)
    rest = Fraction(x) - low
    up = rest > Fraction(1, 2) or (rest == Fraction(1, 2) and low % 2 == 1)
    return float(low + up)


def _keep_inf(function: Callable[[float], int]) -> Callable[[float], float]:
    return lambda x: x if math.isinf(x) else float(function(x))


def _wave(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: NAN if math.isinf(x) else function(x)


def _not(x: Any, dtype: str) -> Any:
    if dtype == "bool":
        return not x
    return -x - 1 if dtype[0] == "i" else 2 ** bits(dtype) - 1 - x


#: name -> (element, dtype) -> element
UNARY: dict[str, Callable[[Any, str], Any]] = {
    "abs": _nan_passes(lambda x: x if x >= 0 else -x),
    "neg": _nan_passes(lambda x: -x),
    "exp": _nan_passes(_exp),
    "log": _nan_passes(_log),
    "sqrt": _nan_passes(lambda x: math.sqrt(x) if x >= 0 else NAN),
    "reciprocal": _nan_passes(lambda x: 1 / x if x else math.copysign(INF, x)),
    "sign": _nan_passes(lambda x: (x > 0) - (x < 0)),
    "floor": _nan_passes(_keep_inf(math.floor)),
    "ceil": _nan_passes(_keep_inf(math.ceil)),
    "round": _nan_passes(_round),
    "sin": _nan_passes(_wave(math.sin)),
    "cos": _nan_passes(_wave(math.cos)),
    "tanh": _nan_passes(math.tanh),
    "sigmoid": _nan_passes(lambda x: 1 / (1 + _exp(-x))),
    "relu": _nan_passes(lambda x: x if x > 0 else 0),
    "erf": _nan_passes(math.erf),
    "softsign": _nan_passes(lambda x: NAN if math.isinf(x) else x / (1 + abs(x))),
    "softplus": _nan_passes(lambda x: max(x, 0) + math.log1p(_exp(-abs(x)))),
    "elu": _nan_passes(lambda x: x if x > 0 else math.expm1(x)),
    "leaky_relu": _nan_passes(lambda x: x if x >= 0 else 0.01 * x),
    "hard_sigmoid": _nan_passes(lambda x: min(max(0.2 * x + 0.5, 0.0), 1.0)),
    "silu": _nan_passes(lambda x: NAN if x == -INF else x / (1 + _exp(-x))),
    "gelu": _nan_passes(lambda x: NAN if x == -INF else x * math.erfc(-x * math.sqrt(0.5)) / 2),
    "is_nan": lambda x, _: math.isnan(x),
    "is_inf": lambda x, _: math.isinf(x),
    "not": _not,
}


def _truncated(a: int, b: int) -> int:
    quotient = Fraction(a, b)
    return math.floor(quotient) if quotient >= 0 else math.ceil(quotient)


def _divide(a: Any, b: Any, dtype: str) -> Any:
    if dtype[0] != "f":
        return _truncated(a, b)
    if math.isnan(a) or math.isnan(b):
        return NAN
    if b == 0:
        return NAN if a == 0 else math.copysign(INF, a) * math.copysign(1, b)
    return a / b


def _remainder(a: Any, b: Any, dtype: str) -> Any:
    """The remainder by whole divisors; it has the divisor's sign."""
    if dtype[0] == "f":
        if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0:
            return NAN
        rest = math.fmod(a, b)
        return rest + b if rest and (rest < 0) != (b < 0) else rest
    rest = abs(a) % abs(b)
    rest = -rest if a < 0 else rest
    return rest + b if rest and (rest < 0) != (b < 0) else rest


def _power(a: Any, b: Any, dtype: str) -> Any:
    if dtype[0] != "f":
        out = 1
        for _ in range(b):
            out *= a
        return out
    if b == 0 or a == 1:
        return 1.0
    if math.isnan(a) or math.isnan(b):
        return NAN
    if a < 0 and not math.isinf(a) and not math.isinf(b) and not b.is_integer():
        return NAN
    if a == 0 and b < 0:
        return INF if b % 2 == 0 or not float(b).is_integer() else math.copysign(INF, a)
    try:
        return math.pow(a, b)
    except OverflowError:
        return INF if a > 0 or b % 2 == 0 else -INF


def _pick(a: Any, b: Any, take_a: bool) -> Any:
    if a != a or b != b:
        return NAN
    return a if take_a else b


#: name -> (element, element, dtype) -> element
BINARY: dict[str, Callable[[Any, Any, str], Any]] = {
    "add": lambda a, b, _: a + b,
    "sub": lambda a, b, _: a - b,
    "mul": lambda a, b, _: a * b,
    "div": _divide,
    "mod": _remainder,
    "pow": _power,
    "min": lambda a, b, _: _pick(a, b, a < b),
    "max": lambda a, b, _: _pick(a, b, a > b),
    "and": lambda a, b, t: (a and b) if t == "bool" else a & b,
    "or": lambda a, b, t: (a or b) if t == "bool" else a | b,
    "xor": lambda a, b, t: (a != b) if t == "bool" else a ^ b,
    "equal": lambda a, b, _: a == b,
    "not_equal": lambda a, b, _: a != b,
    "less": lambda a, b, _: a < b,
    "less_equal": lambda a, b, _: a <= b,
    "greater": lambda a, b, _: a > b,
    "greater_equal": lambda a, b, _: a >= b,
}


def floored(a: Any, b: Any, dtype: str, rounded: Callable[[float], float]) -> Any:
    """``a // b``: of integers the floor; of floats the floor of the quotient as the dtype rounds it."""
    if dtype[0] != "f":
        return math.floor(Fraction(a, b))
    quotient = _divide(a, b, dtype)
    return quotient if math.isnan(quotient) or math.isinf(quotient) else float(math.floor(rounded(quotient)))


def cast(x: Any, target: str) -> Any:
    """A cast whose result the language defines; ``build`` wraps integers and rounds floats."""
    if target == "bool":
        return x != 0
    if target[0] in "iu" and isinstance(x, float):
        return math.trunc(x)
    return x
