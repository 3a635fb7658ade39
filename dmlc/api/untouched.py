"""Programs that use ONNX models, with these models as they are: what a compilation is compared with."""

from __future__ import annotations

from msgspec.structs import replace

from dmlc.api.program import Program
from dmlc.api.sources import Choice, ProgramSource, load
from dmlc.ops.ranges import promise
from dmlc.runtime.binding import bound
from dmlc.targets import load_target


def untouched(source: ProgramSource, choice: Choice, program: Program) -> Program:
    """Return the program of ``source`` as an ONNX model in which no node of a used model is changed, and no rewrite is
    made: at the opset of the newest of these models.

    ``program`` is what was compiled of it. Raises ``DmlcError`` where only a rewrite makes a model of it.
    """
    options = program._options
    choice = replace(choice, models={}, prepare=None, opaque=True)
    graph = load(source, choice, program.opset, options.limits)
    own = max((node.origin.version for node in graph if node.origin is not None), default=program.opset)
    if own != graph.opset:
        graph = load(source, replace(choice, models={}), own, options.limits)
    graph = bound(graph, options.bind, options.shapes)
    promise(graph, options.ranges)
    return Program(graph, replace(options.as_written(load_target("onnx")), opset=own))
