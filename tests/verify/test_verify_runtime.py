"""ONNX Runtime missing, broken, dying or hanging: no verdict without evidence."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from model_pairs import I32, chain, model, node

import dmlc
from dmlc.cli.main import main
from dmlc.diagnostics import Diagnostic, DmlcError, Source
from dmlc.diagnostics.catalogue.runs import NO_RUNTIME
from dmlc.runtime.hosts import WORKER
from dmlc.verifying import Verdict, verify_graph, verify_models

TEXT = "model m(x: f32[2, 3]) -> (y) {\n    return abs(x) + 1\n}\n"
#: Modules that stand for ONNX Runtime, and what the reason of the verdict contains.
BROKEN = {
    "missing": ("raise ModuleNotFoundError('No module named onnxruntime', name='onnxruntime')", "is not installed"),
    "blocked": ("import sys\nsys.modules['onnxruntime'] = None\nimport onnxruntime", "is not installed"),
    "without its library": ("raise ImportError('DLL load failed')", "cannot be imported: ImportError: DLL load failed"),
    "without a module it needs": ("import no_such_module", "cannot be imported: ModuleNotFoundError"),
    "of another processor": ("raise OSError('wrong architecture')", "cannot be imported: OSError"),
    "leaving at import": ("raise SystemExit(0)", "cannot be imported: SystemExit"),
    "hollow": ("", "fails on a model of one addition"),
    "refusing every model": (
        "def SessionOptions(): raise RuntimeError('no providers')",
        "fails on a model of one addition: no providers",
    ),
    "dying at import": ("import os\nos._exit(3)", "ended its process with code 3 before it had run any model"),
    "dying at the first session": (
        "import os\ndef SessionOptions(): os._exit(4)",
        "ended its process with code 4 before it had run any model",
    ),
    "printing": ("print('hello')\nimport os\nos.write(1, b'hello')\nraise ImportError('no')", "ImportError: no"),
}
#: A module that is the real ONNX Runtime but for ``ends``: called with each model that a session is made of.
REAL = """
import os, sys
here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != here]
del sys.modules["onnxruntime"]
import onnxruntime
Real = onnxruntime.InferenceSession

class Session(Real):
    def __init__(self, model, *args, **options):
        {loads}
        super().__init__(model, *args, **options)

    def run(self, *args, **options):
        {runs}
        return super().run(*args, **options)

