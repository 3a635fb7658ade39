"""Programs with fixed sizes or promised ranges: what a command says comes next."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from dmlc.api.program import Program, emitted
from dmlc.diagnostics import DmlcError
from dmlc.inference.protos import NO_NAMES
from dmlc.ir import Array, Graph
from dmlc.ir.fixed_shapes import FixedShape
from dmlc.ops.ranges import promise
from dmlc.runtime.binding import bound
from dmlc.runtime.feeds import bind_dims

if TYPE_CHECKING:
    from onnx import ModelProto, ValueInfoProto

#: The largest size that is suggested for an axis that is not the first.
_LARGEST = 128


class FixedSizes(Struct, frozen=True):
    """Sizes by dim and shapes by input, which leave nothing dynamic at the inputs, and the program at these sizes."""

    binding: dict[str, int]
    shapes: dict[str, FixedShape]
    program: Program


def fixed_sizes(program: Program, inputs: Mapping[str, Array] | None = None) -> FixedSizes | None:
    """Return the program with its dynamic sizes fixed; None without dynamic sizes, and where no size is found.

    A size of ``inputs`` stays. A dim that is the first axis of an input becomes 1. The others become the largest power
    of two, at most 128, that their bounds allow and with which the model loads. The emitted model is read again, not
    the source: it is smaller.
    """
    given = {} if inputs is None else inputs
    sizes = bind_dims(program.signature, given, [])
    model = emitted(program, "onnx").payload
    report = program.placement()
    named, nameless = report.dims, [info for info in model.graph.input if info.name in report.shapes]
    if not (named or nameless) or any(not info.type.tensor_type.HasField("shape") for info in nameless):
        return None
    first = {size for info in model.graph.input for size in [_first_axis(info)] if size}
    size = _LARGEST
    while size:
        found = {name: _within(program.source_graph, name, 1 if name in first else size) for name in named}
        binding = {name: sizes.get(name, free) for name, free in found.items()}
        shapes = {info.name: _shape(info, size, given.get(info.name)) for info in nameless}
        try:
            return FixedSizes(binding, shapes, _at(program, model, binding, shapes))
        except DmlcError:  # the model has a rule that these sizes break
            size //= 2
    return None


def with_ranges(program: Program, ranges: Mapping[str, tuple[int, int]]) -> Program:
    """Return the program where the elements of inputs are promised to be in these ranges."""
    graph = program.source_graph.clone()
    promise(graph, ranges)
    return Program(graph, replace(program._options, progress=None))


def _first_axis(info: ValueInfoProto) -> str:
    return next((axis.dim_param for axis in info.type.tensor_type.shape.dim[:1]), "")


def _within(graph: Graph, name: str, size: int) -> int:
    """The largest size up to ``size`` within the bounds of the dim: a power of two, unless the lower bound is more."""
    low, high = graph.dims.bounds.get(name, (0, float("inf")))
    while size > high and size > 1:
        size //= 2
    return int(max(size, low))


def _shape(info: ValueInfoProto, size: int, given: Array | None) -> FixedShape:
    """The shape that fixes the sizes of an input that have no name; None for the others."""
    axes = info.type.tensor_type.shape.dim
    shape = (1, *[size] * (len(axes) - 1)) if given is None else given.shape
    return tuple([fixed if _is_nameless(axis) else None for fixed, axis in zip(shape, axes, strict=False)])


def _is_nameless(axis: object) -> bool:
    has_value = axis.HasField("dim_value") and axis.dim_value >= 0  # type: ignore[attr-defined]
    return not has_value and axis.dim_param in NO_NAMES  # type: ignore[attr-defined]


def _at(program: Program, model: ModelProto, binding: dict[str, int], shapes: dict[str, FixedShape]) -> Program:
    """The program at these sizes. Raises ``DmlcError`` where the model does not take them."""
    options = replace(program._options, progress=None)
    options = replace(options, bind={**options.bind, **binding}, shapes=shapes)
    if program.source_model is None:
        return Program(bound(program.source_graph, binding, shapes), options)
    from dmlc import importers

    copy = deepcopy(model)
    sizes = importers.fix_shapes(copy, shapes, binding)
    folder = emitted(program, "onnx").folder
    graph = importers.import_model(
        copy, folder=folder, binding=sizes, limits=options.limits, has_shapes=bool(shapes), runs=True
    )
    graph.reader = importers.read_again
    return Program(graph, options)
