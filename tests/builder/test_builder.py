"""The builder: graphs, tensors, operators, constants, one function for each operation."""

from __future__ import annotations

import builtins
import inspect
import keyword
import math
import operator
import time
from typing import Any

import numpy as np
import pytest

import dmlc
from dmlc import builder
from dmlc.ir import DTYPES
from dmlc.ir.verifier import verify
from dmlc.ops import INFIX, OPERATIONS
from dmlc.ops.attributes import attribute_specs
from dmlc.runtime.reference import evaluate
from tests.rows import each_row


@pytest.fixture
def g() -> dmlc.Graph:
    return dmlc.Graph("g")


def run(g: dmlc.Graph, **feeds: Any) -> dict[str, np.ndarray]:
    verify(g.graph)
    return evaluate(g.graph, feeds)


X = np.array([[3, -1, 2], [5, 5, -7]], np.float32)


def test_inputs_dims_and_shapes(g: dmlc.Graph) -> None:
    n = g.dim("N", min=2, max=64)
    x = g.input("x", dtype="float32", shape=("N", 8, n * 2, "M"))
    assert x.dtype is dmlc.f32
    assert [str(size) for size in x.shape] == ["N", "8", "2 * N", "M"]
    assert g.graph.dims.bounds == {"N": (2, 64)}  # M is unbounded: it is not declared
    assert g.dim("K") == builder.graph.symbol("K")
    assert g.graph.dims.bounds["K"] == (1, math.inf)
    assert g.input("scalar", "f64", ()).shape == ()
    assert g.input("one", "f64", 3).shape == (3,)


@each_row("dtype", DTYPES, ids=str)
def test_spellings_of_dtypes(dtype: dmlc.DType) -> None:
    g = dmlc.Graph("g")
    spellings = [dtype, dtype.name, dtype.long_name, dtype.numpy, dtype.numpy.type]
    for i, spelling in enumerate(spellings):
        assert g.input(f"x{i}", dtype=spelling, shape=(2,)).dtype is dtype


INFIX_CASES = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "==": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le,
    ">": operator.gt, ">=": operator.ge, "&": operator.and_, "|": operator.or_, "^": operator.xor,
}  # fmt: skip


def test_every_infix_operation_has_an_operator() -> None:
    assert set(INFIX_CASES) == set(INFIX)


@each_row("sign", INFIX_CASES)
@each_row("form", ["tensors", "number right", "number left", "array left", "array right"])
def test_operators(sign: str, form: str) -> None:
    g = dmlc.Graph("g")
    apply = INFIX_CASES[sign]
    dtype = np.int32 if sign in "&|^" else np.float32
    a, b = np.array([1, 2, 3, 4, 5], dtype), np.array([5, 4, 3, 2, 1], dtype)
    x, y = g.input("a", dtype, 5), g.input("b", dtype, 5)
    made, want = {
        "tensors": lambda: (apply(x, y), apply(a, b)),
        "number right": lambda: (apply(x, 3), apply(a, 3)),
        "number left": lambda: (apply(3, x), apply(3, a)),
        "array left": lambda: (apply(b, x), apply(b, a)),
        "array right": lambda: (apply(x, b), apply(a, b)),
    }[form]()
    g.output("y", made)
    got = run(g, a=a, b=b)["y"]
    # powers of f32 may be computed in another order; everything else on these small integers is exact
    np.testing.assert_allclose(got, want, rtol=1e-6 if sign in ("**", "/") else 0)


def test_unary_operators_and_matmul(g: dmlc.Graph) -> None:
    x, m = g.input("x", "f32", (2, 3)), np.arange(6, dtype=np.float32).reshape(3, 2)
    results = {"neg": -x, "abs": abs(x), "mat": x @ m, "tam": m @ x, "not": ~(x > 0), "not_": dmlc.not_(x > 0)}
    for name, value in results.items():
        g.output(name, value)
    out = run(g, x=X)
    for name, want in {"neg": -X, "abs": abs(X), "mat": X @ m, "tam": m @ X, "not": X <= 0, "not_": X <= 0}.items():
        np.testing.assert_array_equal(out[name], want)


