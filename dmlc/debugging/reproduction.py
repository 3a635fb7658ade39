"""The smallest model that still shows a fault, with its inputs and the results that are expected and found."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from onnx import ModelProto

from dmlc.api.arguments import check_arguments
from dmlc.debugging.bisection import BisectResult, bisected
from dmlc.debugging.checks import BAD, BackendCheck, CheckFunction
from dmlc.debugging.data_reduction import DataReduction, FaultCase, declare_shape
from dmlc.debugging.first_difference import locate_first
from dmlc.debugging.insides import NodeRecord, record_of
from dmlc.debugging.reduction import ModelPart, NodeReduction
from dmlc.debugging.repro_bundle import ReproBundle
from dmlc.debugging.search_setup import Report, SearchSetup, prepare
from dmlc.debugging.source_insides import CompileOptions, SideSource
from dmlc.diagnostics import did_you_mean, fail
from dmlc.diagnostics.catalogue.runs import NO_OUTPUT
from dmlc.diagnostics.catalogue.searches import NOT_SHOWN
from dmlc.diagnostics.counted import counted
from dmlc.ir.answers import Answer, JsonRecord
from dmlc.runtime import files
from dmlc.runtime.runnable import NoEvidence, NotRunnable, RunFailed
from dmlc.verifying.models import DEFAULT_INPUTS
from dmlc.verifying.tolerance import asked_tolerance

#: Models that are checked at most; the reduction ends with what it has then.
MOST_RUNS = 500


class ReproFacts(Answer, frozen=True):
    """A small model that shows a fault: its nodes, its size in bytes, the shapes of its inputs, its outputs.

    ``start`` is the node that the search began with, ``whole`` counts the nodes of the model that was reduced, and
    ``original`` names the inputs and weights whose numbers are the user's.
    """

    nodes: tuple[NodeRecord, ...]
    start: NodeRecord | None
    whole: int
    bytes: int
    inputs: dict[str, tuple[int, ...]]
    outputs: list[str]
    details: tuple[str, ...]
    original: tuple[str, ...]
    notes: tuple[str, ...]
    runs: int
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Repro(JsonRecord):
    """A small model that shows a fault.

    ``model`` shows it on the ``inputs``: ``expected`` are the right outputs, ``actual`` the wrong ones, empty where a
    command or a function checks or the model fails. ``right`` is the model that gives the expected ones, None if it is
    ``model`` itself elsewhere. ``nodes`` are those of ``model``, ``start`` the one that the search began with, and
    ``whole`` counts those of the model that was reduced. ``original`` names the inputs and weights of ``model`` whose
    numbers are still the user's; all others are seeded. ``notes`` have what the bundle lacks, and why.
    """

    model: ModelProto
    right: ModelProto | None
    inputs: Mapping[str, Any]
    expected: Mapping[str, Any]
    actual: Mapping[str, Any]
    nodes: tuple[NodeRecord, ...]
    start: NodeRecord | None
    whole: int
    runs: int
    details: tuple[str, ...]
    original: tuple[str, ...]
    bundle: ReproBundle = field(repr=False, compare=False)
    seconds: float = 0.0

    __hash__ = None  # type: ignore[assignment]  # it holds arrays

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Repro):
            return NotImplemented
        return all(_is_same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self) if f.compare)

    @property
    def notes(self) -> tuple[str, ...]:
        return self.bundle.notes

    def to_bytes(self) -> bytes:
        """The bundle as a zip archive; the same repro gives the same bytes on one machine."""
        return self.bundle.to_bytes()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the bundle, whole or not at all. Raises ``DmlcError`` E0421, E0556 (exit code 2)."""
        check_arguments(path=path)
        files.write_bytes(Path(path), self.to_bytes())

    def facts(self) -> ReproFacts:
        """Return the facts about the model, without its data."""
        shapes = {name: np.shape(array) for name, array in self.inputs.items()}
        return ReproFacts.of(self, bytes=self.model.ByteSize(), inputs=shapes, outputs=list(self.expected))

    def to_text(self, path: str) -> str:
        """Lines for people: the bundle and its size first, ``last_line`` last."""
        size = f"{len(self.nodes)} of {counted(self.whole, 'node')}, {self.model.ByteSize()} bytes"
        out = [f"{path}: the smallest model with the fault, {size}", *(f"  {node}" for node in self.nodes)]
        out += [f"  {detail}" for detail in self.details]
        shapes = ", ".join(f"{name} {list(np.shape(array))}" for name, array in self.inputs.items())
        out.append(f"  inputs: {shapes or 'none'}")
        kept = ", ".join(self.original)
        out.append(f"  your own numbers in it: {kept or 'none, all are seeded'}")
        out += [f"note: {note}" for note in self.notes]
        out.append(self.last_line(path))
        return "\n".join(out) + "\n"

    def last_line(self, path: str) -> str:
        """``WRITTEN bug.zip | 1 of 95 nodes | 12 runs | 0.61 s``."""
        size, runs = f"{len(self.nodes)} of {counted(self.whole, 'node')}", counted(self.runs, "run")
        return f"WRITTEN {path} | {size} | {runs} | {self.seconds:.2f} s"


def _is_same(a: Any, b: Any) -> bool:
    """Return whether two fields are equal, arrays by their dtype and elements, NaN with NaN."""
    if isinstance(a, Mapping):
        return isinstance(b, Mapping) and a.keys() == b.keys() and all(_is_same(a[name], b[name]) for name in a)
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(_is_same, a, b))
    if isinstance(a, (np.ndarray, np.generic)):
        found, other = np.asarray(a), np.asarray(b)
        has_nan = found.dtype.kind in "fc"
        return found.dtype == other.dtype and np.array_equal(found, other, equal_nan=has_nan)
    return bool(a == b)


