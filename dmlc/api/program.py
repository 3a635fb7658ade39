"""A compiled model, which reports its rewrites, and can be emitted, saved, run and verified."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from copy import copy, deepcopy
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct, field
from msgspec.structs import replace

from dmlc import ir
from dmlc.api.arguments import COUNT, check_argument, check_arguments
from dmlc.api.chosen_options import consistent_help
from dmlc.api.chosen_target import check_feature_level
from dmlc.api.emission import emit, state_requirements
from dmlc.api.kinds import kind_of
from dmlc.api.load_result import LoadCheck, blaming
from dmlc.codegen.artifact import Artifact, Signature, signature_of, unshared
from dmlc.codegen.ledger import ledger_document, ledger_json
from dmlc.diagnostics import Diagnostic, DmlcError, did_you_mean, fail, judged, naming
from dmlc.diagnostics.catalogue import runs as codes
from dmlc.diagnostics.given import listed
from dmlc.diagnostics.shown import Shown
from dmlc.ir import Array
from dmlc.ir.collector import collector_paused
from dmlc.ir.removed import Removal, removals
from dmlc.ops.opaque import OPAQUE, OPAQUE_IMPURE
from dmlc.passes.manager import LedgerEntry, PassContext, PassManager, Remark
from dmlc.passes.options import Options, Tuner
from dmlc.passes.pipeline import fusions, narrowed, run_passes
from dmlc.runtime import files
from dmlc.runtime.chosen_outputs import graph_with_outputs, with_outputs
from dmlc.runtime.feeds import FeedChecker
from dmlc.runtime.runner import Run, Runner, profile_of, session_of
from dmlc.targets import Target, load_target

if TYPE_CHECKING:
    import onnx

    from dmlc.codegen.numpy import Style
    from dmlc.placement.report import Placement as Report
    from dmlc.runtime.weights import Placement
    from dmlc.verifying import Verdict

#: Backends that can run a program.
BACKENDS: tuple[str, ...] = ("dml", "webgpu", "cpu", "numpy", "reference")
_PASSED_ON = (OPAQUE, OPAQUE_IMPURE)
#: A combination of sizes: dims and their sizes, in the order in which they were given.
Profile: TypeAlias = tuple[tuple[str, int], ...]


class _Lowered(Struct):
    """A graph after the passes for one target, and what they recorded."""

    graph: ir.Graph
    context: PassContext
    artifacts: dict[str, Artifact] = field(default_factory=dict)


class Program(Shown):
    """A compiled model. Code is generated when it is first asked for, sessions are made once and kept.

    ``source_graph`` is the graph as it was written, ``graph`` the result of the passes for the target. ``source_model``
    is the ONNX model that it was imported from, if it was. Do not change any of them. ``profiles`` has a program for
    each combination of sizes that ``compile`` was given; ``run`` and ``save`` use these.
    """

    def __init__(self, graph: ir.Graph, options: Options, source_model: onnx.ModelProto | None = None) -> None:
        self._options = options
        self.tuner: Tuner | None = options.tuner  # the times that lowerings are chosen by
        self._lowered: dict[str, _Lowered] = {}
        self._runners: dict[tuple[str, tuple[str, ...]], Run] = {}
        self._placements: dict[str, Report] = {}
        self._dispatched: dict[str | None, Artifact] = {}
        self._written: Artifact | None = None
        self._load_check: LoadCheck | None = None
        self._kernels: tuple[Diagnostic, ...] | None = None
        self.source_name = ""  # name of the file, for diagnostics; empty for other sources
        self.source_graph = graph
        self.source_model = source_model
        self.profiles: dict[Profile, Program] = {}
        self.defined: Mapping[str, int] = {}  # operators that ONNX's definitions took, and how many nodes
        self.signature: Signature = signature_of(graph)
        self._lower(options.target)

    @property
    def target(self) -> Target:
        return self._options.target

    @property
    def opset(self) -> int:
        return self._options.opset

    @property
    def allowed(self) -> frozenset[str]:
        """The classes of rewrites that may be applied."""
        return self._options.allowed

    @property
    def decomposed(self) -> frozenset[str]:
        """The operators that ``decompose`` was to write in primitive ones."""
        return self._options.decompose

    @property
    def graph(self) -> ir.Graph:
        return self._lower(self.target).graph

    @property
    def ledger(self) -> tuple[LedgerEntry, ...]:
        """The rewrites that were applied, in order."""
        return tuple(self._lower(self.target).context.ledger)

    def ledger_document(self) -> dict[str, Any]:
        """The ledger with the target, the opset and the options, as plain data: what ``--ledger`` writes."""
        options = self._options.recorded()
        return ledger_document(self.signature.name, self.target.name, self.opset, options, self.ledger, self.removed)

    @property
    def removed(self) -> tuple[Removal, ...]:
        """Nodes of a model that no rewrite took and the graph lacks, one entry for each cause."""
        return tuple(removals(self.source_graph))

    @property
    def remarks(self) -> tuple[Remark, ...]:
        """The rewrites that did not fire, and why."""
        return tuple(self._lower(self.target).context.remarks)

    @property
    def advice(self) -> tuple[Diagnostic, ...]:
        """The warnings of the passes (numbers that may overflow, sizes that may be 0), and advice about the source."""
        return (*self.source_graph.advice, *self._lower(self.target).context.diagnostics)

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """The warnings: those of the passes and, for a target with a provider, the nodes that land on the CPU; and
        advice about the source."""
        return tuple(d for d in self._problems((), strict=False) if d.severity != "error")

    def problems(self, *, strict: bool = False) -> tuple[Diagnostic, ...]:
        """Every diagnostic of the program for its target, errors first; ``strict`` makes each warning an error.

        Errors are nodes that fail or give wrong numbers there (E0591, E0592), and what keeps ONNX Runtime from loading
        the model (E0431, E0554), as ``require_sound`` raises them. Kernels that its CPU provider refuses are errors for
        the target ``cpu``.
        """
        check_arguments(strict=strict)
        return self._problems(self.loading_problems(), strict=strict)

    def _problems(self, loading: Sequence[Diagnostic], *, strict: bool) -> tuple[Diagnostic, ...]:
        placed: list[Diagnostic] = []
        if self.target.provider is not None:
            from dmlc.placement.advice import located

            report = self.placement()
            if report.findings and self.source_model is None:
                placed = located(report, self._emitted("onnx").locations, self.source_graph)
            else:
                placed = located(report, {}, None)
        found = [consistent_help(d, self._options) for d in (*loading, *self.advice, *placed)]
        return judged([d.in_file(self.source_name) for d in found], strict=strict)

    @collector_paused()
    def placement(self, feature_level: str | None = None) -> Report:
        """Report where each node of the emitted ONNX model runs, and why. Computed at the first call.

        Raises ``ValueError`` for a target without a provider.
        """
        from dmlc.placement.report import placement

        if feature_level is not None:
            check_feature_level(feature_level)
        level = feature_level or self.target.feature_level or ""
        if level not in self._placements:
            made = self._emitted("onnx")
            given: dict[str, Any] = {"types": made.types, "probe": self._options.probed}
            self._placements[level] = placement(made.payload, self.target, feature_level=level, **given)
        return self._placements[level]

    def losses(self) -> tuple[int, int]:
        """Count the nodes of the emitted model that fail or are wrong on the target, and those it leaves on the CPU."""
        report = self.placement()
        return sum(f.effect in ("fails", "wrong") for _, f in report.findings), report.count("cpu")

    def load_check(self) -> LoadCheck:
        """Have the installed ONNX Runtime run its load phase on the model, in a process of its own, at the first call.

        It finds nothing for the target ``numpy``, which emits no model."""
        if self._load_check is None:
            self._load_check = LoadCheck()
            if self.target.code != "numpy":
                from dmlc.api.load_check import load_check

                made = self._emitted("onnx")
                self._load_check = load_check(made, self.source_graph, self.source_model, self.target)
        return self._load_check

    def loading_problems(self) -> tuple[Diagnostic, ...]:
        """The problems that keep ONNX Runtime from loading the model, or from making a kernel."""
        found = self.load_check().errors
        if not found and self.target.code != "numpy":
            if self._kernels is None:
                from dmlc.api.load_check import kernel_check

                self._kernels = tuple(kernel_check(self._emitted("onnx"), self.source_graph, self.target))
            found = self._kernels
        return found

    def require_sound(self) -> None:
        """Raises ``DmlcError`` E0591, E0592 where a node would fail or give wrong numbers on the target; E0431, E0554
        where ONNX Runtime would not load the model."""
        errors = [d for d in self.problems() if d.severity == "error"]
        if errors:
            raise DmlcError(errors)

    @property
    def timings(self) -> tuple[tuple[str, float, bool], ...]:
        """Each pass that ran: its name, seconds, and whether it changed anything."""
        return tuple(self._lower(self.target).context.timings)

    # --- code

    def artifact(self, kind: str, style: Style = "plain") -> Artifact:
        """The emitted code: ``onnx``, ``numpy``, ``dml`` or ``dxdispatch`` (as saved last). Raises ``DmlcError``.

        ``style`` is that of NumPy code; see ``to_numpy``. The artifact is a copy: changing it leaves the program as it
        is.
        """
        check_arguments(kind=kind, style=style)
        return unshared(self._emitted(kind, style))

    @collector_paused()
    def _emitted(self, kind: str, style: Style = "plain") -> Artifact:
        """The artifact that the program keeps, which nobody may change."""
        if kind == "dml":
            return self._text(None)
        if kind == "dxdispatch":
            from dmlc.codegen.dxdispatch.file_names import folder_name

            return self._written or self._dispatches(folder_name(self.signature.name) + ".dxdispatch")
        lowered = self._lower(self._target_of(kind))
        key = f"{kind} {style}" if kind == "numpy" else kind
        if key not in lowered.artifacts:
            with self._blaming():
                target = lowered.context.target
                artifact = lowered.artifacts[key] = emit(kind, lowered.graph, target, self.opset, style)
                if kind == "onnx":
                    report = None if target.provider is None else self.placement()
                    state_requirements(artifact, self.opset, report)
        return lowered.artifacts[key]

    def to_onnx(self) -> onnx.ModelProto:
        """The ONNX model: another one each time, which the caller may change."""
        model: onnx.ModelProto = self._emitted("onnx").payload
        del self._lower(self._target_of("onnx")).artifacts["onnx"]  # emitted anew where it is needed again
        return model

    def to_numpy(self, style: Style = "plain") -> str:
        """Return the text of a Python module that imports only numpy.

        ``plain`` writes each operation as one would by hand. ``fast`` adds support functions for ``argmax``,
        ``argmin``, ``hardmax`` and ``top_k`` of large arrays.
        """
        return self.to_bytes("numpy", style).decode()

    def to_bytes(self, kind: str, style: Style = "plain") -> bytes:
        """Return the content of a file of that kind."""
        check_arguments(kind=kind, style=style)
        if kind == "onnx":
            data: bytes = self._emitted(kind).payload.SerializeToString(deterministic=True)
            return data
        text: str = (self._dispatches(None) if kind == "dxdispatch" else self._emitted(kind, style)).payload
        return text.encode("utf-8")

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        kind: str | None = None,
        weights: Placement | None = None,
        style: Style = "plain",
    ) -> None:
        """Write the program in the form that ``kind`` or else the suffix says, whole or not at all.

        ``weights`` says what becomes of an imported model's external data: a ``reference`` to where it is, which is
        what happens in its own folder by default; a ``copy`` in PATH.HASH.data, elsewhere; ``inline`` data.
        Of a program with ``profiles`` one ONNX model is written for each, and an index, all or none of them.
        Raises ``DmlcError``: E0556 for an unknown suffix, E0421 (exit code 2) where it cannot be written, E0431 and
        E0554 where ONNX Runtime would not load it, and what ``runtime.weights.write_model`` raises.
        """
        check_arguments(path=path, kind=kind, weights=weights, style=style)
        path, kind = Path(path), kind_of(path) if kind is None else kind
        if self.profiles and kind == "onnx":
            self._save_profiles(path, weights)
            return
        files.spare_weights(self.source_graph, path)
        if kind == "onnx":
            from dmlc.runtime.weights import write_model

            artifact = self.loadable()
            write_model(artifact.payload, path, source=artifact.folder, weights=weights)
        elif kind == "dml":
            beside = path.with_suffix(".npz")
            artifact = self._text(beside.name)
            if artifact.arrays:
                files.write_bytes(beside, files.npz_bytes(artifact.arrays))
            files.write_bytes(path, artifact.payload.encode("utf-8"))
        elif kind == "dxdispatch":
            self._save_dispatches(path)
        else:
            files.write_bytes(path, self.to_bytes(kind, style))

    def loadable(self) -> Artifact:
        """The ONNX model to be written. Raises ``DmlcError`` E0431, E0554 where ONNX Runtime does not load it, which is
        asked only about nodes that dmlc passes on: it has been about those that dmlc makes."""
        if self.source_model is not None or any(node.op in _PASSED_ON for node in self.graph):
            errors = [d.in_file(self.source_name) for d in self.load_check().errors]
            if errors:
                raise DmlcError(errors)
        return self._emitted("onnx")

    def _save_profiles(self, path: Path, weights: Placement | None) -> None:
        from dmlc.runtime.profiles import index_document, index_path, profile_path, write_profiles

        found = [(dict(sizes), program.loadable()) for sizes, program in self.profiles.items()]
        for written in (index_path(path), *[profile_path(path, sizes) for sizes, _ in found]):
            files.spare_weights(self.source_graph, written)
        index = index_document(path, self.signature.name, self._places(), [sizes for sizes, _ in found])
        write_profiles(path, found, index, weights)

    def _places(self) -> dict[str, tuple[str, int]]:
        """An input and an axis that give the size of each dim of the profiles."""
        from dmlc.runtime.profiles import dim_places

        return dim_places(self.signature, [name for name, _ in next(iter(self.profiles), ())])

    def _text(self, weights: str | None) -> Artifact:
        """The program in the language, fused but not made for any target."""
        from dmlc.codegen import dml

        return dml.emit(self._fused(None), weights, self.target.opset)

    def _dispatches(self, folder: str | None) -> Artifact:
        """DirectML's operators as DxDispatch runs them, which take what ONNX cannot say; data lies in ``folder``."""
        from dmlc.codegen import dxdispatch

        if folder not in self._dispatched:
            graph = self._fused(dxdispatch.MAX_RANK)
            self._dispatched[folder] = dxdispatch.emit(graph, folder, self.target.feature_level)
        return self._dispatched[folder]

    def _save_dispatches(self, path: Path) -> None:
        from dmlc.codegen import dxdispatch
        from dmlc.runtime import dxdispatch_files

        artifact = emitted_to(self, "dxdispatch", path)
        inputs = dxdispatch.input_files(artifact.signature, dxdispatch_files.folder_of(path))
        dxdispatch_files.write(artifact, path, inputs, lambda: {**self._defaults(), **self.random_feeds(0)})
        self._written = artifact

    def _fused(self, max_rank: int | None) -> ir.Graph:
        """A copy of the program after the passes whose result is still a program of the language."""
        graph = self.source_graph.clone()
        options = self._options
        target = replace(load_target("numpy"), code="program", max_rank=max_rank)
        PassManager(fusions(options)).run(graph, PassContext(target, options.opset, options))
        return graph

    def _target_of(self, kind: str) -> Target:
        """NumPy code is made for NumPy whatever the target is, and ONNX for ONNX where the target is NumPy."""
        if kind == "numpy":
            return load_target("numpy")
        return load_target("onnx") if self.target.code == "numpy" else self.target

    def _lower(self, target: Target) -> _Lowered:
        if target.name not in self._lowered:
            chosen = self._options
            graph = self.source_graph.clone()
            with self._blaming():
                context = run_passes(graph, chosen, target)
            graph.metadata["ledger"] = ledger_json(context.ledger, self.removed)
            if chosen.profile:
                graph.metadata["profile"] = json.dumps(dict(chosen.profile), ensure_ascii=False)
            self._lowered[target.name] = _Lowered(graph, context)
        return self._lowered[target.name]

    @contextmanager
    def _blaming(self) -> Iterator[None]:
        """Blame failures that a broken model causes on the model; name the file in errors."""
        with naming(self.source_name), nullcontext() if self.source_model is None else blaming(self.source_model):
            yield

    # --- running

    def run(
        self,
        feeds: Mapping[str, Any],
        backend: str | None = None,
        *,
        outputs: Sequence[str] | str | None = None,
        check_ranges: bool = False,
    ) -> dict[str, Array]:
        """Run on arrays by input name; gives arrays by output name.

        The default ``backend`` is ONNX Runtime: DirectML if it is present, else the CPU provider. A target without a
        promise for the CPU provider runs by the reference instead, target ``numpy`` as NumPy code. ``outputs`` names
        the wanted results, and inner values that the compiled program still has under that name.
        ``check_ranges`` first compares the data with the ranges that inputs promise. With ``profiles`` the program for
        the fed sizes runs, or this one if there is none for them.

        Raises ``DmlcError``: E0423 to E0426 where the feeds do not match the program, E0445 for data out of a range,
        E0446 for an output that does not exist, E0553 where the backend is missing, E0554 where ONNX Runtime fails,
        E0558 where memory does not suffice.
        """
        profile: Program | None = profile_of(self.profiles, self._places(), feeds) if self.profiles else None
        if profile is not None:
            return profile.run(feeds, backend, outputs=outputs, check_ranges=check_ranges)
        check_arguments(check_ranges=check_ranges)
        if check_ranges and self.signature.ranges and isinstance(feeds, Mapping):
            FeedChecker(self.signature).check_ranges(feeds)
        names = None if outputs is None else listed("outputs", outputs)
        results = {name for name, _ in self.signature.outputs}
        inner = () if names is None or results.issuperset(names) else tuple(names)
        chosen = "" if backend is None else self._chosen_backend(backend)
        key = (chosen, inner)
        runner = self._runners.get(key)
        if runner is None:
            runner = self._runners[key] = self._run_on(chosen or self.default_backend(), inner)
        try:
            found = runner(feeds, names)
        except MemoryError as error:
            help = "give smaller arrays, or make smaller ones"
            raise fail(codes.OUT_OF_MEMORY, f"there is not enough memory to run: {error}", help=help) from None
        return found if names is None else {name: found[name] for name in names}

    def __call__(self, /, **feeds: Any) -> dict[str, Array]:
        """``run`` with the inputs as keywords: ``program(x=array)``."""
        return self.run(feeds)

    def runner(self, *, threads: int | None = 1, backend: str | None = None) -> Runner:
        """Return an object that runs the program without its compiler: the artifact and the signature, picklable.

        Each process makes one session, however often the runner is pickled. ``threads`` are those of ONNX Runtime's CPU
        provider, None one for each core. Raises ``DmlcError``: E0553 for a backend that is missing or has no artifact,
        E0556 for another number of threads.
        """
        backend = self._chosen_backend(backend, [name for name in BACKENDS if name != "reference"])
        artifact = self._emitted("numpy" if backend == "numpy" else "onnx")
        profiles = {sizes: one.runner(threads=threads, backend=backend) for sizes, one in self.profiles.items()}
        return Runner(artifact, backend, threads, defaults=self._defaults(), profiles=profiles, places=self._places())

    def verify(self, inputs: int, *, seed: int = 0, written: str | os.PathLike[str] | None = None) -> Verdict:
        """Compare the emitted ONNX model with what was compiled, on seeded inputs that are built to break rewrites.

        ``written`` is a file with that model, which is read in its place.

        An imported model runs on ONNX Runtime's CPU provider without optimizations. A program is computed by the
        reference; if it calls models, it runs as the ONNX model that no rule touched. The emitted model is read back
        and computed by the reference where the target makes no promise for that provider. The allowed classes decide
        which differences pass; see ``docs/verify.md``. Where f64 is computed in f32, both sides compute it so.
        """
        check_argument("inputs", inputs, COUNT)
        check_arguments(seed=seed, written=written)
        from dmlc.verifying import verify_graph, verify_models

        model, source, original = self._emitted("onnx").payload, self.source_graph, self.source_model
        result: Any = model if written is None else written
        if not self.target.runs_on_cpu:
            from dmlc.api.artifact_meaning import meaning

            result = meaning(model, self._emitted("onnx").folder)
        given: dict[str, Any] = {
            "inputs": inputs,
            "seed": seed,
            "allowed": sorted(self._options.allowed),
        }
        given["folder"] = self._emitted("onnx").folder
        if self._options.f64:
            source = narrowed(source, self._options)
            given["kinds"] = {name: "float32" for name, value in source.outputs if value.type.dtype.name == "f64"}
        if source.joined is not None or (self._options.f64 and original is not None):
            plain = self._options.as_written(load_target("onnx"))
            original = Program(source, plain)._emitted("onnx").payload
        if original is not None:
            return verify_models(original, result, **given)
        return verify_graph(source, result, **given)

    def default_backend(self) -> str:
        """Return the default backend of ``run``."""
        if self.target.code == "numpy":
            return "numpy"
        from dmlc.runtime.session import has_directml, has_webgpu

        if self.target.backend == "webgpu":
            return "webgpu" if has_webgpu() else "cpu"
        return "dml" if has_directml() else "cpu" if self.target.runs_on_cpu else "reference"

    def random_feeds(self, seed: int) -> dict[str, Array]:
        """Inputs made up, the same for the same seed. Raises ``DmlcError`` E0427, E0556, E0558."""
        check_arguments(seed=seed)
        from dmlc.api.made_up import made_up_feeds

        return made_up_feeds(self.source_graph, self.signature, seed, is_model=self.source_model is not None)

    def _defaults(self) -> dict[str, Array]:
        """Return the default values of the optional inputs."""
        return {value.name or "": tensor.array for value, tensor in self.source_graph.defaults.items()}

    def _run_on(self, backend: str, inner: tuple[str, ...]) -> Run:
        """The function that runs the program on a backend; with the values ``inner``, if there are any, as outputs."""
        if backend == "reference":
            from dmlc.runtime.reference import Reference

            return Reference(graph_with_outputs(self.source_graph, inner) if inner else self.source_graph).run
        if backend == "numpy":
            from dmlc.codegen import numpy as numpy_code
            from dmlc.runtime.numpy_code import NumpyCode

            lowered = self._lower(self._target_of("numpy")).graph
            made = numpy_code.emit(graph_with_outputs(lowered, inner)) if inner else self._emitted("numpy")
            return NumpyCode(made, self._defaults()).run
        emitted = self._emitted("onnx")
        return session_of(with_outputs(emitted, inner) if inner else emitted, backend)

    def _chosen_backend(self, backend: str | None, known: Sequence[str] = BACKENDS) -> str:
        """The backend, by default the one of ``run``. Raises ``DmlcError`` E0553 for one that is not known."""
        chosen = self.default_backend() if backend is None else backend
        if isinstance(chosen, str) and chosen in known:
            return chosen
        help = did_you_mean(str(chosen), known) or f"it is one of {', '.join(known)}"
        raise fail(codes.NO_BACKEND, f"there is no backend {chosen}", help=help)

    # --- copying

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as what it was made from. The passes run again, to the same bytes; sessions are made anew."""
        made_from = (self.source_graph, self._copied_options(), self.source_model)
        return Program, made_from, {"profiles": self.profiles, "source_name": self.source_name}

    def __copy__(self) -> Program:
        return self._copy_of(self.source_graph, copy)

    def __deepcopy__(self, memo: object) -> Program:
        return self._copy_of(self.source_graph.clone(), deepcopy)

    def _copy_of(self, graph: ir.Graph, copied: Callable[[Program], Program]) -> Program:
        out = Program(graph, self._copied_options(), self.source_model)
        out.source_name = self.source_name
        out.profiles = {sizes: copied(program) for sizes, program in self.profiles.items()}
        return out

    def _copied_options(self) -> Options:
        return replace(self._options, progress=None)  # the caller's, for the compilation that it watched

    def headline(self) -> str:
        """Return the name, the target and the opset."""
        return f"{self.signature.name} for {self.target.name}, opset {self.opset}"


def emitted(program: Program, kind: str) -> Artifact:
    """The artifact as ``program.artifact`` gives it, but not a copy, so nobody may change it: for this package's own
    readers. Raises ``DmlcError``."""
    return program._emitted(kind)


def with_results(program: Program, names: Iterable[str]) -> Program:
    """A program of the same source and options whose results are these outputs or named values of its source graph.

    Raises ``KeyError`` for a name that the graph does not have.
    """
    graph = program.source_graph.clone()
    known = {value.name: value for node in graph for value in node.results if value.name} | dict(graph.outputs)
    graph.set_outputs([(name, known[name]) for name in names])
    return Program(graph, program._copied_options())


def emitted_to(program: Program, kind: str, path: Path | None, style: Style = "plain") -> Artifact:
    """The artifact that ``program.save`` writes to a path, or for None the one in ``program.to_bytes``; not a copy.

    Raises ``DmlcError``, also E0421 (exit code 2) for a name that cannot be referred to."""
    if kind != "dxdispatch":
        return program._emitted(kind, style)
    from dmlc.runtime.dxdispatch_files import folder_of

    return program._dispatches(None if path is None else folder_of(path))