def test_augmented_assignment_and_precedence(g: dmlc.Graph) -> None:
    x = y = g.input("x", "f32", (2, 3))
    y += 1
    y *= 2
    g.output("y", y - x * 2 ** dmlc.constant(np.float32(2)))
    np.testing.assert_array_equal(run(g, x=X)["y"], (X + 1) * 2 - X * 4)


def test_astype(g: dmlc.Graph) -> None:
    x = g.input("x", "f32", (2, 3))
    for spelling in ("float16", "f16", np.float16, np.dtype("f2"), dmlc.f16):
        assert x.astype(spelling).dtype is dmlc.f16


def test_tensors_are_told_apart_by_identity(g: dmlc.Graph) -> None:
    x, y = g.input("x", "f32", 3), g.input("y", "f32", 3)
    assert len({x, y, x}) == 2
    assert isinstance(x == y, builder.Tensor)
    assert isinstance(x != y, builder.Tensor)


def test_numpy_numbers_are_literals(g: dmlc.Graph) -> None:
    x = g.input("x", "f16", 3)
    assert (x * np.float64(0.5)).dtype is dmlc.f16
    assert (np.float32(0.5) * x).dtype is dmlc.f16
    assert (x + np.int64(2)).dtype is dmlc.f16


# --- several results


def test_several_results(g: dmlc.Graph) -> None:
    x = g.input("x", "f32", (2, 3))
    both = dmlc.top_k(x, k=2)
    values, indices = both
    assert both.values is values
    assert both.indices is indices
    parts = dmlc.split(x, axis=1, sizes=(1, 2))
    assert [part.shape for part in parts] == [(2, 1), (2, 2)]
    assert isinstance(dmlc.split(x, axis=1, sizes=[3]), tuple)


def test_operands_by_name(g: dmlc.Graph) -> None:
    x = g.input("x", "f32", (2, 3))
    g.output("y", dmlc.where(cond=x > 0, a=x, b=-x))
    g.output("z", dmlc.where(x > 0, x, b=1))
    out = run(g, x=X)
    np.testing.assert_array_equal(out["y"], abs(X))
    np.testing.assert_array_equal(out["z"], np.where(X > 0, X, 1))


# --- constants


def test_a_constant_joins_the_graph_that_uses_it() -> None:
    w = dmlc.constant(np.arange(3, dtype=np.float32))
    for name in ("a", "b"):
        g = dmlc.Graph(name)
        x = g.input("x", "f32", (2, 3))
        g.output("y", x * w)
        g.output("z", w + x)
        g.output("w", w)
        assert sum(node.op.name == "constant" for node in g.graph) == 1
        out = run(g, x=X)
        np.testing.assert_array_equal(out["y"], X * np.arange(3))
        np.testing.assert_array_equal(out["w"], np.arange(3))


def test_what_is_made_of_constants_alone_joins_later(g: dmlc.Graph) -> None:
    a, b = dmlc.constant(np.float32(2)), dmlc.constant(np.float32(3))
    shared = dmlc.sqrt(a * a) + b * dmlc.iota(length=3, dtype="f32")
    assert shared.shape == (3,)
    top, index = dmlc.top_k(shared, k=1)
    x = g.input("x", "f32", (2, 3))
    g.output("y", x + shared)
    g.output("top", top)
    g.output("index", index)
    count = len(g.graph)
    g.output("again", shared)
    assert len(g.graph) == count, "what has joined joins once"
    out = run(g, x=X)
    np.testing.assert_array_equal(out["y"], X + np.array([2, 5, 8]))
    np.testing.assert_array_equal(out["top"], [8])
    np.testing.assert_array_equal(out["index"], [2])