onnxruntime.InferenceSession = Session
"""

Plant = Callable[[str], None]


@pytest.fixture
def plant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plant]:
    """Put a module in the place of ONNX Runtime, for the process that models run in."""
    folder = tmp_path / "packages"
    folder.mkdir()

    def put(text: str) -> None:
        (folder / "onnxruntime.py").write_text(text)
        monkeypatch.syspath_prepend(folder)

    WORKER.stop()
    yield put
    WORKER.stop()


def blames_the_runtime(verdict: Verdict, words: str) -> None:
    assert (verdict.status, verdict.ok) == ("not verified", False)
    assert words in verdict.reason
    (diagnostic,) = verdict.diagnostics
    assert (diagnostic.code.id, diagnostic.message) == ("E0560", verdict.reason)
    assert "pip install onnxruntime" in diagnostic.help
    assert verdict.to_json()["code"] == "E0560"
    assert verdict.outputs == ()


@pytest.mark.parametrize("case", BROKEN)
def test_a_broken_runtime_is_no_evidence(case: str, plant: Plant) -> None:
    text, words = BROKEN[case]
    plant(text)
    blames_the_runtime(verify_models(chain("Abs"), chain("Neg")), words)


@pytest.mark.parametrize("case", ["missing", "hollow", "dying at the first session"])
def test_every_way_to_verify_blames_a_broken_runtime(case: str, plant: Plant) -> None:
    """Each starts a process of its own."""
    text, words = BROKEN[case]
    program = dmlc.compile(Source("m.dml", TEXT))
    imported = dmlc.compile(chain("Abs"))
    plant(text)
    blames_the_runtime(verify_models(chain("Abs"), chain("Abs")), words)
    blames_the_runtime(verify_graph(program.source_graph, chain("Neg")), words)
    blames_the_runtime(program.verify(3), words)
    blames_the_runtime(imported.verify(3), words)


@pytest.mark.parametrize(
    ("case", "form"), [("missing", "text"), ("missing", "json"), ("hollow", "json"), ("dying at import", "text")]
)
def test_the_verbs_say_what_to_install(
    case: str, form: str, plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, made in {"a": chain("Abs"), "b": chain("Neg")}.items():
        (tmp_path / f"{name}.onnx").write_bytes(made.SerializeToString())
    a, b, out = (str(tmp_path / f"{name}.onnx") for name in ("a", "b", "out"))
    plant(BROKEN[case][0])
    for argv in (["verify", a, b], ["verify", a, a], ["compile", a, "-o", out, "--verify", "2"]):
        assert main([*argv, "--format", form]) == 1
        captured = capsys.readouterr()
        if form == "json":
            found = json.loads(captured.out)
            assert not found["ok"]
            assert found.get("verification", found)["status"] == "not verified"
            assert "E0560" in [d["code"] for d in found["diagnostics"]]
        else:
            assert "help: dmlc explain E0560" in captured.out + captured.err
            assert "not comparable: ONNX Runtime" in captured.out + captured.err
        assert "different" not in captured.out + captured.err
    assert not Path(out).exists()


def test_a_runtime_that_computes_nonsense(plant: Plant) -> None:
    plant(REAL.format(loads="pass", runs="return [x * 3 for x in args[1].values()]"))
    blames_the_runtime(verify_models(chain("Abs"), chain("Abs")), "for a model of one addition")


def test_a_runtime_that_hangs(plant: Plant, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dmlc.runtime.hosts.START_LIMIT", 1.0)
    plant("import threading\nthreading.Event().wait()")
    verdict = verify_models(chain("Abs"), chain("Abs"))
    blames_the_runtime(verdict, "took longer than 1 s before it had run any model")


def test_a_model_that_ends_the_process_is_blamed(plant: Plant) -> None:
    """Once ONNX Runtime has run a model, its end is that of the model that it runs."""
    plant(REAL.format(loads="if b'Neg' in model: os._exit(9)", runs="pass"))
    assert verify_models(chain("Abs"), chain("Abs")).status == "equal"
    verdict = verify_models(chain("Abs"), chain("Neg"))
    assert (verdict.status, [d.code.id for d in verdict.diagnostics]) == ("different", ["E0562"])
    assert "ended its process" in verdict.reason
    verdict = verify_models(chain("Neg"), chain("Abs"))
    assert (verdict.status, [d.code.id for d in verdict.diagnostics]) == ("not verified", ["E0563"])


def test_a_runtime_that_breaks_on_the_way(plant: Plant, tmp_path: Path) -> None:
    """A process that ends is replaced; where the new one does not work, the model is not blamed."""
    broken = str(tmp_path / "broken")
    text = REAL.format(loads=f"if b'Neg' in model: open({broken!r}, 'w').close(); os._exit(9)", runs="pass")
    plant(f"import os\nif os.path.exists({broken!r}): raise ImportError('replaced')\n{text}")
    program = dmlc.compile(Source("m.dml", TEXT))
    verdict = verify_models(chain("Abs"), chain("Neg"))
    assert verdict.status == "different"  # the process ended with the model, after the original had run
    blames_the_runtime(verify_models(chain("Abs"), chain("Abs")), "replaced")
    blames_the_runtime(program.verify(2), "replaced")


def test_code_that_runs_on_a_missing_runtime() -> None:
    graph = dmlc.compile(Source("m.dml", TEXT)).source_graph

    def run(feeds: object) -> dict[str, object]:
        raise DmlcError(Diagnostic(NO_RUNTIME, "ONNX Runtime is not installed", help="pip install onnxruntime"))

    blames_the_runtime(verify_graph(graph, run), "is not installed")


def test_a_process_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    WORKER.stop()
    monkeypatch.setattr("dmlc.workers.worker.sys.executable", "/no/such/python")
    verdict = verify_models(chain("Abs"), chain("Neg"))
    assert verdict.status == "not verified"
    assert "can be started" in verdict.reason


def test_a_model_too_large_to_hand_over_is_no_evidence(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(*_: object, **__: object) -> None:
        raise ValueError("Message exceeds maximum protobuf size of 2GB")

    abs_, neg = chain("Abs"), chain("Neg")
    monkeypatch.setattr("dmlc.verifying.onnx_subject.OrtModel", too_large)
    assert verify_models(abs_, neg).status == "not verified"


def test_modules_of_the_working_folder_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with models may hold modules that are called like the ones that are needed."""
    (tmp_path / "pickle.py").write_text("raise RuntimeError('the wrong module')")
    monkeypatch.chdir(tmp_path)
    WORKER.stop()
    assert verify_models(chain("Abs"), chain("Abs")).status == "equal"


@pytest.mark.parametrize(
    ("first", "second", "dtype", "expected"),
    [
        ("Identity", "Neg", onnx.TensorProto.FLOAT, "numbers"),
        ("Identity", "Neg", I32, "integers"),
        ("IsNaN", "IsInf", onnx.TensorProto.FLOAT, "none"),
    ],
)
def test_largest_errors_of_what_differs(first: str, second: str, dtype: int, expected: str) -> None:
    a, b = chain(first, dtype=dtype), chain(second, dtype=dtype)
    (output,) = verify_models(a, b).to_json()["outputs"]
    assert output["status"] == "different"
    errors = output["largest_error"]
    assert (errors["absolute"] is not None and errors["absolute"] > 0) == (expected != "none")
    assert (errors["ulp"] is not None and errors["ulp"] > 0) == (expected == "numbers")
    same = verify_models(a, a).to_json()["outputs"][0]["largest_error"]
    assert same == dict.fromkeys(("absolute", "relative", "relative_to_largest", "ulp"), 0.0)


def test_outputs_that_were_never_compared_have_no_status_of_their_own() -> None:
    far = {"i": np.array([[7]], np.int64)}
    gathered = model(node("GatherND", ["x", "i"], ["y"]), constants=far)
    near = model(node("GatherND", ["x", "i"], ["y"]), constants={"i": np.array([[1]], np.int64)})
    verdict = verify_models(near, gathered)
    assert verdict.status == "different"
    (output,) = verdict.to_json()["outputs"]
    assert output["status"] == "not compared"
    assert output["largest_error"] == dict.fromkeys(("absolute", "relative", "relative_to_largest", "ulp"))
