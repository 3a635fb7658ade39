"""Calls of what is not an operation (a def, an ONNX model) on tensors of the builder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from dmlc import ir
from dmlc.builder.place import caller
from dmlc.builder.tensor import Tensor, arguments_in, home_of, in_python
from dmlc.diagnostics import DmlcError, Label, Span, fail
from dmlc.diagnostics.catalogue import shapes as codes

#: Adds nodes to a graph: operands and keywords as the call form takes them, and the place of the call.
AddNodes: TypeAlias = "Callable[[ir.Graph, Sequence[Any], Mapping[str, Any], Span | None], Sequence[Any]]"


def call_nodes(name: str, add: AddNodes, operands: Sequence[Any], keywords: Mapping[str, Any], *, loose: bool) -> Any:
    """The result of a call, a tensor or a number, or all of them where it has not exactly one.

    Keywords that are tensors or arrays are operands by name. Without ``loose`` one operand must be a tensor of a
    graph. Raises ``DmlcError`` that names the caller's Python line.
    """
    span = caller()
    named = [key for key, value in keywords.items() if isinstance(value, Tensor) or hasattr(value, "__array__")]
    home = home_of([*operands, *[keywords[key] for key in named]])
    if home.loose and not loose and (operands or keywords):
        message = f"{name} is called with no tensor of a graph, and its nodes need one"
        raise fail(
            codes.NOT_A_TENSOR, message, *([Label(span)] if span else []), help="give it an input of a dmlc.Graph"
        )
    arguments = arguments_in(home, [*operands, *[keywords[key] for key in named]], span)
    given = {**keywords, **dict(zip(named, arguments[len(operands) :], strict=True))}
    try:
        results = add(home.graph, arguments[: len(operands)], given, span)
    except DmlcError as error:
        error.diagnostics = tuple(map(in_python, error.diagnostics))
        raise
    made = tuple([Tensor(home, value) if isinstance(value, ir.Value) else value for value in results])
    return made[0] if len(made) == 1 else made
