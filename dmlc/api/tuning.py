"""Times of lowerings: read from a file, or taken on the device that will run them, and written for other machines.

A row has no path and no name of a node: an operator, its attributes, the types of its operands, and how long each
lowering takes at these sizes.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import asdict, replace

from dmlc import __version__
from dmlc.api.emission import emit
from dmlc.api.measured_file import read_measured
from dmlc.codegen.artifact import Artifact
from dmlc.diagnostics import DmlcError, fail
from dmlc.diagnostics.catalogue import runs as codes
from dmlc.diagnostics.counted import counted
from dmlc.diagnostics.steps import step
from dmlc.ir import Graph, Node, TensorType, Value
from dmlc.ir.dim import evaluate
from dmlc.ops.constant import CONSTANT, ConstantAttributes, constant_of
from dmlc.ops.opaque import OPAQUE, OpaqueAttributes, title_of
from dmlc.passes.choose_lowering.plan import UNCHANGED
from dmlc.passes.options import Options
from dmlc.passes.pipeline import run_passes
from dmlc.placement.report import placement
from dmlc.runtime import files
from dmlc.runtime.devices import device_name, runtime_version
from dmlc.runtime.ort_model import OrtModel
from dmlc.runtime.random_feeds import random_feeds
from dmlc.runtime.runnable import NoEvidence, RunFailed
from dmlc.runtime.webgpu import on_software
from dmlc.targets import Target
from dmlc.verifying.comparison import DIFFERENT, compare_values
from dmlc.verifying.tolerance import EXACT

#: Attributes that no lowering depends on.
_IDLE = ("dtype", "keepdims")
#: A difference of less is none, however still the machine was.
_LEAST_NOISE = 1.03
#: The most seconds for one node, and the most bytes of its operands.
_MOST, _MOST_BYTES = 3.0, 1 << 30


class TimedOperation(Struct, frozen=True, omit_defaults=True):
    """The microseconds of a node's lowerings, and the noise: how many times faster one must be to count as faster.

    ``form`` is the operator that an imported model has it as. ``dropped`` lowerings make the same nodes as another,
    are wrong, or fail.
    """

    operator: str
    attributes: str
    types: tuple[str, ...]
    noise: float
    microseconds: dict[str, float]
    form: str = ""
    dropped: tuple[str, ...] = ()


class Times(Struct, frozen=True, kw_only=True):
    """The rows of one device."""

    schema: int = 1
    provider: str
    device: str
    onnxruntime: str
    dmlc: str = __version__
    rows: list[TimedOperation] = field(default_factory=list)


_Key = tuple[str, str, tuple[str, ...], str]


class TimedLowerings:
    """The tuner of a compilation: times from a file and, if asked for, new times from this machine's device.

    A node may use ``threads`` threads, None for one each core. Raises ``DmlcError`` E0553 where the target's provider
    or its device is not there, E0569 for a file of something else, E0556 for a target without a provider.
    """

    def __init__(self, options: Options, *, threads: int | None = None) -> None:
        self._options, self._threads = options, threads
        self._deadline: float | None = None
        self._is_over = not options.tune
        self._forced: dict[_Key, str] = {}
        self._rows: dict[_Key, TimedOperation] = {}
        self._classes: dict[_Key, dict[str, str]] = {}
        self._measured: set[_Key] = set()
        self._left: set[_Key] = set()
        self._backend = _backend(options.target)
        self._here = _this_device(self._backend) if options.tune else None
        self._file = self._here or Times(provider=self._backend, device="", onnxruntime="")
        path = None if options.tuning is None else Path(options.tuning)
        if path is not None and (path.exists() or not options.tune):
            self._read(path)

    def _read(self, path: Path) -> None:
        found = read_measured(path, Times, "times of lowerings")
        if found.provider != self._backend:
            message = (
                f"{path} has times of {found.provider}, and target {self._options.target.name} runs on {self._backend}"
            )
            raise fail(codes.BAD_TUNING, message)
        of_other = replace(found, rows=[]) != self._file
        if self._here is not None and of_other:
            return  # times of another device, or of other versions: all are taken anew
        self._file = found
        self._rows = {(row.operator, row.attributes, row.types, row.form): row for row in found.rows}

    def save(self) -> None:
        """Write the file, if new times were taken. Raises ``DmlcError`` E0421."""
        if self._measured and self._options.tuning is not None:
            rows = [self._rows[key] for key in sorted(self._rows)]
            data = msgspec.json.format(msgspec.json.encode(replace(self._file, rows=rows)), indent=1)
            files.write_bytes(Path(self._options.tuning), data + b"\n")

    def summary(self) -> str:
        device = f"{self._file.device}, ONNX Runtime {self._file.onnxruntime}"
        taken = f"{counted(len(self._measured), 'lowered operation')} timed" if self._here else "times taken"
        left = f"; {counted(len(self._left), 'operation')} without times" if self._left else ""
        interrupted = "; interrupted" if self._here and self._is_over else ""
        return f"{taken} on {device}{left}{interrupted}"

    # --- times

    def times(
        self, nodes: Sequence[Node], classes: Mapping[str, str], binding: Mapping[str, int]
    ) -> Mapping[str, float]:
        key = _key(nodes, binding)
        if key in self._forced:
            return {UNCHANGED: 1.0, self._forced[key]: 0.0, "noise": 1.0}
        row, known = self._rows.get(key), self._classes.setdefault(key, {})
        known.update(classes)  # several passes may ask for lowerings of one node
        is_whole = row is not None and classes.keys() <= {*row.microseconds, *row.dropped}
        if not is_whole and not self._measure(key, nodes, known, binding) and row is None:
            self._left.add(key)
            return {}
        row = self._rows[key]
        return {name: each * 1e3 for name, each in row.microseconds.items()} | {"noise": row.noise}

    def _measure(
        self, key: _Key, nodes: Sequence[Node], classes: Mapping[str, str], binding: Mapping[str, int]
    ) -> bool:
        """Time the lowerings of nodes, if there is time left; whether that was done."""
        now = time.monotonic()
        self._deadline = self._deadline or now + self._options.tune_seconds
        if self._is_over or now > self._deadline or sum(_bytes(v, binding) for v in _read(nodes)) > _MOST_BYTES:
            return False
        step(f"timing {key[0]} of {', '.join(key[2])}")
        try:
            made = {name: self._made(key, nodes, name, binding) for name in sorted(classes, key=_is_other)}
            found = None if self._is_over else self._race(made, classes)
        except KeyboardInterrupt as interrupt:  # known times are kept
            self._is_over = True
            if type(interrupt) is not KeyboardInterrupt:  # a signal that ends the process
                self.save()
                raise
            return False
        except (DmlcError, RunFailed, NoEvidence):
            return False
        if found is not None:
            seconds, noise = found
            rounded = {name: round(each * 1e6, 3) for name, each in seconds.items()}
            dropped = tuple(sorted(classes.keys() - rounded.keys()))
            self._rows[key] = TimedOperation(*key[:3], round(max(noise, _LEAST_NOISE), 3), rounded, key[3], dropped)
            self._measured.add(key)
        return found is not None

    def _made(self, key: _Key, nodes: Sequence[Node], name: str, binding: Mapping[str, int]) -> Artifact:
        """A model of the nodes alone in one of their lowerings, whose parts are chosen by their own times. Weights of
        several nodes are weights there, what a single one reads is its input."""
        graph = Graph("lowering", opset=self._options.opset)
        values: dict[Value | None, Value | None] = {None: None}
        for place, value in enumerate(_read(nodes)):
            data = constant_of(value) if len(nodes) > 1 else None
            if data is not None:
                values[value] = graph.add(CONSTANT, (), ConstantAttributes(value=data)).result
            else:
                shape = tuple([evaluate(size, binding) for size in value.shape])
                values[value] = graph.add_input(f"x{place}", TensorType(value.type.dtype, shape))
        for node in nodes:
            copy = graph.add(node.op, [values[v] for v in node.operands], node.attributes.substitute(binding))
            copy.origin = node.origin
            values.update(zip(node.results, copy.results, strict=True))
        for place, result in enumerate(copy.results):
            graph.add_output(f"y{place}", result)
        self._forced[key] = name
        try:
            plain: dict[str, Any] = {"progress": None, "bind": {}, "shapes": {}, "ranges": {}, "profile": {}}
            run_passes(graph, replace(self._options, tuner=self, **plain), self._options.target)
        finally:
            del self._forced[key]
        return emit("onnx", graph, self._options.target, self._options.opset, "plain")

    def _race(self, made: Mapping[str, Artifact], classes: Mapping[str, str]) -> tuple[dict[str, float], float]:
        """The seconds of the lowerings that are right, and the noise. The unchanged node comes first."""
        first = next(iter(made.values()))
        feeds = random_feeds(first.signature, 0)
        faults = _faults(first, self._options)
        models: dict[str, OrtModel] = {}
        expected: dict[str, Any] = {}
        for name, artifact in made.items():
            is_other = artifact is not first
            if is_other and (artifact.payload == first.payload or _faults(artifact, self._options) > faults):
                continue
            with suppress(RunFailed) if is_other else nullcontext():
                model = OrtModel(
                    artifact.payload, backend=self._backend, isolated=True, timed=True, threads=self._threads
                )
                found = model.run(feeds)
                expected = expected or found
                if _same(found, expected, classes[name]):
                    models[name] = model
        assert self._deadline is not None
        left = max(0.1, min(_MOST, self._deadline - time.monotonic()))
        seconds, noise = OrtModel.race([*models.values()], feeds, left)
        return dict(zip(models, seconds, strict=True)), noise


def _is_other(name: str) -> bool:
    return name != UNCHANGED


def _same(found: Mapping[str, Any], expected: Mapping[str, Any], rewrite_class: str) -> bool:
    allowed = frozenset((EXACT, rewrite_class))
    return all(compare_values(name, a, found[name], allowed).status != DIFFERENT for name, a in expected.items())


def _faults(artifact: Artifact, options: Options) -> tuple[int, int]:
    """The nodes of a model that fail or are wrong on the target, and those that are left to the CPU."""
    if options.target.provider is None:
        return 0, 0
    report = placement(artifact.payload, options.target, types=artifact.types, probe=options.probed)
    return sum(fault.effect in ("fails", "wrong") for _, fault in report.findings), report.count("cpu")


def _read(nodes: Sequence[Node]) -> list[Value]:
    """The values that nodes take from others, each once."""
    made = {value for node in nodes for value in node.results}
    return list(dict.fromkeys([v for node in nodes for v in node.operands if v is not None and v not in made]))


def _bytes(value: Value, binding: Mapping[str, int]) -> int:
    return math.prod([evaluate(size, binding) for size in value.shape]) * value.type.dtype.numpy.itemsize


def _key(nodes: Sequence[Node], binding: Mapping[str, int]) -> _Key:
    operands = [v for node in nodes for v in node.operands if v is not None] if len(nodes) == 1 else _read(nodes)
    types = [f"{v.type.dtype}{[evaluate(size, binding) for size in v.shape]}" for v in operands]
    form = "" if nodes[-1].origin is None else nodes[-1].origin.proto.op_type
    said = [_said(node, binding) for node in nodes]
    return " ".join([title_of(n) if n.op is OPAQUE else n.op.name for n in nodes]), "; ".join(said), tuple(types), form


def _said(node: Node, binding: Mapping[str, int]) -> str:
    """The attributes that lowerings depend on."""
    record = node.attributes.substitute(binding)
    pairs: Iterable[tuple[str, Any]] = (
        record.attributes if isinstance(record, OpaqueAttributes) else asdict(record).items()
    )
    return ", ".join([f"{name}={value}" for name, value in pairs if name not in _IDLE])


def _backend(target: Target) -> str:
    """The backend that runs a target's lowerings. Raises ``DmlcError`` E0556 (exit code 2) for one without lowerings
    to choose from."""
    if target.code == "onnx" and (target.provider is not None or target.costs is not None):
        return target.backend
    message = f"target {target.name} names no execution provider to time lowerings on"
    raise fail(codes.UNKNOWN_CHOICE, message, help="tune and tuning are for directml, webgpu and cpu", exit_code=2)


def _this_device(backend: str) -> Times:
    """No rows yet, of this machine's device. Raises ``DmlcError`` E0553, E0560."""
    try:
        device = device_name(backend)
        if backend == "webgpu" and on_software():
            raise fail(
                codes.NO_BACKEND, "the WebGPU device is a driver that computes on the CPU, whose times say nothing"
            )
    except DmlcError as error:
        message = error.diagnostics[0].message
        raise fail(
            codes.NO_BACKEND, message, help="without --tune, --tuning FILE takes the times of a machine that has it"
        ) from None
    return Times(provider=backend, device=device, onnxruntime=runtime_version())
