"""Random small graphs for the tests of generated NumPy code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy_models import Model, sample

from dmlc.diagnostics import DmlcError
from dmlc.ir import Graph, Value
from dmlc.ops import OPERATIONS
from dmlc.ops.elementwise import UNARY

#: Takes a list, gives one of its items: a random generator's or hypothesis's.
Choose = Callable[[Sequence[Any]], Any]

_NAMES = [
    "p", "q", "scores", "class", "sum", "max", "np_", "l", "t_2", "add", "_rows", "_softmax", "my value", "größe", "n",
    "a_rather_long_name_for_the_scores",
    "another_name_that_is_much_longer_than_any_sane_person_would_write_in_a_program",
]  # fmt: skip
#: Functions that neither overflow nor make NaN of a number.
_UNARY = [op.name for op in UNARY if op.domain_from < 0 and (op.rounding == "exact" or op.bounds[1] < np.inf)]
_BINARY = ["+", "-", "*", "/", "min", "max", "<", "<=", "==", "%", "//"]
_REDUCE = ["reduce_sum", "reduce_mean", "reduce_max", "reduce_l1", "reduce_log_sum_exp", "reduce_sum_square"]


def random_graph(choose: Choose, steps: int = 8) -> tuple[Graph, list[np.ndarray]]:
    """A graph and something to feed it."""
    dtype = choose(["f32", "f64", "i32", "u8", "i64"])
    model = Model(choose(["model", "lambda", "a model", "range"]), n=(3, 90_000), long_dim_name_batch=(1, 9))
    n, batch = choose([3, 4]), choose([3, 5])
    inputs = [
        model.input(choose(["x", "np", "class", "image data", "l"]), dtype, "n", 3),
        model.input(choose(["y", "this_is_the_second_input_and_its_name_is_long"]), dtype, "n", 1),
        model.input("mask", "bool", "n", 3),
        model.input("z", dtype, "long_dim_name_batch", "n"),
    ]
    values = list(inputs)
    values.append(model.constant(sample(dtype, (3,)), choose(["weights", None])))
    for _ in range(steps):
        try:
            made = _step(model, values, choose)
        except (DmlcError, KeyError):
            continue  # the dtypes or shapes did not go together
        for value in made:
            name = choose([None, None, *_NAMES])
            value.name = name if all(v.name != name for v in values) else None
        values += made
    outputs = [v for v in values[4:] if not v.uses or choose([False, False, False, True])] or [values[0]]
    graph = model.returns(**{f"out_{i}": v for i, v in enumerate(outputs)})
    feeds = [
        sample(dtype, (n, 3), 1),
        sample(dtype, (n, 1), 2),
        sample("bool", (n, 3), 3),
        sample(dtype, (batch, n), 4),
    ]
    return graph, feeds


def _step(model: Model, values: list[Value], choose: Choose) -> list[Value]:
    x = choose(values)
    family = choose(["unary", "binary", "literal", "reduce", "arg", "move", "normal", "other"])
    axes = [choose(range(max(1, x.type.rank)))]
    if family == "unary":
        return [model.call(choose(_UNARY), x)]
    if family == "binary":
        other = x if choose([True, False]) else choose(values)
        # integers: a divisor that is never zero
        divides = x.type.dtype.is_integer
        return [model.call(choose(_BINARY[:3] + _BINARY[4:9] if divides else _BINARY), x, other)]
    if family == "literal":
        number = choose([2, 3, 7])
        pair = (x, number) if choose([True, True, False]) else (number, model.call("max", model.call("abs", x), 1))
        return [model.call(choose([*_BINARY, "**", "&"]), *pair)]
    if family == "reduce":
        keep = choose([True, False])
        return [model.call(choose(_REDUCE), x, axes=choose([axes, list(range(x.type.rank))]), keepdims=keep)]
    if family == "arg":
        if choose([True, False]):
            return list(
                model.node("top_k", x, k=choose([1, 3]), axis=axes[0], order=choose(["largest", "smallest"])).results
            )
        return [model.call(choose(["argmax", "argmin"]), x, axes=axes, ties=choose(["first", "last"]))]
    if family == "move":
        return [_move(model, x, choose)]
    if family == "normal":
        return [model.call(choose(["softmax", "log_softmax", "hardmax"]), x, axes=axes)]
    if choose([True, False]):
        return [model.call("cast", x, to=choose(["f32", "f64", "i32", "bool"]))]
    return [model.call("where", values[2], x, choose(values))]


def _move(model: Model, x: Value, choose: Choose) -> Value:
    op = choose(["transpose", "reshape", "unsqueeze", "slice", "concat", "pad", "cumsum", "expand"])
    assert op in OPERATIONS
    if op == "reshape":
        return model.call(op, x, shape=[-1])
    if op == "unsqueeze":
        return model.call(op, x, axes=choose([[0], [0, 2]]))
    if op == "slice":
        return model.call(
            op, x, starts=[choose([0, -1])], ends=[choose([2**31 - 1, -(2**31)])], steps=[choose([1, -1])]
        )
    if op == "concat":
        return model.call(op, x, x, axis=0)
    if op == "pad":
        return model.call(op, x, pads=[1, 0] * x.type.rank)
    if op == "cumsum":
        return model.call(op, x, axis=0, exclusive=choose([True, False]))
    if op == "expand":
        return model.call(op, x, shape=[2, *([1] * x.type.rank)])
    return model.call(op, x)
