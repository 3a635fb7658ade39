"""One operation of one input, compiled for the cpu target: what the tests of lowering plans share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import dmlc

REDUCE_RULES = (
    "reduce-ones-too",
    "reduce-inner-first",
    "reduce-outer-first",
    "reduce-in-steps",
    "sum-blocks-first",
    "reduce-for-pool",
    "sum-by-product",
)
PART_RULES = ("softmax-in-parts", "log-sum-exp-in-parts", "norm-in-parts")


def compiled(make: Callable[[Any], Any], shape: Sequence[Any], dtype: str = "float32", **options: Any) -> dmlc.Program:
    g = dmlc.Graph("m")
    for size in shape:
        if isinstance(size, str):
            g.dim(size, min=1, max=64)
    g.output("y", make(g.input("x", dtype=dtype, shape=tuple(shape))))
    return dmlc.compile(g, target=options.pop("target", "cpu"), **options)


def operators(program: dmlc.Program) -> list[str]:
    return [node.op_type for node in program.to_onnx().graph.node]


def chosen(program: dmlc.Program) -> list[str]:
    return [e.rule for e in program.ledger if e.rule in REDUCE_RULES or e.rule in PART_RULES]


def result(program: dmlc.Program, x: np.ndarray, backend: str = "cpu") -> np.ndarray:
    return program.run({"x": x}, backend)["y"]
