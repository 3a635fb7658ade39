"""A model on ONNX Runtime: provider, optimizations and threads of choice, in this process or in the worker."""

from __future__ import annotations

import re
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from onnx import ModelProto, TensorProto

from dmlc.runtime.hosts import HERE, KEYS, WORKER, ThisProcess, WorkerProcess
from dmlc.runtime.runnable import RunFailed
from dmlc.workers.sessions import PROVIDERS

_PREFIX = re.compile(r"^\[ONNXRuntimeError\] : \d+ : \w+ : ")
#: Levels of graph optimizations: ONNX Runtime's default, the rewrites that keep the operators, none.
ALL, BASIC, NONE = "all", "basic", "none"


class OrtModel:
    """A model loaded into ONNX Runtime.

    ``folder`` is where its external data is. ``backend`` is ``cpu``, ``dml`` or ``webgpu``, ``level`` the level of
    graph optimizations, without the ``disabled`` optimizers. A node may use ``threads`` threads, None for one each
    core. ``dims`` fixes free dimensions by name. ``isolated`` models run in the worker, with limits on time and on
    memory, and are loaded again if it ended. ``whole`` models are refused if a node would run on the CPU provider
    instead. ``timed`` ones keep their memory between runs, which ``race`` times. ``types`` are the types of the
    outputs, ``input_types`` of the inputs, as ONNX Runtime writes them.

    Raises, here and in ``run``, ``RunFailed`` if ONNX Runtime refuses the model or fails, ``DmlcError`` E0553 if the
    provider is missing, E0560, or if isolated ``NoEvidence``, if ONNX Runtime is missing or broken.
    """

    def __init__(
        self,
        model: ModelProto,
        folder: Path | None = None,
        *,
        backend: str = "cpu",
        level: str = ALL,
        disabled: Sequence[str] = (),
        threads: int | None = None,
        dims: Mapping[str, int] | None = None,
        isolated: bool = False,
        whole: bool = False,
        timed: bool = False,
    ) -> None:
        where = None if folder is None else str(folder.absolute())
        self._model = model if isolated else ModelProto()  # one in this process is loaded once
        self._settings: dict[str, Any] = {"backend": backend, "level": level, "folder": where}
        self._settings |= {"disabled": list(disabled), "threads": threads, "dims": dict(dims or {}), "whole": whole}
        self._settings |= {"arena": timed or not isolated, "timed": timed}
        self._settings["provider_options"] = options_of(model, backend)
        self._host = host_of(model, folder, backend) if isolated else HERE
        self._key, self._generation = next(KEYS), 0
        self._load(model)
        weakref.finalize(self, self._host.forget, self._key).atexit = False

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(self.input_types)

    @property
    def outputs(self) -> tuple[str, ...]:
        return tuple(self.types)

    def run(self, inputs: Mapping[str, Any], wanted: Sequence[str] | None = None) -> dict[str, Any]:
        """The outputs by name, or the ``wanted`` ones."""
        names = list(dict.fromkeys(self.outputs if wanted is None else wanted))
        return self._named(names, self._ask("run", names, dict(inputs)))

    def run_each(self, many: Sequence[Mapping[str, Any]], wanted: Sequence[str]) -> list[dict[str, Any] | RunFailed]:
        """The ``wanted`` outputs by name for each input, which are all asked for at once. Raises as ``run`` does, but
        for an input that ONNX Runtime fails on."""
        names = list(dict.fromkeys(wanted))
        found = self._ask("run_each", names, [dict(inputs) for inputs in many])
        return [RunFailed(one) if isinstance(one, str) else self._named(names, one) for one in found]

    def _named(self, names: list[str], values: list[Any]) -> dict[str, Any]:
        # asked for nothing, ONNX Runtime gives all outputs
        return dict(zip(names, values, strict=True)) if names else {}

    def _ask(self, what: str, names: list[str], inputs: Any) -> list[Any]:
        self._stay()
        found: list[Any] = self._host.ask(what, self._key, names, inputs)
        return found

    @staticmethod
    def race(models: Sequence[OrtModel], inputs: Mapping[str, Any], most: float) -> tuple[list[float], float]:
        """The least seconds of a run of each isolated model, in turns for at most about ``most`` seconds; and the noise
        of that: how many times its least time the one that is least certain took again. Raises ``RunFailed``."""
        for model in models:
            model._stay()
        keys, first = [model._key for model in models], models[0]
        found, noise = first._host.ask("race", keys, dict(inputs), first._settings["backend"], most)
        return [found[key] for key in keys], noise

    def _stay(self) -> None:
        """Load it again where the worker that had it is gone."""
        self._host.start()
        if self._generation != self._host.generation:
            self._load(self._model)

    def _load(self, model: ModelProto) -> None:
        self._host.start()
        self._generation = self._host.generation
        data = model.SerializeToString()
        memory = len(data) + _external_bytes(model)
        found = self._host.ask("load", self._key, data, self._settings, memory=memory)
        self.input_types: dict[str, str] = found[0]
        self.types: dict[str, str] = found[1]


def options_of(model: ModelProto, backend: str) -> dict[str, str]:
    """The options of the backend's provider that a compiled model asks for in its metadata."""
    if not PROVIDERS[backend]:
        return {}
    from dmlc.onnx_schema.metadata import model_facts  # on the CPU, where verify runs, nothing of the compiler loads
    from dmlc.targets.session_advice import provider_options

    facts = model_facts(model)
    return {name: text for own in PROVIDERS[backend] for name, text in provider_options(facts, own).items()}


def host_of(model: ModelProto, folder: Path | None, backend: str) -> ThisProcess | WorkerProcess:
    """The process of an isolated model."""
    return WORKER


def plain_message(error: Exception) -> str:
    """The message of ONNX Runtime on one line, without its kind of error."""
    return _PREFIX.sub("", " ".join(str(error).split()))


def _external_bytes(model: ModelProto) -> int:
    external = (t for t in model.graph.initializer if t.data_location == TensorProto.EXTERNAL)
    return sum(int(entry.value) for t in external for entry in t.external_data if entry.key == "length")
