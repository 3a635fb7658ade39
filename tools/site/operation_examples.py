"""A small program for the page of each operation: a call on constants, whose result the page shows."""

from __future__ import annotations

import re

from dmlc.ops import FAMILIES, INFIX, OPERATIONS, PREFIX

#: The operands by name. A call names those that it takes.
_DATA = {
    "x": "f32[2, 3] = [[3, 1, 4], [1, 5, 9]]",
    "v": "f32[4] = [-1.5, -0.5, 0.5, 2]",
    "p": "f32[4] = [0.25, 1, 2, 4]",
    "w": "f32[2] = [1, 2]",
    "a": "i32[3] = [7, -7, 6]",
    "b": "i32[3] = [2, 2, 6]",
    "f": "f32[3] = [7, -7, 6]",
    "g": "f32[3] = [2, 2, 4]",
    "t": "bool[2, 2] = [[true, true], [true, false]]",
    "c": "bool[3] = [true, false, true]",
    "d": "bool[3] = [true, true, false]",
    "i": "i32[2] = [2, 0]",
    "j": "i32[2, 2] = [[2, 0], [1, 1]]",
    "u": "f32[2, 2] = [[10, 20], [30, 40]]",
    "n": "f32[3] = [1, 0, -1]",
    "o": "f32[3] = [0, 0, 0]",
    "m": "f32[3, 1] = [[1], [0], [2]]",
    "s": "f32[3] = [1, 2, 3]",
    "z": "f32[3] = [0.5, 0.5, 0.5]",
    "r": "f32[1, 3] = [[3, 1, 4]]",
}
#: The call of an operation, and its results where it has several. Elementwise operations follow by themselves.
_CALLS = {
    "argmax": "argmax(x, axes=[1])",
    "argmin": "argmin(x, axes=[1])",
    "top_k": "top_k(x, k=2)",
    "hardmax": "hardmax(x)",
    "sort": "sort(x)",
    "argsort": "argsort(x)",
    "reduce_any": "reduce_any(t, axes=[1])",
    "reduce_all": "reduce_all(t, axes=[1])",
    "layer_norm": "layer_norm(x, s, z)",
    "rms_norm": "rms_norm(x, s)",
    "lp_norm": "lp_norm(x)",
    "cumsum": "cumsum(x, axis=1)",
    "cumprod": "cumprod(x, axis=1)",
    "is_nan": "is_nan(n / o)",
    "is_inf": "is_inf(n / o)",
    "not": "!c",
    "div": "f / g",
    "and": "c & d",
    "or": "c | d",
    "xor": "c ^ d",
    "pow": "f ** 2",
    "min": "min(a, b)",
    "max": "max(a, b)",
    "where": "where(c, f, g)",
    "clip": "clip(v, min=-1, max=1)",
    "cast": "v as i32",
    "reshape": "reshape(x, shape=[3, 2])",
    "transpose": "transpose(x, perm=[1, 0])",
    "squeeze": "squeeze(r, axes=[0])",
    "unsqueeze": "unsqueeze(s, axes=[0])",
    "expand": "expand(m, shape=[3, 2])",
    "concat": "concat(x, r, axis=0)",
    "split": "split(x, axis=1, sizes=[1, 2])",
    "slice": "x[:, ::2]",
    "pad": "pad(s, pads=[1, 2])",
    "tile": "tile(x, repeats=[1, 2])",
    "stack": "stack(f, g)",
    "flip": "flip(x, axes=[1])",
    "gather": "gather(x, i, axis=1)",
    "gather_elements": "gather_elements(x, j, axis=1)",
    "scatter_elements": "scatter_elements(x, j, u, axis=1)",
    "one_hot": "one_hot(i, depth=3)",
    "iota": "iota(length=4, dtype=i32)",
    "full": "full(shape=[2, 2], value=7, dtype=f32)",
    "matmul": "matmul(x, m)",
}
_RESULTS = {"top_k": "values, indices", "split": "first, second"}


def example_program(name: str) -> str:
    """Return a program that calls the operation."""
    call, results = _CALLS.get(name) or _call(name), _RESULTS.get(name, "y")
    used = [operand for operand in re.findall(r"\b[a-z]\b", call) if operand in _DATA]
    consts = "".join(f"const {operand}: {_DATA[operand]}\n" for operand in dict.fromkeys(used))
    return f"{consts}\nmodel example() -> ({results}) {{\n    {results} = {call}\n    return {results}\n}}\n".lstrip()


def _call(name: str) -> str:
    """Return the call of an operation on a whole tensor or two."""
    family = next(title for title, members in FAMILIES.items() if name in [op.name for op in members])
    for sign, op in INFIX.items():
        if op.name == name:
            return f"a {sign} b"
    if family in ("Reductions", "Normalization"):
        return f"{name}(x, axes=[1])"
    takes_any_sign = name not in ("log", "sqrt", "reciprocal")
    assert name in OPERATIONS or name in [op.name for op in PREFIX.values()], name
    return f"{name}({'v' if takes_any_sign else 'p'})"
