"""Sources on a backend of choice, with the values inside them in reach."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from dmlc import api, text
from dmlc.api.artifact_meaning import meaning, needs_reference
from dmlc.api.sources import ProgramSource, onnx_model
from dmlc.debugging.insides import Inside, inside_code, inside_graph, inside_model, inside_reference, names_of
from dmlc.diagnostics import Source, did_you_mean, fail
from dmlc.diagnostics.catalogue.runs import NO_BACKEND
from dmlc.diagnostics.counted import counted
from dmlc.diagnostics.limits import Limits
from dmlc.ir import Graph
from dmlc.runtime import files
from dmlc.runtime.opaque_nodes import OpaqueNodes
from dmlc.targets import TargetName

#: A source of a verification: what ``dmlc.compile`` takes or gives, or the path of a ``.py`` file with a function of
#: arrays.
SideSource: TypeAlias = "ProgramSource | api.Program"


@dataclass(frozen=True, slots=True)
class CompileOptions:
    """Keywords of ``compile`` that apply to both sides."""

    model: str | None
    include: Sequence[str | os.PathLike[str]]
    limits: Mapping[str, int] | None

    def program(self, source: SideSource, *, as_written: bool, target: TargetName = "onnx") -> api.Program:
        source = source.to_onnx() if isinstance(source, api.Program) else source
        only = () if as_written else None
        return api.compile(
            source, target=target, model=self.model, include=self.include, limits=self.limits, only_rules=only
        )

    def graph(self, source: SideSource) -> Graph:
        """The graph of a program or model before all passes."""
        if isinstance(source, api.Program):
            return source.source_graph
        if isinstance(source, (str, os.PathLike)) and not files.is_model_file(Path(source)):
            path, limits = Path(source), Limits.of(self.limits)
            source = text.decode(str(path), files.read_bytes(path, limits), limits)
        if isinstance(source, Source):
            return api.written_graph(source, self.model, self.include, Limits.of(self.limits))
        return self.program(source, as_written=True).source_graph


def backends_of(text: str, most: int = 2) -> list[str]:
    """The backends of ``A`` or ``A:B``. Raises ``DmlcError`` E0553 for one that is not known, and for more than
    ``most``."""
    parts = text.split(":")
    if len(parts) > most:
        help = "write A:B, as in cpu:reference" if most == 2 else f"write {parts[0]}"
        raise fail(NO_BACKEND, f"{text} names more than {counted(most, 'backend')}", help=help)
    for part in parts:
        if part not in api.BACKENDS:
            help = did_you_mean(part, api.BACKENDS) or f"it is one of {', '.join(api.BACKENDS)}"
            raise fail(NO_BACKEND, f"there is no backend {part}", help=help)
    return parts


def inside_of(source: SideSource, backend: str | None, options: CompileOptions, *, as_written: bool) -> Inside:
    """A source on a backend. ``as_written`` computes a program by the reference by default; else it is compiled.

    A compiled program is the code that it emits, or by the reference its source.
    """
    if isinstance(source, api.Program):
        return _inside_program(source, backend, options)
    found = onnx_model(source, Limits.of(options.limits))
    if found is not None and backend is None and needs_reference(found[0]):
        graph = meaning(*found, Limits.of(options.limits))
        return inside_graph(graph, OpaqueNodes(graph, found[1]))
    if found is not None and backend in (None, "cpu", "dml", "webgpu"):
        return inside_model(*found, backend or "")
    if found is not None and backend == "reference":
        graph = options.graph(source)
        return inside_graph(graph) if _has_references(graph) else inside_reference(*found)
    if backend == "numpy":
        return inside_code(options.program(source, as_written=False, target="numpy"))
    if backend == "reference" or (backend is None and as_written):
        graph = options.graph(source)
        if backend is None and not _has_references(graph):  # it calls a model: only ONNX Runtime computes it
            return compiled_inside(options.program(source, as_written=True), None)
        return inside_graph(graph)
    target: TargetName = "directml" if backend in ("dml", "webgpu") else "onnx"
    return compiled_inside(options.program(source, as_written=False, target=target), backend)


def _inside_program(program: api.Program, backend: str | None, options: CompileOptions) -> Inside:
    if backend == "numpy" or (backend is None and program.target.code == "numpy"):
        return inside_code(program)
    if backend == "reference":
        return inside_graph(program.source_graph)
    if backend is None and not program.target.runs_on_cpu:
        emitted = api.emitted(program, "onnx")
        graph = meaning(emitted.payload, emitted.folder, Limits.of(options.limits))
        return inside_graph(graph, OpaqueNodes(graph, emitted.folder))
    return compiled_inside(program, backend)


def _has_references(graph: Graph) -> bool:
    return all(node.op.reference is not None for node in graph)


def compiled_inside(program: api.Program, backend: str | None) -> Inside:
    """The model that a program compiles to; its own names are those that the source gives to values."""
    emitted = api.emitted(program, "onnx")
    return inside_model(emitted.payload, emitted.folder, backend or "", names_of(program.source_graph))
