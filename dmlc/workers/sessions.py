"""Sessions of ONNX Runtime: the one place that makes them, for this process and for the worker.

It loads nothing else of this package: half of the time that a worker takes to start. A worker reads requests from stdin
and writes answers to stdout, all of them pickles. A request is ``(keys of sessions to forget, bytes of the model to
load or None, what, ...)``. An answer is ``("fine", answer)``, ``("failed", text)``, ``("no provider", name)`` or
``("no load phase", text)``. Before the first request the worker reports how importing ONNX Runtime went: ``("fine",
version)``, ``("missing", text)`` or ``("failed", text)``.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pickle
import queue
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, BinaryIO

#: Key of the folder with the external data of a model given as bytes (onnxruntime_session_options_config_keys.h).
_WEIGHTS_FOLDER = "session.model_external_initializers_file_folder_path"
#: Key of the refusal of nodes that would run on the CPU provider, in the same file.
_NO_FALLBACK = "session.disable_cpu_ep_fallback"
_CPU, _DML, WEBGPU = "CPUExecutionProvider", "DmlExecutionProvider", "WebGpuExecutionProvider"
#: ONNX Runtime's providers by backend.
PROVIDERS = {"cpu": (), "dml": (_DML,), "webgpu": (WEBGPU,)}
#: The package of the WebGPU provider, which is a plugin of ONNX Runtime, and the name of an error without its device.
_PLUGIN, NO_DEVICE = "onnxruntime_ep_webgpu", "WebGPU device"
#: Bytes that a run on the CPU provider may take beside the model, and how often it may hold its weights.
MEMORY, COPIES = 4 << 30, 4
#: Threads that spin between runs would take the cores from the next model.
_SPINNING = "session.intra_op.allow_spinning"
#: A sample is at least so long, so that the clock does not count.
_SAMPLE = 2e-4
#: Rounds go on until each variant has met its least time so often, give or take that part of it, and so many rounds in
#: a row have found no lesser one: else it is luck which of them ran while the rest of the machine was still.
_MET, _CLOSE, _STILL = 3, 0.02, 10
#: A shorter run is made once untimed before each sample, so that it finds in the caches what it leaves there itself,
#: not what the variant before it left.
_SHORT = 0.02


class ProviderMissing(Exception):
    """An execution provider that this ONNX Runtime lacks; it would take the CPU's without a word."""


class LoadPhaseMissing(Exception):
    """The class behind ``onnxruntime.InferenceSession``, which does not initialize what it loads, is not there."""


def session_settings(library: Any, settings: dict[str, Any]) -> tuple[Any, list[Any]]:
    """The options and the providers of a session.

    ``backend`` is ``cpu``, ``dml`` or ``webgpu``. ``level`` is ``all``, ``basic`` or ``none``, of graph optimizations,
    without the optimizers that ``disabled`` names. ``threads`` are those of a node, None for one each core. ``folder``
    is where external data is, ``dims`` fixes free dimensions by name, ``whole`` refuses nodes for the CPU,
    ``provider_options`` go to the provider. Without ``arena``, nothing stays allocated for later runs: after an
    allocation that failed, ONNX Runtime's arena takes for the next one nearly all that the limit leaves. Threads of a
    ``timed`` session rest between its runs. Raises ``ProviderMissing``.
    """
    own = PROVIDERS[settings["backend"]]
    if WEBGPU in own:
        webgpu_device(library)
    for provider in own:
        if provider not in library.get_available_providers():
            raise ProviderMissing(provider)
    options = library.SessionOptions()
    options.log_severity_level = 4  # errors are raised; a second report on stderr would only confuse
    if settings.get("level", "all") != "all":
        levels = library.GraphOptimizationLevel
        of_name = {"none": levels.ORT_DISABLE_ALL, "basic": levels.ORT_ENABLE_BASIC}
        options.graph_optimization_level = of_name[settings["level"]]
    if settings.get("threads") is not None:
        options.intra_op_num_threads, options.inter_op_num_threads = settings["threads"], 1
    if settings.get("folder") is not None:
        options.add_session_config_entry(_WEIGHTS_FOLDER, settings["folder"])
    options.enable_cpu_mem_arena = settings.get("arena", True)
    if settings.get("whole"):
        options.add_session_config_entry(_NO_FALLBACK, "1")
    if settings.get("timed"):
        options.add_session_config_entry(_SPINNING, "0")
    for name, size in (settings.get("dims") or {}).items():
        options.add_free_dimension_override_by_name(name, size)
    if _DML in own:  # https://onnxruntime.ai/docs/execution-providers/DirectML-ExecutionProvider.html demands both
        options.enable_mem_pattern = False
        options.execution_mode = library.ExecutionMode.ORT_SEQUENTIAL
    given = settings.get("provider_options")
    providers = [(name, given) for name in own] if given else list(own)
    return options, providers if settings.get("whole") else [*providers, _CPU]


