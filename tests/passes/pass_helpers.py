"""Small graphs, a tiny evaluator, and one way to run a pass: what the tests of passes share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dmlc.diagnostics import Source, Span
from dmlc.ir import (
    Dim,
    DType,
    Graph,
    Operation,
    OutputAttributes,
    Tensor,
    TensorType,
    Value,
    substitute,
    symbol,
)
from dmlc.ir.dtype import f32
from dmlc.ir.history import CLASSES
from dmlc.ops.call import CallSite
from dmlc.ops.constant import CONSTANT, ConstantAttributes
from dmlc.passes.manager import EXACT, RANGE, REASSOCIATES, Pass, PassContext, PassManager
from dmlc.passes.options import Options
from dmlc.runtime.graph_model import GraphModel
from dmlc.targets import Target, load_target
from tests.calls import add_call

SOURCE = Source("test.dml", "\n".join(f"line {i}" for i in range(1, 2000)))

#: Relative tolerances of rewrites that reassociate: a few roundings of the dtype's own precision.
TOLERANCE = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-12}


class Building:
    """A graph under construction; each call stands on a line of its own."""

    def __init__(self, **dims: tuple[int, float]) -> None:
        self.graph = Graph("m")
        self.line = 0
        for name, interval in dims.items():
            self.graph.declare_dim(name, interval)

    def input(self, name: str, shape: Sequence[Dim | str], dtype: DType = f32) -> Value:
        sizes = tuple(symbol(d) if isinstance(d, str) else d for d in shape)
        return self.graph.add_input(name, TensorType(dtype, sizes))

    def span(self) -> Span:
        self.line += 1
        return Span(SOURCE, self.line, 1, self.line, 7)

    def constant(self, array: Any, dtype: DType = f32) -> Value:
        record = ConstantAttributes(value=Tensor(np.asarray(array, dtype=dtype.numpy)))
        return self.graph.add(CONSTANT, (), record, spans=(self.span(),)).result

    def __call__(self, op: Operation, *operands: Any, **attributes: Any) -> Value:
        return self.node(op, *operands, **attributes)[0]

    def node(self, op: Operation, *operands: Any, **attributes: Any) -> tuple[Value, ...]:
        return add_call(self.graph, op, operands, attributes, CallSite(span=self.span())).results

    def done(self, *outputs: Value) -> Graph:
        self.graph.set_outputs([(f"y{i}", v) for i, v in enumerate(outputs)])
        return self.graph


def context(
    target: str | Target = "directml", allowed: Sequence[str] = (EXACT, REASSOCIATES), opset: int = 21, **asked: Any
) -> PassContext:
    """A context that checks the graph and the pass's claim after each pass; ``asked`` are options."""
    found = load_target(target) if isinstance(target, str) else target
    options = Options(exact=REASSOCIATES not in allowed, allow=(RANGE,) if RANGE in allowed else (), **asked)
    return PassContext(found, opset, options, verify=True)


def run(step: Pass, graph: Graph, ctx: PassContext | None = None) -> PassContext:
    ctx = ctx or context()
    PassManager((step,)).run(graph, ctx)
    return ctx


def names(graph: Graph) -> list[str]:
    """The operations but constants, in order."""
    return [node.op.name for node in graph if node.op is not CONSTANT]


def remarks(ctx: PassContext) -> list[str]:
    return [remark.reason() for remark in ctx.remarks]


def ledger(ctx: PassContext) -> list[tuple[str, str]]:
    return [(entry.rule, entry.rewrite_class) for entry in ctx.ledger]


def evaluate(graph: Graph, feeds: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs, by every operation's NumPy reference."""
    assert len(graph.output.attributes_as(OutputAttributes).names) == len(graph.output.operands)
    found = GraphModel(graph).run(feeds)
    return [found[name] for name, _ in graph.outputs]


def random_feeds(graph: Graph, binding: Mapping[str, int] | None = None, seed: int = 0) -> dict[str, np.ndarray]:
    """Small numbers of both signs; integers small enough that nothing overflows by accident."""
    rng = np.random.default_rng(seed)
    out = {}
    for value in graph.inputs:
        shape = [substitute(d, binding or {}) for d in value.shape]
        dtype = value.type.dtype
        if dtype.is_float:
            array = rng.standard_normal(shape)
        elif dtype.kind == "bool":
            array = rng.random(shape) < 0.5
        else:
            array = rng.integers(-5 if dtype.kind == "int" else 0, 6, shape)
        out[value.name or ""] = np.asarray(array).astype(dtype.numpy)
    return out


def assert_equal(before: Sequence[np.ndarray], after: Sequence[np.ndarray], *, exact: bool = True) -> None:
    assert len(before) == len(after)
    for a, b in zip(before, after, strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        if exact or a.dtype.kind != "f":
            assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), (a, b)
        else:
            # A sum near zero has lost its relative precision: the absolute tolerance is that of its terms.
            tolerance = TOLERANCE[a.dtype.name]
            np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance * 8)


def check_numbers(
    step: Pass,
    graph: Graph,
    ctx: PassContext | None = None,
    *,
    exact: bool = True,
    binding: Mapping[str, int] | None = None,
    feeds: Mapping[str, np.ndarray] | None = None,
) -> PassContext:
    """Run the pass and compare the outputs before and after."""
    feeds = feeds or random_feeds(graph, binding)
    before = evaluate(graph, feeds)
    ctx = run(step, graph, ctx)
    assert_equal(before, evaluate(graph, feeds), exact=exact)
    return ctx


ALL = CLASSES


def axes_of(graph: Graph, position: int = -1) -> tuple[int, ...]:
    """The axes of a node that has some, by its place among those."""
    attributes: list[Any] = [n.attributes for n in graph if hasattr(n.attributes, "axes")]
    axes: tuple[int, ...] = attributes[position].axes
    return axes
