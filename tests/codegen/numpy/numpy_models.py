"""Helpers of these tests: small graphs, the reference's answer, and generated code that runs by itself."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dmlc.codegen.numpy import Style, emit
from dmlc.codegen.numpy.names import identifier
from dmlc.ir import DType, Graph, Node, Operation, Tensor, TensorType, Value, as_dtype, symbol
from dmlc.ir.dtype import f32
from dmlc.ops import INFIX, OPERATIONS, PREFIX
from dmlc.ops.call import CallSite
from dmlc.ops.constant import CONSTANT, ConstantAttributes
from dmlc.runtime.reference import evaluate
from tests.calls import add_call


class Model:
    """A graph under construction, with the operations by their name or sign."""

    def __init__(self, name: str = "model", **dims: tuple[float, float]) -> None:
        self.graph = Graph(name)
        for dim, interval in dims.items():
            self.graph.declare_dim(dim, interval)

    def input(self, name: str, dtype: str | DType, *shape: Any) -> Value:
        sizes = tuple(symbol(d) if isinstance(d, str) else d for d in shape)
        return self.graph.add_input(name, TensorType(as_dtype(dtype), sizes))

    def constant(self, array: Any, name: str | None = None) -> Value:
        value = self.graph.add(CONSTANT, (), ConstantAttributes(value=Tensor(array))).result
        value.name = name
        return value

    def node(self, op: str | Operation, *operands: Any, **attributes: Any) -> Node:
        if isinstance(op, str):
            op = PREFIX[op] if op in PREFIX and len(operands) == 1 else OPERATIONS.get(op) or INFIX[op]
        return add_call(self.graph, op, operands, attributes, CallSite())

    def call(self, op: str | Operation, *operands: Any, name: str | None = None, **attributes: Any) -> Value:
        value = self.node(op, *operands, **attributes).result
        value.name = name
        return value

    def returns(self, **outputs: Value) -> Graph:
        self.graph.set_outputs(list(outputs.items()))
        return self.graph


def source(graph: Graph, style: Style = "plain") -> str:
    text = emit(graph, style).payload
    assert isinstance(text, str)
    return text


def function(text: str, name: str = "model") -> Any:
    """The function of a generated file, run where our package does not exist."""
    tree = ast.parse(text, feature_version=(3, 11))
    imports = [alias.name for item in tree.body if isinstance(item, ast.Import) for alias in item.names]
    assert imports == ["numpy"]
    namespace: dict[str, Any] = {"__name__": "generated"}
    exec(compile(tree, "generated.py", "exec", dont_inherit=True), namespace)
    return namespace[name]


def run(graph: Graph, feeds: Sequence[np.ndarray], style: Style = "plain") -> tuple[np.ndarray, ...]:
    """The results of the generated code; any warning is an error."""
    return results_of(graph, source(graph, style), feeds)


def results_of(graph: Graph, text: str, feeds: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """As ``run``, of code that was generated before."""
    return called(graph, function(text, identifier(graph.name)), feeds)


def called(graph: Graph, made: Any, feeds: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The results of a generated function; any warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = made(*feeds)
    results = (results,) if len(graph.outputs) == 1 else results
    for result in results:
        assert type(result) is np.ndarray
    return results


def expected(graph: Graph, feeds: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
    """The answers of the operations' references."""
    return tuple(evaluate(graph, {v.name or "": x for v, x in zip(graph.inputs, feeds, strict=True)}).values())


#: f16 and f32 may round once more than the reference; sums of f64 may be taken in another order.
TOLERANCE: Mapping[str, float] = {"float16": 2e-3, "float32": 1e-5, "float64": 1e-12}


def compare(got: Sequence[np.ndarray], want: Sequence[np.ndarray], *, mixed: bool = False) -> None:
    """Equal dtypes and shapes; integers and bool exactly, floats within the tolerance, NaN where NaN is.

    ``mixed``: an f64 may have been f32 before. Numbers of about 1 are fed, and what is left where they cancel is as
    exact as they are.
    """
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if a.dtype.kind != "f":
            np.testing.assert_array_equal(a, b)
            continue
        finite = np.abs(b[np.isfinite(b)].astype(np.float64))
        near = TOLERANCE["float32" if mixed and a.dtype == np.float64 else a.dtype.name]
        scale = max(1.0, float(finite.max())) if finite.size else 1.0
        np.testing.assert_allclose(a, b, rtol=near, atol=near * scale / 25)


def check(graph: Graph, *feeds: np.ndarray) -> None:
    """The generated code of both styles agrees with the reference."""
    check_each(graph, [feeds])


def check_each(graph: Graph, several: Sequence[Sequence[np.ndarray]]) -> None:
    """As ``check``, for several feeds of code that is generated once."""
    mixed = any(v.type.dtype is f32 for node in graph for v in node.results)
    texts = dict.fromkeys((source(graph), source(graph, "fast")))
    functions = [function(text, identifier(graph.name)) for text in texts]
    for feeds in several:
        want = expected(graph, feeds)
        for made in functions:
            compare(called(graph, made, feeds), want, mixed=mixed)


def sample(dtype: str | DType, shape: Sequence[int], seed: int = 0, *, wild: bool = False) -> np.ndarray:
    """Numbers with ties and both signs; ``wild`` ones have the ends of the dtype, zeros of both signs, inf and NaN."""
    kind = as_dtype(dtype)
    rng = np.random.default_rng(seed)
    if kind.kind == "bool":
        return rng.random(shape) < 0.5
    if kind.is_float:
        pool = np.array([-3.5, -2.0, -1.0, -0.25, 0.5, 1.0, 1.75, 2.5], kind.numpy)
        if wild:
            big = np.finfo(kind.numpy).max
            pool = np.array([-np.inf, -big, -2.5, -0.0, 0.0, 0.5, 3.5, big, np.inf, np.nan], kind.numpy)
    else:
        low, high = int(kind.lowest), int(kind.highest)
        pool = np.array([low, low + 1, high, high - 1, 0, 1, 2, 3, 5, 7], kind.numpy)
        if not wild:
            pool = np.array([1, 2, 3, 4, 5, 7] + ([-1, -2, -6] if low else []), kind.numpy)
    return rng.choice(pool, shape)
