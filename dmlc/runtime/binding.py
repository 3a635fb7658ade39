"""Dims that the user fixes."""

from __future__ import annotations

from collections.abc import Mapping

from dmlc.diagnostics import DmlcError, Label, did_you_mean, fail, sentences
from dmlc.diagnostics.catalogue import runs as codes
from dmlc.diagnostics.given import integer_of
from dmlc.ir import Graph, OpError, dim_names
from dmlc.ir.fixed_shapes import LARGEST_SIZE, DeclaredInput, FixedShape, bound_dims, is_too_large
from dmlc.ops.call import CallSite, diagnose
from dmlc.runtime.feeds import bounds_text


def checked_binding(binding: Mapping[str, int] | None) -> dict[str, int]:
    """The sizes of dims by their names, as Python integers. Raises ``DmlcError`` E0555 (exit code 2) for other
    types, and for a size that no model can hold."""
    if binding is not None and not isinstance(binding, Mapping):
        message = f"bind is a dict of sizes by the names of dims, not {type(binding).__name__}"
        raise fail(codes.BAD_BINDING, message, exit_code=2)
    out = {}
    for name, given in (binding or {}).items():
        size = integer_of(given)
        if not isinstance(name, str) or size is None:
            message = f"bind takes the name of a dim and its size, not {name!r}: {given!r}"
            raise fail(codes.BAD_BINDING, message, help="write bind={'N': 4}", exit_code=2)
        if size > LARGEST_SIZE:
            message = f"{name}={size} is out of bounds: the largest size is 2**63 - 1 ({LARGEST_SIZE})"
            raise fail(codes.BAD_BINDING, message, exit_code=2)
        out[name] = size
    return out


def _check_binding(graph: Graph, binding: Mapping[str, int]) -> None:
    names = sorted({n for value in graph.inputs for size in value.shape for n in dim_names(size)})
    for name, size in binding.items():
        if name not in names:
            has = f"its dims are {', '.join(names)}" if names else "none of its sizes has a name"
            help = sentences(did_you_mean(name, names), has)
            raise fail(codes.BAD_BINDING, f"the model has no dim {name}", help=help)
        interval = graph.dims.bounds.get(name, (graph.dims.least, float("inf")))
        if not interval[0] <= size <= interval[1]:
            message = f"{name}={size} is out of bounds: {name} is {bounds_text(interval)}"
            raise fail(codes.BAD_BINDING, message)


def bound(graph: Graph, binding: Mapping[str, int], shapes: Mapping[str, FixedShape]) -> Graph:
    """The graph with dims fixed, by name and by the shapes of inputs.

    Raises ``DmlcError`` E0555, E0337, or the error of the rule that a size breaks.
    """
    inputs = {value.name or "": DeclaredInput(value.shape, value.span) for value in graph.inputs}
    binding = bound_dims(inputs, shapes, binding)
    if not binding:
        return graph
    _check_binding(graph, binding)
    try:
        out = graph.clone(binding)
    except OpError as error:
        raise DmlcError(diagnose(error, CallSite(error.spans[0] if error.spans else None))) from None
    given = ", ".join(f"{name}={size}" for name, size in binding.items())
    for value in (*out.inputs, *[value for node in out for value in node.results]):
        if is_too_large(value.shape):
            spans = value.producer.spans[:1] if value.producer is not None else (value.span,)
            message = f"{given} makes a tensor of more than 2^63 - 1 elements: {value.type}"
            raise fail(codes.BAD_BINDING, message, *[Label(span) for span in spans if span])
    for condition, span in out.conditions.items():
        if isinstance(condition.left, int) and isinstance(condition.right, int):
            labels = [Label(span)] if span else []
            raise fail(codes.BAD_BINDING, f"{given} breaks {condition}", *labels, help=condition.why)
    return out
