"""Calls as tests make them: arrays in, arrays out, with the inferred types checked on the way."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np

from dmlc.diagnostics import DmlcError
from dmlc.inference.carried import carry
from dmlc.ir import DTYPE_BY_NAME, Dim, Graph, Node, Operation, TensorType, Value, as_dtype, evaluate, symbol
from dmlc.ops.call import CallSite, apply
from dmlc.ops.constant import constant_of

_TYPE = re.compile(r"(\w+)\[(.*)\]")


def typed(text: str) -> TensorType:
    """``typed("f32[N, 3]")``."""
    match = _TYPE.fullmatch(text)
    assert match is not None, text
    sizes = [s.strip() for s in match[2].split(",") if s.strip()]
    return TensorType(DTYPE_BY_NAME[match[1]], tuple([int(s) if s.isdigit() else symbol(s) for s in sizes]))


def node_of(
    op: Operation | str, *operands: Any, dims: dict[str, tuple[int, float]] | None = None, **keywords: Any
) -> Node:
    """The node of a call; arrays, types and texts of types become inputs, numbers stay literals. A text for the
    operation names one of ONNX."""
    graph = Graph("test")
    for name, interval in (dims or {}).items():
        graph.declare_dim(name, interval)
    arguments: list[Any] = []
    for i, operand in enumerate(operands):
        if isinstance(operand, str):
            operand = typed(operand)
        elif isinstance(operand, np.ndarray):
            operand = TensorType(as_dtype(operand.dtype), operand.shape)
        if isinstance(operand, TensorType):
            operand = graph.add_input(f"x{i}", operand)
        arguments.append(operand)
    if isinstance(op, str):
        return carry(graph, "", op, arguments, keywords, 1, CallSite())
    return apply(graph, op, arguments, keywords, CallSite())


def types_of(op: Operation | str, *operands: Any, **keywords: Any) -> list[str]:
    """The result types of a call, as text."""
    return [str(r.type) for r in node_of(op, *operands, **keywords).results]


def conditions_of(op: Operation, *operands: Any, **keywords: Any) -> list[str]:
    """The conditions that a call leaves to run time, as text."""
    graph = node_of(op, *operands, **keywords).graph
    assert graph is not None
    return [str(condition) for condition in graph.conditions]


def code_of(op: Operation | str, *operands: Any, **keywords: Any) -> str:
    """The code of the error that a call raises; empty where it raises none."""
    try:
        node_of(op, *operands, **keywords)
    except DmlcError as error:
        (diagnostic,) = error.diagnostics
        assert diagnostic.message
        return diagnostic.code.id
    return ""


def run(op: Operation | str, *operands: Any, symbolic: bool = True, **keywords: Any) -> Any:
    """The reference's result (a tuple where there are several); NumPy warnings are errors.

    The inferred types must be those of the results, once from the sizes and once from symbols that stand for them
    (unless ``symbolic`` is false: sizes in an attribute may not broadcast against a symbol).
    """
    node = node_of(op, *operands, **keywords)
    given = [_array(v, o) for v, o in zip(node.operands, [*operands, *[None] * len(node.operands)], strict=False)]
    assert node.op.reference is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        out = node.op.reference(node.attributes, *given)
    results = out if isinstance(out, tuple) else (out,)
    assert len(results) == len(node.results)
    for result, value in zip(results, node.results, strict=True):
        assert isinstance(result, np.ndarray)
        assert TensorType(as_dtype(result.dtype), result.shape) == value.type
    if symbolic:
        _check_symbolic(op, operands, keywords, results)
    return out


def _array(value: Value | None, operand: Any) -> np.ndarray | None:
    constant = constant_of(value)
    return constant.array if constant is not None else operand


def _check_symbolic(
    op: Operation | str, operands: tuple[Any, ...], keywords: dict[str, Any], results: tuple[np.ndarray, ...]
) -> None:
    """With a dim for every size above 1, the types and conditions hold once the dims are bound."""
    binding: dict[str, int] = {}

    def dim(size: int) -> Dim:
        if size <= 1:
            return size
        binding[f"D{size}"] = size
        return symbol(f"D{size}")

    symbolic = [
        TensorType(as_dtype(o.dtype), tuple(map(dim, o.shape))) if isinstance(o, np.ndarray) else o for o in operands
    ]
    node = node_of(op, *symbolic, **keywords)
    assert node.graph is not None
    for result, value in zip(results, node.results, strict=True):
        assert value.type.dtype is as_dtype(result.dtype)
        assert tuple(evaluate(d, binding) for d in value.shape) == result.shape
    for condition in node.graph.conditions:
        left, right = evaluate(condition.left, binding), evaluate(condition.right, binding)
        assert condition.holds(left, right), str(condition)
