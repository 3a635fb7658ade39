"""The reference: every operation by its own NumPy definition, one node after the other, nothing optimised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dmlc.codegen.artifact import signature_of
from dmlc.diagnostics import DmlcError, Label, fail, option
from dmlc.diagnostics.catalogue import bugs, runs
from dmlc.ir import Array, Graph, Node, Value
from dmlc.ir import evaluate as size_of
from dmlc.runtime.feeds import FeedChecker


def evaluate(graph: Graph, feeds: Mapping[str, Any]) -> dict[str, Array]:
    """The outputs by name. Raises what ``FeedChecker.check`` raises, and E0553 for an operator without a reference."""
    checker = FeedChecker(signature_of(graph, checked=True))
    arrays = checker.check(feeds)
    binding = dict(checker.binding)
    values: dict[Value, Array] = {}
    for value in graph.inputs:
        fed = arrays.get(value.name or "")
        values[value] = graph.defaults[value].array if fed is None else fed
    waiting = {value: len(value.uses) for value in values}
    for node in graph:
        results = _results(node, [None if v is None else values[v] for v in node.operands], binding)
        for value, array in zip(node.results, results, strict=True):
            binding.update({name: array.shape[axis] for name, axis in graph.provides.get(value, ())})
            _check(node, value, array, binding)
            if value.uses:
                values[value] = array
                waiting[value] = len(value.uses)
        for operand in node.operands:  # an array goes when its last user has run
            if operand is not None:
                waiting[operand] -= 1
                if not waiting[operand]:
                    del values[operand]
    return {name: np.array(values[value]) for name, value in graph.outputs}


def _results(node: Node, operands: list[Array | None], binding: Mapping[str, int]) -> tuple[Array, ...]:
    if node.op.reference is None:
        name = getattr(node.attributes, "full_name", node.op.name)
        message = f"{name} has no reference: only ONNX Runtime knows it"
        raise fail(
            runs.NO_BACKEND,
            message,
            *map(Label, node.spans[:1]),
            help="use " + option("--backend cpu", "backend='cpu'"),
        )
    attributes = node.attributes.substitute(binding) if node.attributes.dims() else node.attributes
    results = node.op.reference(attributes, *operands)
    return results if isinstance(results, tuple) else (results,)


def _check(node: Node, value: Value, array: Array, binding: Mapping[str, int]) -> None:
    """The reference keeps the inferred type; anything else is our bug."""
    shape = tuple([size_of(size, binding) for size in value.shape])
    if array.dtype != value.type.dtype.numpy or array.shape != shape:
        got = f"{array.dtype}{list(array.shape)}"
        message = f"the reference of {node.op.name} gives {got}, inference says {value.type}"
        error: DmlcError = fail(bugs.INTERNAL, message, *map(Label, node.spans[:1]), exit_code=3)
        raise error