#: The libraries that this process has registered: after a second time the next session crashes (plugin 0.4.0).
_registered: set[str] = set()


def webgpu_device(library: Any) -> Any:
    """Register the plugin, if this process has not, and return its device: a GPU where there is one.

    ONNX Runtime lists the provider without a device too, and then takes the CPU's. Raises ``ProviderMissing``.
    """
    devices = getattr(library, "get_ep_devices", list)  # from ONNX Runtime 1.23

    def found() -> list[Any]:
        return [each for each in devices() if each.ep_name == WEBGPU]

    if not found() and not _registered:
        try:
            plugin = importlib.import_module(_PLUGIN)
            library.register_execution_provider_library(_PLUGIN, plugin.get_library_path())
        except (ImportError, AttributeError):
            raise ProviderMissing(WEBGPU) from None
        _registered.add(_PLUGIN)
    if not found():
        raise ProviderMissing(NO_DEVICE)
    return min(found(), key=is_software)


def is_software(device: Any) -> bool:
    """Return whether a device is a driver that computes on the CPU."""
    return str(getattr(device.device.type, "name", device.device.type)) == "CPU"


def bound_run(library: Any, session: Any, arrays: Mapping[str, Any], device: str) -> Callable[[], Any]:
    """A run whose inputs lie on the device before the first one and whose outputs stay there."""
    binding = session.io_binding()
    for name, array in arrays.items():
        binding.bind_ortvalue_input(name, library.OrtValue.ortvalue_from_numpy(array, device, 0))
    for output in session.get_outputs():
        binding.bind_output(output.name, device)

    def run() -> None:
        session.run_with_iobinding(binding)
        binding.synchronize_outputs()

    return run


def race(
    runs: Mapping[Any, Callable[[], object]], rounds: int, most: float = 5.0, *, threads: int | None = None
) -> tuple[dict[Any, float], float]:
    """The least seconds of a call, over interleaved rounds of which every other one goes backwards.

    What runs on one thread, which a library may start, is timed by what the process computes: other work on the machine
    takes none of it. There are more rounds than asked for while least times are not certain, and ``most`` seconds are
    not over; one round is one. How certain they are in the end is the second result, the noise: of the variant that met
    its least time least well, how many times that the next ones took.
    """
    clock = time.process_time if threads == 1 else time.perf_counter
    once = {name: min(_timed(run, 1, clock) for _ in range(3)) for name, run in runs.items()}
    repeats = {name: max(1, int(_SAMPLE / max(seconds, 1e-7))) for name, seconds in once.items()}
    least: dict[Any, list[float]] = {name: [] for name in runs}
    order = list(runs)
    enabled = gc.isenabled()
    gc.disable()
    try:
        end, done, still = time.perf_counter() + most, 0, 0
        while done < rounds or (rounds > 1 and not _certain(least, still) and time.perf_counter() < end):
            falls = False
            for name in order:
                if once[name] < _SHORT:
                    runs[name]()
                seconds, before = _timed(runs[name], repeats[name], clock), least[name]
                falls |= not before or seconds < before[0] * (1 - _CLOSE)
                least[name] = sorted((*before, seconds))[:_MET]
            done, still = done + 1, 0 if falls else still + 1
            order.reverse()
    finally:
        if enabled:
            gc.enable()
    noise = max((times[-1] / times[0] for times in least.values()), default=1.0)
    return {name: times[0] for name, times in least.items()}, noise


def _certain(least: Mapping[Any, Sequence[float]], still: int) -> bool:
    """True if more rounds would hardly find less; ``still`` of them have found none."""
    return still >= _STILL and all(times[-1] <= times[0] * (1 + _CLOSE) for times in least.values())


def _timed(run: Callable[[], object], times: int, clock: Callable[[], float]) -> float:
    """The seconds of a call, over so many."""
    count = range(times)
    start = clock()
    for _ in count:
        run()
    return (clock() - start) / times


