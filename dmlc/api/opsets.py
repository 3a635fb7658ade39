"""Programs at the opset that suits them, where the user asks for none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dmlc.api.program import Program
from dmlc.api.sources import ProgramSource, load
from dmlc.diagnostics import DmlcError
from dmlc.ir import Graph
from dmlc.passes.opset_candidates import other_opsets
from dmlc.passes.options import Options
from dmlc.runtime.binding import bound
from dmlc.targets import kernel_table

if TYPE_CHECKING:
    import onnx


def written(
    source: ProgramSource, model: str | None, binding: Mapping[str, int], options: Options, *, asked: bool
) -> Program:
    """The program of a text or a builder's graph at the opset that suits it."""

    def at(opset: int, *notes: str) -> Program:
        graph = bound(load(source, model, opset, options.limits), binding)
        graph.notes += notes
        return Program(graph, replace(options, opset=opset))

    program = at(options.opset)
    return program if asked else _kept_on_provider(program, at)


def imported(
    model: onnx.ModelProto, folder: Path | None, binding: Mapping[str, int], options: Options, *, asked: bool
) -> Program:
    """The program of an ONNX model at the opset that suits it."""
    from dmlc import importers

    graph = importers.import_model(model, folder=folder, binding=binding, limits=options.limits)
    lowest = options.target.min_opset
    opset = importers.choose_opset(graph, options.opset, lowest, asked=asked)
    if opset < lowest:
        return Program(graph, replace(options, opset=opset, only_rules=frozenset()), model)
    own = graph.origin.versions.get("", 1)
    if not asked and own >= lowest:
        stays = _kept_by_definitions(graph, opset, replace(options, opset=own), model)
        if stays is not None:
            return stays
    program = Program(graph, replace(options, opset=opset), model)
    if not asked and lowest <= own < opset and importers.says_flattened(graph):
        older = Program(graph, replace(options, opset=own), model)
        try:
            saves = len(older.to_onnx().graph.node) < len(program.to_onnx().graph.node)
        except DmlcError:  # one of the two cannot be said: the newer opset says why
            saves = False
        if saves:
            graph.notes.append(f"opset {own}, not {opset}: it says a softmax or hardmax over several axes in one node")
            return Program(graph, replace(options, opset=own), model)
    if asked:
        return program

    def at(other: int, *notes: str) -> Program:
        importers.choose_opset(graph, other, lowest, asked=True)
        graph.notes += notes
        return Program(graph, replace(options, opset=other), model)

    return _kept_on_provider(program, at)


def _kept_by_definitions(graph: Graph, opset: int, options: Options, model: onnx.ModelProto) -> Program | None:
    """The program at the model's own opset, where ``opset`` takes away what a node without a kernel runs by; None where
    it does not, and where the target's provider fails at the own one."""
    from dmlc import importers

    table = kernel_table(options.target)
    reason = None if table is None else importers.why_to_stay(graph, opset, table)
    if reason is None:
        return None
    graph.notes.append(reason)
    program = Program(graph, options, model)
    if options.target.provider is None or not program.losses()[0]:
        return program
    graph.notes.remove(reason)
    return None


def _kept_on_provider(program: Program, at: Callable[..., Program]) -> Program:
    """The program at the opset that keeps most nodes on the target's provider; the highest of those that do."""
    best, least = program, None
    for opset in other_opsets(program.graph, program.target, program.opset):
        try:
            least = best.losses() if least is None else least
            other = at(opset)
            lost = other.losses()
        except DmlcError:  # it cannot be said there
            continue
        if lost < least:
            best, least = other, lost
    if best is program:
        return program
    return at(best.opset, f"opset {best.opset}, not {program.opset}: it keeps more nodes on {program.target.family}")