def repro(
    a: SideSource,
    *,
    against: str | SideSource | None = None,
    backend: str | None = None,
    check: str | CheckFunction | None = None,
    value: str | None = None,
    inputs: int | Mapping[str, Any] = DEFAULT_INPUTS,
    seed: int = 0,
    rtol: float | None = None,
    atol: float | None = None,
    model: str | None = None,
    include: Sequence[str | os.PathLike[str]] = (),
    limits: Mapping[str, int] | None = None,
    progress: Report | None = None,
) -> Repro:
    """Reduce a model to the smallest one that still shows a fault.

    The arguments are as for ``dmlc.bisect``. ``value`` is the value to start from; by default it is the first one
    that parts: located if ``against`` is another model, found by bisection otherwise. Nodes are dropped and values that
    they made are fed, then sizes are cut down, then weights and inputs are replaced by seeded numbers, wherever the
    fault stays. Raises ``DmlcError`` E0565 where the fault does not show, E0446 for a value that the model does not
    have, and as ``dmlc.bisect`` does.
    """
    check_arguments(value=value)
    start = time.perf_counter()
    setup = prepare(
        a, backend, against, check, inputs=inputs, seed=seed, rtol=rtol, atol=atol,
        options=CompileOptions(model, include, limits), progress=progress,
    )  # fmt: skip
    if value is not None and value not in setup.graph.makers:
        near = did_you_mean(value, setup.graph.makers)
        raise fail(NO_OUTPUT, f"the model has no value {value} that a node makes", help=near)
    if message := setup.not_shown():
        raise fail(NOT_SHOWN, message)
    first, regions = _start(setup, value)
    reduction = NodeReduction(setup, MOST_RUNS)
    part = None if first is None else reduction.around(first, regions)
    case = _case(setup, None if part is None else reduction.reduced(part))
    case = DataReduction(lambda tried: _is_bad(setup, tried)).reduced(case)
    return replace(_finished(setup, case, first), seconds=time.perf_counter() - start)


def _start(setup: SearchSetup, value: str | None) -> tuple[int | None, list[Collection[int]]]:
    """The node to start from, and parts that may have the fault."""
    makers = setup.graph.makers
    if value is not None:
        return makers[value], []
    located = _located(setup)
    if located is not None:
        return located, []
    found: BisectResult = bisected(setup)
    region = [makers[node.outputs[0]] for node in found.region]
    if found.node is None:
        return (region[-1] if region else None), [region] if region else []
    return makers[found.node.outputs[0]], [region]


def _located(setup: SearchSetup) -> int | None:
    """The node of the first value that parts from the other model's; None where that is not found."""
    checker, other = setup.checker, setup.checker.originals.other
    if other is None or not isinstance(checker, BackendCheck):
        return None
    setup.progress("locating the first value that parts")
    outputs = [info.name for info in setup.graph.model.graph.output]
    try:
        sides = checker.originals.values(other.graph.model), checker.values(setup.graph.model)
        found = locate_first(*sides, setup.feeds, outputs, asked_tolerance(setup.rtol, setup.atol))
    except (RunFailed, NotRunnable, NoEvidence):
        return None
    return None if found is None else setup.graph.makers.get(found.value.other)


def _case(setup: SearchSetup, part: ModelPart | None) -> FaultCase:
    """The part as a case; the whole model if no part of it has the fault."""
    if part is None:
        model, feeds = setup.graph.model, setup.feeds
    else:
        model, feeds = setup.model_of(part.nodes, part.outputs, all_inputs=False)
    originals = setup.checker.originals
    right = None if originals.other is None else originals.part(model)
    weights = [tensor.name for tensor in model.graph.initializer if tensor.dims]
    return FaultCase(model, right, feeds, frozenset([*weights, *feeds]))


def _is_bad(setup: SearchSetup, case: FaultCase) -> bool:
    if setup.runs >= MOST_RUNS:
        return False
    setup.runs += 1
    setup.progress(f"run {setup.runs}, {case.model.ByteSize()} bytes")
    found = setup.checker.check(case.model, dict(case.feeds), case.right)
    return found.status == BAD and found.fails is setup.fails


def _finished(setup: SearchSetup, case: FaultCase, first: int | None) -> Repro:
    """The case with its results. Raises ``DmlcError`` as the check does."""
    checker = setup.checker
    feeds = dict(case.feeds)
    details = checker.check(case.model, feeds, case.right).details
    expected = checker.originals.side(case.right or case.model).run(feeds)
    for models in case.models:
        for info in models.graph.output:
            if info.type.HasField("tensor_type") and isinstance(expected.get(info.name), np.ndarray | np.generic):
                declare_shape(info, np.shape(expected[info.name]))
    actual: Mapping[str, Any] = {}
    compiled = None
    if isinstance(checker, BackendCheck):
        try:
            side = checker.values(case.model)
            actual = side.subject.run(feeds)
            compiled = getattr(side, "model", None) if checker.compiles else None
        except (RunFailed, NotRunnable, NoEvidence):
            actual = {}
    nodes = tuple(record_of(node) for node in case.model.graph.node if node.op_type != "Constant")
    held = {tensor.name for tensor in case.model.graph.initializer} | feeds.keys()
    original = tuple(sorted(case.original & held))
    backend = checker.backend if isinstance(checker, BackendCheck) else None
    bundle = ReproBundle(
        case.model, case.right, compiled, feeds, expected, actual, details, original, backend,
        asked_tolerance(setup.rtol, setup.atol), setup.options,
    )  # fmt: skip
    start = None if first is None else setup.graph.record(first)
    return Repro(
        case.model, case.right, feeds, expected, actual, nodes, start, len(setup.graph), setup.runs, details, original,
        bundle,
    )  # fmt: skip
