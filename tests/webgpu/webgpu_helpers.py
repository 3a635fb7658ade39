"""Programs and models on the WebGPU provider, in the worker: some of its faults end the process.

A session compiles each shader once. Models that have nothing to do with each other run in one: that is what makes
hundreds of them cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
from msgspec import Struct
from onnx import ModelProto, compose

import dmlc
from dmlc.runtime.ort_model import ALL, OrtModel, options_of
from tests import kit

Arrays = Mapping[str, np.ndarray]


class Case(Struct, frozen=True):
    """A model, its inputs and its name. Norms of several epsilons disturb each other in one session."""

    name: str
    model: ModelProto
    feeds: Arrays

    @property
    def kind(self) -> str:
        """A text that models share which can run in one session."""
        versions = sorted((entry.domain, entry.version) for entry in self.model.opset_import if entry.domain == "")
        epsilons = {
            a.f for node in self.model.graph.node if node.op_type == "InstanceNormalization" for a in node.attribute
        }
        return f"{versions} {options_of(self.model, 'webgpu')} {self.model.functions and self.name} {sorted(epsilons)}"


def on_webgpu(model: ModelProto, feeds: Arrays, folder: Path | None = None, *, whole: bool = False) -> Arrays:
    """The outputs with ONNX Runtime's default optimizations; ``whole`` is refused if a node runs on the CPU."""
    session = OrtModel(model, folder, backend="webgpu", level=ALL, isolated=True, whole=whole)
    return session.run({name: feeds[name] for name in session.inputs})


def compiled_on_webgpu(program: dmlc.Program, feeds: Arrays) -> Arrays:
    """The outputs of what a program emits."""
    artifact = program.artifact("onnx")
    return on_webgpu(artifact.payload, feeds, artifact.folder)


def together_on_webgpu(cases: Iterable[Case]) -> dict[str, Arrays | Exception]:
    """The outputs of each case by its name, or the error. Where a session of several fails, each runs alone."""
    groups: dict[str, list[Case]] = {}
    for case in cases:
        groups.setdefault(case.kind, []).append(case)
    return {name: found for group in groups.values() for name, found in _group(group).items()}


def _group(group: list[Case]) -> dict[str, Arrays | Exception]:
    prefixes = {case.name: f"{index}:" for index, case in enumerate(group)}
    try:
        feeds = {prefixes[case.name] + name: array for case in group for name, array in case.feeds.items()}
        got = on_webgpu(merged({prefixes[case.name]: case.model for case in group}), feeds)
    except Exception as error:  # onnxruntime's exceptions have no common base class
        if len(group) == 1:
            return {group[0].name: error}
        return {name: found for case in group for name, found in _group([case]).items()}
    return {
        case.name: {name.removeprefix(start): array for name, array in got.items() if name.startswith(start)}
        for case in group
        for start in [prefixes[case.name]]
    }


def merged(models: Mapping[str, ModelProto]) -> ModelProto:
    """One model of several, each with a prefix on its names; the opsets and the metadata come from the first."""
    out = ModelProto()
    first = next(iter(models.values()))
    out.CopyFrom(first)
    out.graph.Clear()
    out.graph.name = "together"
    domains = {entry.domain: entry.version for model in models.values() for entry in model.opset_import}
    del out.opset_import[:]
    for domain, version in domains.items():
        out.opset_import.add(domain=domain, version=version)
    for prefix, model in models.items():
        graph = compose.add_prefix(model, prefix).graph
        for field in ("node", "initializer", "input", "output", "value_info"):
            getattr(out.graph, field).extend(getattr(graph, field))
        out.ir_version = max(out.ir_version, model.ir_version)
    return out


def apart(got: Arrays, want: Arrays) -> list[str]:
    """The outputs that differ, by the tolerances of the kit, each with its first place."""
    out = []
    for name, array in want.items():
        if not kit.same(got[name], array):
            found, wanted = np.asarray(got[name]), np.asarray(array)
            text = f"{found.dtype}{found.shape} for {wanted.dtype}{wanted.shape}"
            if text.split(" for ")[0] == text.split(" for ")[1]:
                place = tuple(np.argwhere(~np.isclose(found, wanted, rtol=1e-5, atol=1e-6, equal_nan=True))[0])
                text = f"{found[place]!r} for {wanted[place]!r} at {list(map(int, place))}"
            out.append(f"{name}: {text}")
    return out