def test_a_long_chain_of_constants_needs_no_recursion(g: dmlc.Graph) -> None:
    value = dmlc.constant(np.int32(0))
    for _ in range(5000):
        value = value + 1
    g.output("y", value)
    assert run(g)["y"] == 5000


def test_constants_from_numbers_and_lists() -> None:
    assert dmlc.constant(2.5).dtype is dmlc.f64
    assert dmlc.constant([1, 2], dtype="u8").dtype is dmlc.u8
    assert dmlc.constant([[True], [False]]).shape == (2, 1)
    array = np.zeros(3, np.float32)
    w = dmlc.constant(array)
    array[:] = 1
    g = dmlc.Graph("g")
    g.output("w", w)
    np.testing.assert_array_equal(run(g)["w"], 0)


def test_iota_of_a_dim(g: dmlc.Graph) -> None:
    n = g.dim("N", min=0)
    x = g.input("x", "f32", (n,))
    g.output("y", x + dmlc.iota(length=n, dtype="f32"))
    g.output("half", dmlc.iota(length=(n + 1) // 2, dtype="i32"))
    out = run(g, x=np.ones(5, np.float32))
    np.testing.assert_array_equal(out["y"], [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(out["half"], [0, 1, 2])


# --- the functions and their declarations


@each_row("name", OPERATIONS)
def test_functions_follow_the_declarations(name: str) -> None:
    op = OPERATIONS[name]
    python_name = f"{name}_" if keyword.iskeyword(name) else name
    function = getattr(dmlc, python_name)
    signature = inspect.signature(function)
    declared = [operand.name for operand in op.operands]
    for spec in attribute_specs(op.attributes):
        is_like = bool(spec.kind.like)
        declared += [spec.name, *([spec.synonym.name] if spec.synonym else []), *(["like"] if is_like else [])]
        parameter = signature.parameters[spec.name]
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        assert (parameter.default is inspect.Parameter.empty) == (spec.required and not is_like)
    assert list(signature.parameters) == declared
    assert op.summary in (function.__doc__ or "")
    assert function.__name__ == python_name
    assert function.__module__ == "dmlc"


def test_star_import_brings_everything_that_shadows_nothing() -> None:
    namespace: dict[str, Any] = {}
    exec("from dmlc import *", namespace)
    for name in ("argmax", "top_k", "not_", "Graph", "constant", "onnx", "f32", "bool_", "DmlcError", "Program"):
        assert name in namespace
    for name in ("min", "max", "abs", "pow", "round", "slice", "sum", "compile", "bool"):
        assert name not in namespace
    for name in ("min", "max", "abs", "pow", "round", "slice"):
        assert getattr(dmlc, name) is not getattr(builtins, name)
    assert dmlc.bool is dmlc.bool_
    assert set(dmlc.__all__) <= set(dir(dmlc))
    with pytest.raises(AttributeError, match="no attribute 'argmx'"):
        dmlc.argmx  # noqa: B018


def test_one_input_and_one_tensor_may_be_several_outputs(g: dmlc.Graph) -> None:
    x = g.input("x", "f32", (2, 3))
    y = dmlc.exp(x)
    g.output("a", y)
    g.output("b", y)
    g.output("same", x)
    assert list(run(g, x=X)) == ["a", "b", "same"]
    assert repr(y) == "<Tensor a: f32[2, 3]>"
    assert "1 node>" in repr(g)


def test_many_nodes_are_quick(g: dmlc.Graph) -> None:
    """A guard against work that grows with the graph: the second thousand costs about what the first did."""

    x = y = g.input("x", "f32", ("N", 8, 16))
    times = []
    for _ in range(8):
        start = time.perf_counter()
        for _ in range(250):
            y = dmlc.softmax(dmlc.exp(y + x), axes=(1, 2)) * 0.5
        times.append(time.perf_counter() - start)
    assert min(times[4:]) < 6 * min(times[:4])
