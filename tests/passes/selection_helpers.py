"""One way to run ``fuse-selection`` among its neighbours, and to emit and run what comes of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pass_helpers as h

from dmlc.codegen.onnx import emit
from dmlc.ir import Graph
from dmlc.passes.canonicalize_reduce import CanonicalizeReduce
from dmlc.passes.cse import Cse
from dmlc.passes.dce import Dce
from dmlc.passes.fuse_selection import FuseSelection
from dmlc.passes.legalize import Legalize
from dmlc.passes.lower_hardmax import LowerHardmax
from dmlc.passes.manager import PassContext, PassManager
from dmlc.targets import load_target
from tests.kit import run

ALLOWED = {"exact": h.CLASSES[:1], "default": h.CLASSES[:2], "range": h.CLASSES}


def fuse(graph: Graph, target: str = "directml", allowed: str = "default", opset: int = 21) -> PassContext:
    """The graph as ``fuse-selection`` and the canonical forms around it leave it."""
    ctx = h.context(target, ALLOWED[allowed], opset)
    PassManager((CanonicalizeReduce(), FuseSelection(), CanonicalizeReduce(), Dce())).run(graph, ctx)
    return ctx


def fired(ctx: PassContext) -> list[tuple[str, str]]:
    """The rewrites of the pass's rules; the moves that they share with other passes are left out."""
    others = {"dce", "double-inverse", "reshape-chain", "move-nothing", "transpose-chain"}
    return [(rule, kind) for rule, kind in h.ledger(ctx) if rule not in others]


def reasons(ctx: PassContext, rule: str) -> str:
    return " | ".join(r.reason() for r in ctx.remarks if r.rule == rule)


def model_of(graph: Graph, target: str = "directml", opset: int = 21) -> onnx.ModelProto:
    """The ONNX model of a graph that is changed by it."""
    ctx = PassContext(load_target(target), opset)
    PassManager((LowerHardmax(), Legalize(), Cse(), Dce())).run(graph, ctx)
    model: onnx.ModelProto = emit(graph, ctx.target, opset).payload
    return model


def operators(graph: Graph, target: str = "directml", opset: int = 21) -> list[str]:
    return [node.op_type for node in model_of(graph.clone(), target, opset).graph.node]


def run_cpu(graph: Graph, feeds: dict[str, np.ndarray], opset: int = 21) -> list[Any]:
    """The results of ONNX Runtime's CPU provider for the graph as it is."""
    return list(run(model_of(graph.clone(), opset=opset), feeds).values())


def hard_inputs(shape: Sequence[int], dtype: Any = np.float32) -> list[np.ndarray]:
    """Normal numbers, ties, zeros of both signs, infinities, all equal, both ends of the type."""
    rng = np.random.default_rng(5)
    if np.dtype(dtype).kind != "f":
        ends = np.iinfo(dtype)
        picks = np.array([ends.max, ends.max - 1, 0, ends.min + 1], dtype=dtype)
        return [rng.integers(-2 if ends.min < 0 else 0, 3, shape).astype(dtype), rng.choice(picks, shape)]
    top = np.finfo(dtype).max
    wild = rng.choice(np.array([np.inf, -np.inf, top, -top, 0.0, -0.0, 1.0]), shape)
    ties = rng.integers(-1, 2, shape)
    return [
        np.asarray(a).astype(dtype) for a in (rng.standard_normal(shape), ties, ties * 0.0, wild, np.full(shape, 3))
    ]


def compare(before: Graph, after: Graph, arrays: Sequence[np.ndarray], opset: int = 21, name: str = "x") -> None:
    """Both graphs by the references and on ONNX Runtime: equal, but for the sign of a zero."""
    for array in arrays:
        feeds = {name: array}
        want = h.evaluate(before, feeds)
        h.assert_equal(want, h.evaluate(after, feeds))
        h.assert_equal(want, run_cpu(before, feeds, opset))
        h.assert_equal(want, run_cpu(after, feeds, opset))
