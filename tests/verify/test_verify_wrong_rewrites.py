"""Rewrites that change results are found, with fewer inputs than the default."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from model_pairs import ARGMAX, F16, I32, I64, chain, floats, ints, model, node, reductions, verify_models
from onnx import ModelProto

pytestmark = pytest.mark.usefixtures("sessions_here")

Pair = tuple[ModelProto, ModelProto]


def before_argmax(op: str, **options: Any) -> Pair:
    return chain(op, ARGMAX, **options), chain(ARGMAX, **options)


#: Wrong rewrites that onnxsim 0.8.1 made of these, with its own check green.
TABLE: dict[str, Callable[[tuple[int | str, ...]], Pair]] = {
    "int32 means are merged": lambda s: (
        reductions("ReduceMean", (1,), (0,), x=s, dtype=I32),
        reductions("ReduceMean", (0, 1), x=s, dtype=I32),
    ),
    "int64 means are merged": lambda s: (
        reductions("ReduceMean", (1,), (0,), x=s, dtype=I64),
        reductions("ReduceMean", (0, 1), x=s, dtype=I64),
    ),
    "argmax without exp": lambda s: before_argmax("Exp", x=s),
    "argmax without log": lambda s: before_argmax("Log", x=s),
    "argmax without softmax": lambda s: before_argmax(("Softmax", {"axis": -1}), x=s),  # type: ignore[arg-type]
    "argmax without softmax, f16": lambda s: before_argmax(("Softmax", {"axis": -1}), x=s, dtype=F16),  # type: ignore[arg-type]
    "argmax without sigmoid": lambda s: before_argmax("Sigmoid", x=s),
}


@pytest.mark.parametrize(("shape", "seed"), [((2, 2), 0), ((2, 3), 1), (("N", 4), 0)], ids=str)
@pytest.mark.parametrize("case", TABLE)
def test_the_table_of_changed_results(case: str, shape: tuple[int | str, ...], seed: int) -> None:
    original, result = TABLE[case](shape)
    verdict = verify_models(original, result, seed=seed)
    assert verdict.status == "different", verdict.to_text()
    assert not verdict.ok
    assert verdict.outputs[0].found is not None
    again = verify_models(original, original, seed=seed, inputs=8)
    assert again.status == "equal", again.to_text()


def normalized(variance: str, **options: Any) -> ModelProto:
    """(x - mean) / deviation; ``variance`` says where the epsilon is and what is divided by."""
    nodes = [
        node("ReduceMean", ["x", "axes"], ["mean"]),
        node("Sub", ["x", "mean"], ["centred"]),
        node("Mul", ["centred", "centred"], ["squares"]),
    ]
    if variance == "moments":
        nodes += [node("Mul", ["x", "x"], ["xx"]), node("ReduceMean", ["xx", "axes"], ["power"])]
        nodes += [node("Mul", ["mean", "mean"], ["mm"]), node("Sub", ["power", "mm"], ["biased"])]
    elif variance == "unbiased":
        nodes += [node("ReduceSum", ["squares", "axes"], ["sum"]), node("Div", ["sum", "less"], ["biased"])]
    else:
        nodes += [node("ReduceMean", ["squares", "axes"], ["biased"])]
    if variance == "outside":
        nodes += [node("Sqrt", ["biased"], ["root"]), node("Add", ["root", "eps"], ["deviation"])]
    else:
        nodes += [node("Add", ["biased", "eps"], ["variance"]), node("Sqrt", ["variance"], ["deviation"])]
    nodes.append(node("Div", ["centred", "deviation"], ["y"]))
    constants = {"axes": ints(1), "eps": floats(1e-5), "less": floats(7.0)}
    return model(*nodes, x=(4, 8), constants=constants, **options)


def with_constant(op: str, value: float, **options: Any) -> ModelProto:
    return model(node(op, ["x", "c"], ["y"]), constants={"c": floats(value)}, **options)


def padded(value: float) -> ModelProto:
    nodes = [
        node("Pad", ["x", "pads", "value"], ["padded"]),
        node("ReduceMax", ["padded", "axes"], ["y"]),
    ]
    return model(*nodes, constants={"pads": ints(0, 1, 0, 1), "value": floats(value), "axes": ints(1)})


def selected(**attributes: Any) -> ModelProto:
    return chain(("ArgMax", {"axis": 1, **attributes}), x=(3, 5))


def top(**attributes: Any) -> ModelProto:
    return model(
        node("TopK", ["x", "k"], ["v", "y"], **attributes), x=(3, 6), constants={"k": ints(3)}, outputs=["v", "y"]
    )


def lp_norm(p: int) -> ModelProto:
    return chain(("LpNormalization", {"axis": 1, "p": p}), x=(4, 5))


def divided(op: str) -> ModelProto:
    return model(node(op, ["x", "axes"], ["n"]), node("Div", ["x", "n"], ["y"]), x=(4, 5), constants={"axes": ints(1)})


WRONG: dict[str, Pair] = {
    "the last of equals": (selected(), selected(select_last_index=1)),
    "argmin": (selected(), chain(("ArgMin", {"axis": 1}), x=(3, 5))),
    "another axis": (reductions("ReduceSum", (0,), x=(3, 3)), reductions("ReduceSum", (1,), x=(3, 3))),
    "mean for sum": (reductions("ReduceMean", (1,)), reductions("ReduceSum", (1,))),
    "max for absolute max": (reductions("ReduceMax", (1,)), reductions("ReduceL1", (1,))),
    "epsilon outside of the root": (normalized("inside"), normalized("outside")),
    "unbiased variance": (normalized("inside"), normalized("unbiased")),
    "the smallest": (top(), top(largest=0)),
    "another padding value": (padded(0.0), padded(-np.inf)),
    "x - x is 0": (
        model(node("Sub", ["x", "x"], ["y"])),
        model(node("Shape", ["x"], ["s"]), node("ConstantOfShape", ["s"], ["y"])),
    ),
    "x * 0 + x": (chain("Identity"), model(node("Mul", ["x", "x"], ["s"]), node("Sqrt", ["s"], ["y"]))),
    "zero rows": (divided("ReduceL2"), lp_norm(2)),
    "square root of a square": (chain("Sqrt"), chain("Abs", "Sqrt")),
    "truncation": (chain("Round"), chain("Floor")),
    "half away from zero": (
        chain("Round"),
        model(node("Add", ["x", "c"], ["h"]), node("Floor", ["h"], ["y"]), constants={"c": floats(0.5)}),
    ),
    "softmax over the other axis": (chain(("Softmax", {"axis": 0})), chain(("Softmax", {"axis": 1}))),
    "softmax without a shift": (
        chain(("Softmax", {"axis": 1})),
        model(
            node("Exp", ["x"], ["e"]),
            node("ReduceSum", ["e", "axes"], ["s"]),
            node("Div", ["e", "s"], ["y"]),
            constants={"axes": ints(1)},
        ),
    ),
    "relu without the negative": (chain("Relu"), chain("Identity")),
    "leaky": (chain("Relu"), chain("LeakyRelu")),
    "clip by other bounds": (
        model(node("Clip", ["x", "lo", "hi"], ["y"]), constants={"lo": floats(0.0), "hi": floats(6.0)}),
        chain("Relu"),
    ),
    "less or equal": (with_constant("LessOrEqual", 0.0), with_constant("Less", 0.0)),
    "sign of the remainder": (
        model(node("Mod", ["x", "c"], ["y"]), dtype=I32, constants={"c": np.array(3, np.int32)}),
        model(node("Mod", ["x", "c"], ["y"], fmod=1), dtype=I32, constants={"c": np.array(3, np.int32)}),
    ),
    "integer division floors": (
        model(node("Div", ["x", "c"], ["y"]), dtype=I32, constants={"c": np.array(2, np.int32)}),
        model(
            node("BitShift", ["u", "c"], ["s"], direction="RIGHT"),
            node("Cast", ["x"], ["u"], to=12),
            node("Cast", ["s"], ["y"], to=I32),
            dtype=I32,
            constants={"c": np.array(1, np.uint32)},
        ),
    ),
    "another dtype": (chain("Identity"), chain(("Cast", {"to": 11}))),
    "another rank": (reductions("ReduceSum", (1,)), reductions("ReduceSum", (1,), keepdims=0)),
}
nodes = WRONG["integer division floors"][1].graph.node
nodes.insert(0, nodes.pop(1))  # the cast comes before the shift


@pytest.mark.parametrize("case", WRONG)
def test_wrong_rewrites_are_found(case: str) -> None:
    original, result = WRONG[case]
    verdict = verify_models(original, result, inputs=20)
    assert verdict.status == "different", verdict.to_text()
    assert verify_models(original, original, inputs=12).status == "equal"


# x + 0.5 is rounded itself, so that way round the original's own result moves with the last place
@pytest.mark.parametrize("case", [case for case in WRONG if case != "half away from zero"])
def test_the_other_way_round_too(case: str) -> None:
    assert verify_models(*reversed(WRONG[case])).status == "different"


def test_a_rewrite_of_class_range_passes_only_where_that_is_allowed() -> None:
    original, result = TABLE["argmax without softmax"]((2, 3))
    verdict = verify_models(original, result, allowed=("range",), inputs=8)
    assert verdict.ok
    assert verdict.outputs[0].status == "beyond the precondition"
    smallest = chain(("Softmax", {"axis": -1}), ("ArgMin", {"axis": -1, "keepdims": 1}))
    assert verify_models(original, smallest, allowed=("range",), inputs=8).status == "different"


def test_a_variance_that_cancels_is_found() -> None:
    """The other way round the original is the one that loses its digits."""
    stable, cancelling = normalized("inside"), normalized("moments")
    assert verify_models(stable, cancelling, inputs=24).status == "different"
    assert verify_models(cancelling, stable).ok
