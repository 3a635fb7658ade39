"""Settings of the whole suite: hypothesis draws the same examples each time, and every emitted model is checked."""

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import onnxruntime
import pytest
from hypothesis import HealthCheck, settings

# For ``tools`` and ``benchmarks``; behind the others, so that the dmlc that is tested stays the installed one.
sys.path.append(str(Path(__file__).parents[1]))

from models.emitted_models import SAMPLE, recorded

from dmlc.cli.main import main
from tests import local_sessions
from tests.command_line import Run

# The same examples each time: what fails is due to a change. ``pytest --hypothesis-profile=default`` draws others, and
# ``python -m tools.fuzz`` looks for what nobody thought of.
# No limit on an example's time: machines are busy, and the time of work is another test's business.
settings.register_profile("suite", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suite")

# Workers of xdist are given a width, to which tables would be laid out.
os.environ.pop("COLUMNS", None)

RECORDER = recorded()

# Graphs of a test are garbage at its end. Of a large first generation little is still needed.
gc.set_threshold(400_000, 20, 20)


def pytest_configure(config: pytest.Config) -> None:
    """Keep bytecode in the cache of pytest where the environment forbids it in the tree.

    A process that compiles dmlc takes three times as long to start, and the tests start hundreds.
    """
    cache = getattr(config, "cache", None)
    if sys.dont_write_bytecode and cache is not None:
        folder = os.environ["PYTHONPYCACHEPREFIX"] = str(cache.mkdir("bytecode"))
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        sys.dont_write_bytecode, sys.pycache_prefix = False, folder


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Freeze the items of the suite, which are millions of objects: each full collection would walk them all, for one
    to three seconds. To count them takes as long, so a constant stands for their number."""
    gc.disable()
    yield
    gc.freeze()
    gc.get_freeze_count = lambda: 1
    gc.enable()


class OneThread(onnxruntime.SessionOptions):
    """Options of a session that computes in the calling thread.

    The suite runs one process a core. Threads of ONNX Runtime's own take longer to start than most models to run, and
    wait by spinning.
    """

    def __init__(self) -> None:
        super().__init__()
        self.intra_op_num_threads = self.inter_op_num_threads = 1


def session_on_one_thread(
    session: onnxruntime.InferenceSession, path_or_bytes: Any, sess_options: Any = None, *args: Any, **options: Any
) -> None:
    """As the constructor that it stands for, with ``OneThread`` by default. What loads is recorded."""
    settings = sess_options or OneThread()
    make_session(session, path_or_bytes, settings, *args, **options)
    if isinstance(path_or_bytes, bytes) and not options.get("disabled_optimizers"):
        RECORDER.on_load(path_or_bytes, settings.graph_optimization_level)


make_session, onnxruntime.SessionOptions = onnxruntime.InferenceSession.__init__, OneThread
onnxruntime.InferenceSession.__init__ = session_on_one_thread


def pytest_addoption(parser: pytest.Parser) -> None:
    help = "which emitted ONNX models are given to onnx.checker and ONNX Runtime: all, a sample, or none"
    parser.addoption("--emitted", choices=("all", "sample", "none"), default="sample", help=help)
    help = "whether each test of the model fixtures runs with all of them, or the tests take turns"
    parser.addoption("--model-tests", choices=("all", "turns"), default="turns", help=help)
    help = "which of onnx's node tests run: all, or a sample"
    parser.addoption("--node-tests", choices=("all", "sample"), default="sample", help=help)
    help = "which operators run on WebGPU by dtype, rank, ties and size: all, or one of each"
    parser.addoption("--webgpu", choices=("all", "sample"), default="sample", help=help)


@pytest.fixture(autouse=True)
def emitted_models_are_valid(request: pytest.FixtureRequest) -> Iterator[None]:
    """Every ONNX model that the test emits passes ``onnx.checker`` and loads in ONNX Runtime, if its original does.

    ``@pytest.mark.emits_invalid(reason)`` marks a test that breaks the compiler on purpose, and
    ``@pytest.mark.hostile`` one whose models may end the process that runs them.
    """
    RECORDER.clear()
    yield
    rate = {"all": 1, "sample": SAMPLE, "none": 0}[request.config.getoption("--emitted")]
    if request.node.get_closest_marker("every_emitted") is not None:
        rate = 1
    if rate and request.node.get_closest_marker("emits_invalid") is None:
        is_marked = request.node.get_closest_marker("every_emitted") is not None
        runs = 0 if request.node.get_closest_marker("hostile") is not None else 2 if is_marked else 2 * SAMPLE
        complaints = RECORDER.complaints(rate, runs)
        if complaints:
            pytest.fail("an emitted model is not valid:\n" + "\n".join(complaints), pytrace=False)


@pytest.fixture
def command_line(capsys: pytest.CaptureFixture[str]) -> Run:
    """``dmlc`` in this process: the exit code of a command, and what it alone printed, without a traceback."""

    def run(*words: object) -> tuple[int, str, str]:
        capsys.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as stop:  # wrong use
            code = int(stop.code or 0)
        out, err = capsys.readouterr()
        assert "Traceback" not in err, err
        return code, out, err

    return run


@pytest.fixture
def sessions_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verification runs harmless models in this process, and commands share the worker."""
    monkeypatch.setattr("dmlc.runtime.ort_model.host_of", local_sessions.host_of)
    monkeypatch.setattr("dmlc.api.verified.SESSIONS", SimpleNamespace(stop=lambda: None))
