"""A model to search in, the check of its parts, and the inputs that show the fault."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from msgspec.structs import replace
from onnx import ModelProto

from dmlc import api
from dmlc.api.arguments import check_arguments
from dmlc.api.sources import onnx_model
from dmlc.debugging.checks import (
    BAD,
    GOOD,
    SKIP,
    BackendCheck,
    CheckFunction,
    Originals,
    PartResult,
    UserCheck,
    result_of,
)
from dmlc.debugging.counterpart import ModelCounterpart
from dmlc.debugging.insides import Inside, inside_model
from dmlc.debugging.search_state import SearchState
from dmlc.debugging.source_insides import CompileOptions, SideSource, backends_of
from dmlc.debugging.submodels import NodeGraph, fed_values
from dmlc.diagnostics import fail
from dmlc.diagnostics.catalogue.runs import INPUT_NAMES, NOT_VERIFIED, UNKNOWN_CHOICE
from dmlc.diagnostics.limits import Limits
from dmlc.runtime.runnable import NoEvidence, NotRunnable, RunFailed
from dmlc.targets import TargetName
from dmlc.verifying.check import verify_sides
from dmlc.verifying.inputs import SIZES, Feeds, NoInputs
from dmlc.verifying.subject import Subject
from dmlc.verifying.tolerance import EXACT, REASSOCIATES, asked_tolerance
from dmlc.verifying.verdict import NOT_VERIFIED as UNVERIFIED

#: Is called with the name of each step of a search as it begins.
Report = Callable[[str], None]


@dataclass(slots=True)
class SearchSetup:
    """A model to search in, the check of its parts, and the inputs to find the one that shows the fault among."""

    graph: NodeGraph
    checker: BackendCheck | UserCheck
    inputs: int | Mapping[str, Any]
    seed: int
    options: CompileOptions
    identity: dict[str, Any]
    rtol: float | None
    atol: float | None
    progress: Report
    state: SearchState = field(default_factory=lambda: SearchState(None, {}))
    runs: int = 0
    feeds: Feeds = field(default_factory=dict)
    #: True if the whole model does not run on the backend.
    fails: bool = False
    _values: dict[str, Any] = field(default_factory=dict)
    _ranks: dict[str, int] = field(default_factory=dict)
    _whole: PartResult | None = None
    #: Keys of the parts that were checked in this search.
    _asked: set[str] = field(default_factory=set)

    def whole(self) -> PartResult:
        """Check the whole model, and keep the inputs that show the fault. Raises ``DmlcError`` E0563 if it cannot be
        checked."""
        if self._whole is None:
            known = self.state.known("whole")
            if known is None or self.state.feeds is None:
                self.progress("the whole model")
                known, self.state.feeds = self._checked()
                self.state.record("whole", known)
            self._whole, self.feeds = known, self.state.feeds
            self.runs += 1
            self.fails = known.fails
        if self._whole.status == SKIP:
            raise fail(NOT_VERIFIED, f"the whole model cannot be checked: {'; '.join(self._whole.details)}")
        return self._whole

    def not_shown(self) -> str:
        """The message if the whole model is right; empty if it shows the fault. Raises as ``whole`` does."""
        found = self.whole()
        if found.status != GOOD:
            return ""
        return f"the fault does not show{f': {found.details[0]}' if found.details else ''}"

    def _checked(self) -> tuple[PartResult, Feeds]:
        model = self.graph.model
        try:
            if isinstance(self.inputs, int) and isinstance(self.checker, BackendCheck):
                return self._tried(self.inputs, self.checker)
            original = self.checker.originals.original(model)
            feeds = first_feeds(original, self.seed) if isinstance(self.inputs, int) else dict(self.inputs)
        except (NotRunnable, NoEvidence, NoInputs, LookupError) as error:
            raise fail(NOT_VERIFIED, f"the whole model cannot be checked: {error}") from None
        missing = [name for name in original.inputs if name not in feeds]
        if missing:
            raise fail(INPUT_NAMES, f"input {missing[0]} is not given", help=f"give --input {missing[0]}=FILE")
        return self.checker.check(model, feeds), feeds

    def _tried(self, count: int, checker: BackendCheck) -> tuple[PartResult, Feeds]:
        """The result on made-up inputs, and the first of them that shows the fault."""
        model = self.graph.model
        verdict = verify_sides(
            lambda: checker.originals.original(model), lambda: checker.result(model), inputs=count, seed=self.seed,
            allowed=(EXACT, REASSOCIATES), tolerance=asked_tolerance(self.rtol, self.atol), until_different=True,
        )  # fmt: skip
        if verdict.status == UNVERIFIED:
            return PartResult(SKIP, (verdict.reason,)), {}
        answer = verdict.headline().partition(":")[0]
        found = replace(result_of(verdict), details=(answer,)) if verdict.ok else result_of(verdict)
        if verdict.case is not None or verdict.ok:
            return found, dict(verdict.case or {})
        return found, first_feeds(checker.originals.original(model), self.seed)

    def checked_part(
        self, part: Collection[int], *, fed: bool, outputs: Sequence[str] | None = None, all_inputs: bool = True
    ) -> PartResult:
        """Check some nodes; values that enter come from ``against``. Raises ``DmlcError`` as the check does."""
        key = sha256(repr((sorted(part), fed, outputs, all_inputs)).encode()).hexdigest()[:32]
        found = self.state.known(key)
        if found is None:
            try:
                model, feeds = self.model_of(part, outputs, all_inputs=all_inputs)
            except LookupError as error:
                return PartResult(SKIP, (str(error),), fails=True)
            try:
                found = self.checker.check(model, feeds)
            except LookupError as error:
                return PartResult(SKIP, (str(error),), fails=True)
            if found.status == BAD and found.fails and not self.fails:
                found = replace(found, status=SKIP)  # the fault is one of numbers
            self.state.record(key, found)
        self.runs += key not in self._asked
        self._asked.add(key)
        return found

    def model_of(
        self, part: Collection[int], outputs: Sequence[str] | None = None, *, all_inputs: bool = True
    ) -> tuple[ModelProto, Feeds]:
        """The model of some nodes and its inputs. Raises ``LookupError`` for values that cannot be fed."""
        entering = self.graph.entering(part)
        values = {name: self.value(name) for name in entering}
        model = self.graph.part(part, values, outputs, all_inputs=all_inputs)
        self._declare_ranks(model)
        return model, fed_values(self.feeds, values, model)

    def _declare_ranks(self, model: ModelProto) -> None:
        """Outputs whose shape the whole model does not declare get the rank that they have; the checker asks for it."""
        infos = [info for info in model.graph.output if info.type.HasField("tensor_type")]
        infos = [info for info in infos if not info.type.tensor_type.HasField("shape")]
        missing = [info.name for info in infos if info.name not in self._ranks]
        if missing:
            with contextlib.suppress(NotRunnable, RunFailed):
                values = inside_model(self.graph.model, None).values(self.feeds, missing)
                self._ranks |= {name: np.ndim(array) for name, array in values.items()}
        for info in infos:
            if info.name in self._ranks:
                info.type.tensor_type.shape.SetInParent()
                for _ in range(self._ranks[info.name]):
                    info.type.tensor_type.shape.dim.add()

    def value(self, name: str) -> Any:
        """A value of the whole model by ``against``. Raises ``LookupError`` for what is not a tensor."""
        if name not in self._values:
            self._values |= self._computed(name)
        if name not in self._values:
            raise LookupError(f"{name} is not a tensor that can be given")
        return self._values[name]

    def _computed(self, name: str) -> dict[str, Any]:
        """All values where they fit together, else one."""
        originals = self.checker.originals
        graph = self.graph if originals.other is None else originals.other.graph
        model = graph.model
        names = [other for other in graph.makers if other not in self._values]
        for wanted in (names, [name]):
            makers: list[Callable[[], Inside]] = [partial(originals.values, model)]
            if originals.other is None:
                makers.append(partial(inside_model, model, None))
            for make in makers:
                try:
                    found = make().values(self.feeds, wanted)
                except (NotRunnable, RunFailed):
                    continue
                if name in found:
                    return found
        return {}


def prepare(
    a: SideSource,
    backend: str | None,
    against: str | SideSource | None,
    check: str | CheckFunction | None,
    *,
    inputs: int | Mapping[str, Any],
    seed: int,
    rtol: float | None,
    atol: float | None,
    options: CompileOptions,
    progress: Report | None,
) -> SearchSetup:
    """The setup of a search; ``against`` is a backend or a source. Raises ``DmlcError`` for a source or a backend that
    does not exist, for a check without ``{model}`` and for arguments of another type (E0556)."""
    check_arguments(
        backend=backend, check=check, inputs=inputs, seed=seed, rtol=rtol, atol=atol, model=options.model,
        include=options.include, progress=progress,
    )  # fmt: skip
    inputs, seed = inputs if isinstance(inputs, Mapping) else int(inputs), int(seed)
    sides = [] if backend is None else backends_of(backend)
    if len(sides) == 2:
        if against is not None:
            raise fail(UNKNOWN_CHOICE, f"{backend} and against both name the right side: give one", exit_code=2)
        backend, against = sides
    named, other = (against, None) if against is None or _is_name(against) else (None, against)
    if named is not None:
        backends_of(str(named), most=1)
    if check is not None and backend is not None:
        raise fail(UNKNOWN_CHOICE, "a check and a backend both decide: give one of them", exit_code=2)
    if isinstance(check, str) and "{model}" not in check:
        raise fail(UNKNOWN_CHOICE, "the check has no {model} in it, the path of the model to check", exit_code=2)
    tolerance = asked_tolerance(rtol, atol)
    compiles = backend is None and check is None and other is None
    graph = NodeGraph(*_model_of(a, backend, options, as_written=compiles))
    counterpart = None if other is None else _counterpart(graph, other, options)
    originals = Originals(None if named is None else str(named), options, counterpart)
    models = [graph.model, *([] if counterpart is None else [counterpart.graph.model])]
    given: Any = [inputs, seed] if isinstance(inputs, int) else {n: _digest(x) for n, x in sorted(inputs.items())}
    identity = {
        "models": [sha256(model.SerializeToString(deterministic=True)).hexdigest() for model in models],
        "inputs": given,
        "tolerance": [None if each is None else float(each) for each in (rtol, atol)],
        "against": named,
        "check": "a check" if check is not None else f"backend {backend}",
    }
    checker: BackendCheck | UserCheck
    if check is not None:
        checker = UserCheck(check, originals)
    else:
        checker = BackendCheck(backend, originals, options, tolerance, compiles=compiles)
    return SearchSetup(
        graph, checker, inputs, seed, options, identity, rtol, atol, progress or (lambda step: None)
    )  # fmt: skip


def _is_name(against: SideSource) -> bool:
    """True for the name of a backend, right or wrong; a file has a suffix."""
    return isinstance(against, str) and not Path(against).suffix


def _counterpart(graph: NodeGraph, other: SideSource, options: CompileOptions) -> ModelCounterpart:
    try:
        return ModelCounterpart(graph, *_model_of(other, "reference", options, as_written=True))
    except (NotRunnable, NoEvidence) as error:
        cause = getattr(error, "diagnostic", None)  # says what to install if ONNX Runtime is missing
        help = cause.help if cause is not None else ""
        raise fail(NOT_VERIFIED, f"the models cannot be compared: {error}", help=help) from None


def _digest(value: Any) -> str:
    data = value.tobytes() if hasattr(value, "tobytes") else repr(value).encode()
    return sha256(f"{getattr(value, 'dtype', '')}{getattr(value, 'shape', '')}".encode() + data).hexdigest()


def _model_of(
    a: SideSource, backend: str | None, options: CompileOptions, *, as_written: bool
) -> tuple[ModelProto, Path | None]:
    """The model, or what a program compiles to."""
    if isinstance(a, (str, os.PathLike)) and Path(a).suffix.lower() == ".py":
        raise fail(UNKNOWN_CHOICE, "a .py file cannot be cut: give a program or a model", exit_code=2)
    found = onnx_model(a, Limits.of(options.limits))
    if found is not None:
        return found
    target: TargetName = "onnx" if backend in ("cpu", "numpy", "reference") else "directml"
    emitted = api.emitted(options.program(a, as_written=as_written, target=target), "onnx")
    return emitted.payload, emitted.folder


def first_feeds(side: Subject, seed: int) -> Feeds:
    """Made-up inputs that a side runs on. Raises ``NoInputs``."""
    message = ""
    for interface in side.interfaces():
        for tamed in interface.tamed():
            for binding in islice(tamed.bindings(seed), SIZES):
                feeds = tamed.feeds([binding], 0, seed)
                try:
                    side.run(feeds)
                except RunFailed as error:
                    message = str(error)
                    continue
                return feeds
    raise NoInputs(f"it runs on none of the inputs that were tried: {message}")