class Requests:
    """The answers to requests; ``sessions`` are kept by the keys that the other side gave them."""

    def __init__(self, library: Any) -> None:
        self._library = library
        self.sessions: dict[int, Any] = {}

    def load(self, key: int, model: bytes, settings: dict[str, Any]) -> tuple[dict[str, str], dict[str, str]]:
        """Make a session; the ONNX Runtime types of its inputs and outputs."""
        options, providers = session_settings(self._library, settings)
        more = {"disabled_optimizers": settings["disabled"]} if settings.get("disabled") else {}
        session = self.sessions[key] = self._library.InferenceSession(model, options, providers=providers, **more)
        inputs, outputs = session.get_inputs(), session.get_outputs()
        return {value.name: value.type for value in inputs}, {value.name: value.type for value in outputs}

    def run(self, key: int, names: list[str], feeds: dict[str, Any]) -> list[Any]:
        return list(self.sessions[key].run(names, feeds))

    def race(self, keys: list[int], feeds: dict[str, Any], backend: str, most: float) -> tuple[dict[int, float], float]:
        """The least seconds of a run of each session, in turns, and the noise; see ``race``."""
        runs: dict[int, Callable[[], object]] = {}
        for key in keys:
            session = self.sessions[key]
            if backend == "webgpu":  # Python makes no tensors on its device
                runs[key] = partial(session.run, None, feeds)
            else:
                runs[key] = bound_run(self._library, session, feeds, "dml" if backend == "dml" else "cpu")
        threads = {self.sessions[key].get_session_options().intra_op_num_threads for key in keys}
        return race(runs, _MET, most, threads=1 if backend == "cpu" and threads == {1} else None)

    def run_each(self, key: int, names: list[str], many: list[dict[str, Any]]) -> list[list[Any] | str]:
        """The results of each input, or why it has none."""
        found: list[list[Any] | str] = []
        for feeds in many:
            try:
                found.append(self.run(key, names, feeds))
            except Exception as error:  # onnxruntime's exceptions have no common base class
                found.append(str(error) or type(error).__name__)
        return found

    def parse(self, model: bytes) -> None:
        """Run the load phase alone: nodes are checked and types inferred; no weights are read, no kernels made."""
        try:
            from onnxruntime.capi._pybind_state import InferenceSession
        except ImportError as error:
            raise LoadPhaseMissing(str(error)) from None
        options = self._library.SessionOptions()
        options.log_severity_level = 4
        InferenceSession(options, model, False, False)

    def construct(self, models: list[bytes]) -> list[str]:
        """Make the kernels of each model: the reason why one is refused, or nothing."""
        texts = []
        for model in models:
            try:
                self.load(0, model, {"backend": "cpu", "level": "none", "threads": 1})
                texts.append("")
            except Exception as error:  # onnxruntime's exceptions have no common base class
                texts.append(str(error) or type(error).__name__)
        self.sessions.pop(0, None)
        return texts

    def kernels(self) -> list[tuple[str, int, int, dict[str, list[str]]]]:
        """Operator, first and last version and types of each kernel of the CPU provider."""
        from onnxruntime.capi import onnxruntime_pybind11_state as state

        return [
            (
                kernel.op_name,
                *kernel.version_range,
                {name: list(types) for name, types in kernel.type_constraints.items()},
            )
            for kernel in state.get_all_opkernel_def()
            if kernel.provider == _CPU and not kernel.domain
        ]


def limit_memory(weights: int) -> None:
    """Limit what this process may allocate: an allocation beyond it fails, and the runtime reports that.

    ``weights`` are the bytes of the model and its external data. Windows has no such limit.
    """
    try:
        import resource
    except ImportError:
        return
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = MEMORY + COPIES * weights
    soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
    with contextlib.suppress(OSError, ValueError):  # a system that does not know the limit
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer until the other side closes, or until it is reported that ONNX Runtime cannot be imported."""

    def send(status: str, answer: Any) -> None:
        answers.write(pickle.dumps((status, answer), protocol=5))  # all of it, or an exception and nothing
        answers.flush()

    waiting: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(requests, waiting), daemon=True).start()
    try:
        import onnxruntime
    except (Exception, SystemExit) as error:  # a broken package raises anything
        is_missing = isinstance(error, ModuleNotFoundError) and error.name == "onnxruntime"
        send("missing" if is_missing else "failed", f"{type(error).__name__}: {error}")
        return
    send("fine", str(getattr(onnxruntime, "__version__", "")))
    answering, most = Requests(onnxruntime), -1
    while True:
        gone, memory, what, *arguments = waiting.get()
        for key in gone:
            answering.sessions.pop(key, None)
        if memory is not None and memory > most:
            limit_memory(most := memory)
        try:
            send("fine", getattr(answering, what)(*arguments))
        except ProviderMissing as error:
            send("no provider", str(error))
        except LoadPhaseMissing as error:
            send("no load phase", str(error))
        except Exception as error:  # onnxruntime's exceptions have no common base class
            send("failed", str(error) or type(error).__name__)


def _read(requests: BinaryIO, waiting: queue.SimpleQueue[Any]) -> None:
    """Hand requests on. Where the other side is gone, a run that may take hours goes with it."""
    while True:
        try:
            waiting.put(pickle.load(requests))
        except BaseException:  # a request that was cut off raises nearly anything
            os._exit(0)


def main() -> None:
    """Serve on stdin and stdout."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # prints of kernels must not come between the answers
    serve(sys.stdin.buffer, answers)
