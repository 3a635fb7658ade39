"""Record every ONNX model that a test emits, and judge them when the test ends."""

from __future__ import annotations

import functools
import hashlib
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from onnx import ModelProto
from onnxruntime import GraphOptimizationLevel

import dmlc.codegen.onnx
import dmlc.codegen.onnx.model
import dmlc.importers.model
from dmlc.api.artifact_meaning import needs_reference
from tools.model_checks import new_defects, without_metadata
from tools.optimized import optimizer_differences

#: One model in so many is judged, chosen by its bytes; ``--emitted=all`` judges each.
SAMPLE = 4
#: Larger models are made to measure how work grows; they take seconds to load.
MOST_NODES = 3000
#: Larger models are not run at each level of optimization.
_MOST_RUN = 300
#: So many imported models are kept to compare with what is emitted from them.
_SOURCES = 400
#: The levels of optimization, by the words of ``tools.model_checks.defects``. A model must load at one of them, by
#: turns.
_LEVELS = {
    "loading": GraphOptimizationLevel.ORT_DISABLE_ALL,
    "loading optimized": GraphOptimizationLevel.ORT_ENABLE_ALL,
}


@dataclass(frozen=True)
class Emitted:
    """A model as it was emitted, the model that it was imported from, and the folder of their external data."""

    data: bytes
    key: bytes
    source: bytes | None
    folder: Path | None

    @property
    def number(self) -> int:
        """A number that depends on nothing but the bytes of the model, without the name of its target."""
        return int.from_bytes(hashlib.sha256(self.key).digest()[:8], "big")


@dataclass
class Recorder:
    """The models that were emitted since the last ``clear``, and the imported models that they may come from.

    ``judged`` has the numbers of those that were judged in this process: many tests emit the same model. ``loaded`` has
    what the test itself has loaded, which need not be loaded again.
    """

    models: list[Emitted] = field(default_factory=list)
    sources: OrderedDict[int, tuple[Any, bytes]] = field(default_factory=OrderedDict)
    judged: set[int] = field(default_factory=set)
    loaded: set[tuple[bytes, Any]] = field(default_factory=set)

    def on_import(self, graph: Any, model: ModelProto) -> None:
        if len(model.graph.node) > MOST_NODES:
            return
        self.sources[id(graph.origin)] = (
            graph.origin,
            model.SerializeToString(),
        )  # holds the origin: its id stays its own
        if len(self.sources) > _SOURCES:
            self.sources.popitem(last=False)

    def on_emit(self, artifact: Any, graph: Any) -> None:
        model, source = artifact.payload, None
        if len(model.graph.node) > MOST_NODES:
            return
        if graph.origin is not None:
            if id(graph.origin) not in self.sources:
                return  # there is nothing to compare with: the original may be as broken
            source = self.sources[id(graph.origin)][1]
        data, key = model.SerializeToString(deterministic=True), without_metadata(model)
        self.models.append(Emitted(data, key, source, artifact.folder))

    def on_load(self, data: bytes, level: Any) -> None:
        self.loaded.add((data, level))

    def clear(self) -> None:
        self.models.clear()
        self.loaded.clear()

    def chosen(self, rate: int) -> Iterator[Emitted]:
        """The models that were not judged before, one in ``rate``."""
        for emitted in self.models:
            number = emitted.number
            if number % rate == 0 and number not in self.judged:
                self.judged.add(number)
                yield emitted

    def complaints(self, rate: int, runs: int = SAMPLE) -> list[str]:
        """Judge the chosen models; describe what is wrong with them and not with what they were imported from.

        ONNX Runtime's optimizations must not change the numbers of any, whatever its original is: one in ``runs`` is
        run, none for 0.
        """
        out = []
        for emitted in self.chosen(rate):
            model, changed = ModelProto.FromString(emitted.data), dict[str, str]()
            source = None if emitted.source is None else ModelProto.FromString(emitted.source)
            is_run = runs > 0 and emitted.number % runs == 0 and len(model.graph.node) <= _MOST_RUN
            if is_run and not needs_reference(model):  # first: what it loads need not be loaded again
                changed = optimizer_differences(model, emitted.folder) or {}
            turn = emitted.number // SAMPLE % len(_LEVELS)
            levels = enumerate(_LEVELS.items())
            loaded = [name for n, (name, level) in levels if n != turn or (emitted.data, level) in self.loaded]
            found = new_defects(model, source, emitted.folder, loaded)
            found = found or {f"numbers, optimizations {level}": text for level, text in changed.items()}
            if found:
                out.append(f"{model.graph.name} for {_target(model)}: {found}")
        return out


def _target(model: ModelProto) -> str:
    return " and ".join(facts["target"] for facts in dmlc.model_facts(model))


def recorded() -> Recorder:
    """Install a recorder around the ONNX code generator and the importer, for the rest of the process."""
    recorder = Recorder()
    emit, import_model = dmlc.codegen.onnx.model.emit, dmlc.importers.model.import_model

    @functools.wraps(emit)
    def recording_emit(graph: Any, *args: Any, **options: Any) -> Any:
        artifact = emit(graph, *args, **options)
        recorder.on_emit(artifact, graph)
        return artifact

    @functools.wraps(import_model)
    def recording_import(model: ModelProto, *args: Any, **options: Any) -> Any:
        graph = import_model(model, *args, **options)
        recorder.on_import(graph, model)
        return graph

    dmlc.codegen.onnx.emit = dmlc.codegen.onnx.model.emit = recording_emit
    dmlc.importers.model.import_model = recording_import
    return recorder
