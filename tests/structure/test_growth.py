"""The work of the compiler grows as the model does: counted, not timed, so that a busy machine changes nothing."""

from __future__ import annotations

import cProfile
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

import dmlc

SMALL, LARGE = 500, 4000
#: The exponent of n that calls may grow with.
MOST = 1.1
#: Fewer calls than two a node say nothing: what is rare comes by chance.
FEW = 2 * SMALL
BINARY, UNARY = ("Add", "Mul", "Sub", "Max", "Min", "Div"), ("Relu", "Tanh", "Exp", "Abs", "Neg", "Sigmoid")


def model_of(nodes: list[NodeProto]) -> ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 8])
    y = helper.make_tensor_value_info(nodes[-1].output[0], TensorProto.FLOAT, None)
    weights = [numpy_helper.from_array(np.linspace(0.5, 2, 8, dtype=np.float32), "w")]
    weights.append(numpy_helper.from_array(np.array([1]), "axes"))
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def chain(count: int) -> ModelProto:
    """One after the other: four elementwise operations, a reduction, and again."""
    nodes, last = [], "x"
    kinds = [("Add", "w"), ("Relu",), ("Mul", "w"), ("Add", "x"), ("ReduceSum", "axes")]
    for i in range(count):
        op_type, *more = kinds[i % len(kinds)]
        nodes.append(helper.make_node(op_type, [last, *more], [f"v{i}"]))
        last = f"v{i}"
    return model_of(nodes)


def dag(count: int) -> ModelProto:
    """Operations on any two of the last forty values, each fifth a reduction. With this seed the passes take as many
    rounds for either size: by chance, less cancels in few nodes than in many."""
    rng, values, nodes = random.Random(3), ["x"], []
    for i in range(count):
        a, b = rng.choice(values[-40:]), rng.choice([*values[-40:], "w"])
        if i % 5 == 4:
            nodes.append(helper.make_node("ReduceSum", [a, "axes"], [f"v{i}"]))
        elif rng.random() < 0.3:
            nodes.append(helper.make_node(rng.choice(UNARY), [a], [f"v{i}"]))
        else:
            nodes.append(helper.make_node(rng.choice(BINARY), [a, b], [f"v{i}"]))
        values.append(f"v{i}")
    total = helper.make_node("Sum", values[1:], ["total"])  # so that nothing is dead, and one node has many operands
    return model_of([*nodes, total])


@contextmanager
def counted_calls() -> Iterator[Counter[str]]:
    """Calls of Python functions, by file and name; generators count each time they go on."""
    calls: Counter[str] = Counter()
    profile = cProfile.Profile(subcalls=False, builtins=False)
    before = sys.getprofile()
    sys.setprofile(None)
    profile.enable()
    try:
        yield calls
    finally:
        profile.disable()
        sys.setprofile(before)
    for entry in profile.getstats():
        calls[f"{entry.code.co_filename}:{entry.code.co_name}"] += entry.callcount


def work(shape: Callable[[int], ModelProto], count: int, target: str) -> Counter[str]:
    model = shape(count)
    with counted_calls() as calls:
        program = dmlc.compile(model, target=target)
        program.to_onnx()
        if target == "directml":
            program.placement()
    return calls


@pytest.mark.parametrize(("shape", "target"), [(chain, "directml"), (dag, "directml")])
def test_calls_grow_as_the_model_does(shape: Callable[[int], ModelProto], target: str) -> None:
    """No function alone, and all of them together, from one size to the eightfold."""
    work(shape, 100, target)  # loads and remembers things once
    small, large = work(shape, SMALL, target), work(shape, LARGE, target)
    factor = (LARGE / SMALL) ** MOST
    grown = {name: (small[name], count) for name, count in large.items() if count > factor * max(small[name], FEW)}
    assert not grown
    assert sum(large.values()) <= factor * sum(small.values())
