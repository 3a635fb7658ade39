"""Sources that ``compile`` takes, what it says to others, and the ways to run a program."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import types
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

import dmlc
from dmlc.cli.main import main
from dmlc.ir.plain_file import holds_model
from dmlc.runtime import runner as runners
from dmlc.targets import load_target
from dmlc.text.syntax.parser import _PIECES
from tests.rows import each_row

TEXT = """model head(x: f32[N, 3], y: f32[N, 1]) -> (p, i) {
    s = x + y
    h = relu(s)
    p = softmax(h, axes=[1])
    i = argmax(h, axes=[1])
    return p, i
}
"""
MODEL = """<ir_version: 8, opset_import: ["": 17]> g (float[N, 3] x) => (float[N, 3] y)
{ a = Sigmoid(x) b = Add(a, x) y = Softmax<axis = 1>(b) }"""
X, Y = np.arange(6, dtype=np.float32).reshape(2, 3), np.ones((2, 1), np.float32)


def model() -> onnx.ModelProto:
    return parser.parse_model(MODEL)


@pytest.fixture
def head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dmlc.Program:
    monkeypatch.chdir(tmp_path)
    return dmlc.compile(dmlc.Source(TEXT, name="head.dml"), target="cpu")


# --- sources


class Holder:
    """An object like the result of ``torch.onnx.export(dynamo=True)``."""

    def __init__(self, held: Any) -> None:
        self.held = held

    @property
    def model_proto(self) -> Any:
        return self.held


def test_every_source_of_a_model_gives_the_same(tmp_path: Path) -> None:
    wanted = dmlc.compile(model()).to_bytes("onnx")
    data = model().SerializeToString()
    onnx.save(model(), tmp_path / "m.onnx")
    (tmp_path / "m.bin").write_bytes(data)
    (tmp_path / "m.dml").write_bytes(data)
    sources: list[Any] = [data, bytearray(data), memoryview(data), Holder(model()), Holder(data)]
    for source in (*sources, *[tmp_path / f"m.{suffix}" for suffix in ("onnx", "bin", "dml")], str(tmp_path / "m.bin")):
        assert dmlc.compile(source).to_bytes("onnx") == wanted


def test_a_model_of_onnx_ir_is_serialized(monkeypatch: pytest.MonkeyPatch) -> None:
    library: Any = types.ModuleType("onnx_ir")

    class Model:
        def __init__(self, proto: onnx.ModelProto) -> None:
            self.proto = proto
            self.graph = types.SimpleNamespace(initializers={})

    class ExternalTensor:
        pass

    library.Model, library.ExternalTensor, library.to_proto = Model, ExternalTensor, lambda held: held.proto
    monkeypatch.setitem(sys.modules, "onnx_ir", library)
    wanted = dmlc.compile(model()).to_bytes("onnx")
    source: Any = Model(model())
    assert dmlc.compile(source).to_bytes("onnx") == wanted
    holder: Any = Holder(Model(model()))
    assert dmlc.compile(holder).to_bytes("onnx") == wanted


def test_a_model_that_is_given_is_not_shared() -> None:
    given = model()
    program = dmlc.compile(Holder(given))
    wanted = program.to_bytes("onnx")
    given.graph.node[0].op_type = "Tanh"
    assert program.to_bytes("onnx") == wanted == dmlc.compile(model()).to_bytes("onnx")


def test_a_text_stands_in_the_folder_of_its_name(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    np.save(tmp_path / "d" / "w.npy", np.ones(3, np.float32))
    text = 'const w: f32[3] = load("w.npy")\n\nmodel m(x: f32[3]) -> (y) {\n    return x * w\n}\n'
    program = dmlc.compile(dmlc.Source(text, name=tmp_path / "d" / "x.dml"), target="numpy")
    assert program(x=[1.0, 2.0, 3.0])["y"].tolist() == [1, 2, 3]
    with pytest.raises(dmlc.DmlcError, match="E0401"):
        dmlc.compile(dmlc.Source(text, name=tmp_path / "x.dml"))
    with pytest.raises(dmlc.DmlcError, match=r"<text>:1:"):
        dmlc.compile(dmlc.Source("model m("))


@each_row("name", ["directml", "cpu", "onnx", "numpy", "directml:ort-1.20"])
def test_a_target_object_is_its_name(name: str) -> None:
    wanted = dmlc.compile(model(), target=name)
    for target in (load_target(name), wanted.target):
        program = dmlc.compile(model(), target=target)
        assert (program.target, program.opset) == (wanted.target, wanted.opset)
        assert program.to_bytes("onnx") == wanted.to_bytes("onnx")


REFUSED: list[tuple[Any, str]] = [
    (3, "onnx.save(model, 'model.onnx'); dmlc.compile('model.onnx')"),
    (None, "dmlc.compile"),
    ([model()], "dmlc.compile"),
    (TEXT, "source = dmlc.Source(text, name='m.dml'); dmlc.compile(source)"),
    (b"model m(", "source = dmlc.Source(text); dmlc.compile(source)"),
    (model().graph, "onnx.helper.make_model(graph); dmlc.compile(model)"),
    (Holder(3), "dmlc.compile"),
    (Holder, "dmlc.compile"),
    (dmlc.constant([1.0]), "g.output('y', y); dmlc.compile(g)"),
    (dmlc.compile(model()), "program.save('model.onnx'); dmlc.compile('model.onnx')"),
    (type("Module", (), {"__module__": "torch.nn.modules.module"})(), "torch.onnx.export(model, args, dynamo=True)"),
    (type("Net", (type("Module", (), {"__module__": "torch.nn.modules.module"}),), {})(), "torch.onnx.export"),
    (type("Pipe", (type("BaseEstimator", (), {"__module__": "sklearn.base"}),), {})(), "skl2onnx.to_onnx"),
]


@each_row(("source", "way"), REFUSED, ids=lambda item: type(item).__name__)
def test_a_refusal_says_two_lines_that_work(source: Any, way: str) -> None:
    with pytest.raises(dmlc.DmlcError) as raised:
        dmlc.compile(source)
    assert way in str(raised.value)
    assert ";" in way or "dmlc.compile" in str(raised.value)


@each_row("given", [3, None, b"", ["model"]])
def test_a_text_is_a_text(given: Any) -> None:
    with pytest.raises(dmlc.DmlcError, match="E0556"):
        dmlc.Source(given)
    with pytest.raises(dmlc.DmlcError, match="E0556"):
        dmlc.Source("", name=given if not isinstance(given, bytes) else 1)


@each_row(
    ("data", "name", "expected"),
    [
        (model().SerializeToString(), "m.dml", True),
        (model().SerializeToString(), "m", True),
        (TEXT.encode(), "m.onnx", False),
        (TEXT.encode(), "m", False),
        (b"", "m.onnx", True),
        (b"", "m.dml", False),
        ("# é ü\n".encode() * 1000, "m.onnx", False),
        (TEXT.encode("utf-16"), "m.txt", False),
        (b"\x08", "m.txt", True),
        (b"\xff\x12", "m.onnx", True),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 12\n", "m.onnx", True),
        (b"<!DOCTYPE html>\n<html></html>\n", "m.onnx", True),
        (b"models of ours", "m.onnx", True),
        (b"models of ours", "m", False),
        *[(f"# head\n\n{word.lower()} x".encode(), "m.onnx", False) for word in _PIECES],
    ],
)
def test_files_are_told_apart_by_their_content(data: bytes, name: str, expected: bool) -> None:
    assert holds_model(data, name) is expected


def test_the_command_line_looks_at_the_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(model(), "model.dml", format="protobuf")
    Path("program.onnx").write_text(TEXT)
    for verb in (
        ["check"],
        ["inspect"],
        ["explain"],
        ["run", "--random", "1"],
        ["compile", "--dry-run", "-o", "o.onnx"],
    ):
        for name in ("model.dml", "program.onnx"):
            assert main([verb[0], name, *verb[1:]]) == 0, (verb, name)
    capsys.readouterr()
    assert main(["compile", "model.dml", "-o", "out.onnx"]) == 0
    assert main(["verify", "model.dml", "out.onnx"]) == 0
    assert main(["compile", "program.onnx", "-o", "two.onnx"]) == 0
    assert main(["verify", "program.onnx", "two.onnx"]) == 0


# --- runs


@pytest.mark.parametrize("backend", ["cpu", "numpy", "reference"])
def test_inputs_as_keywords_and_chosen_outputs(head: dmlc.Program, backend: str) -> None:
    whole = head.run({"x": X, "y": Y}, backend)
    if backend == "cpu":
        assert list(head(x=X, y=Y)) == ["p", "i"]
    for names in (["i"], ["i", "p"], "p", ["h"], ["h", "i"], ("i", "h", "i")):
        found = head.run({"x": X, "y": Y}, backend, outputs=names)
        assert list(found) == list(dict.fromkeys([names] if isinstance(names, str) else names))
        for name, array in found.items():
            np.testing.assert_allclose(array, whole[name] if name in whole else np.maximum(X + Y, 0), rtol=1e-5)
    assert head.run({"x": X, "y": Y}, backend, outputs=[]) == {}
    with pytest.raises(dmlc.DmlcError, match=r"E0446.*its results are p, i"):
        head.run({"x": X, "y": Y}, backend, outputs=["p", "nothing"])
    with pytest.raises(dmlc.DmlcError, match='did you mean "p"'):
        head.run({"x": X, "y": Y}, backend, outputs=["pp"])


def test_inner_values_of_a_model(tmp_path: Path) -> None:
    program = dmlc.compile(model(), target="cpu")
    found = program.run({"x": X}, outputs=["b", "y", "x"])
    np.testing.assert_allclose(found["b"], 1 / (1 + np.exp(-X)) + X, rtol=1e-5)
    np.testing.assert_array_equal(found["x"], X)
    assert list(program.run({"x": X})) == ["y"]


def test_a_program_prints_few_lines(head: dmlc.Program) -> None:
    many = "".join(f"float[{10**5}] {'long' * 500}{n}, " for n in range(40))
    outputs = ", ".join(f"float[{10**5}] y{n}" for n in range(40))
    body = " ".join(f"y{n} = Exp({'long' * 500}{n})" for n in range(40))
    wide = parser.parse_model(f'<ir_version: 8, opset_import: ["": 17]> g ({many[:-2]}) => ({outputs}) {{ {body} }}')
    for program in (head, dmlc.compile(model()), dmlc.compile(wide)):
        assert str(program).count("\n") <= 14
        assert len(str(program)) < 2000
        assert len(repr(program)) < 200
    assert str(head).startswith("head: cpu, opset ")
    assert "x: f32[N, 3]" in str(head)


# --- runners


def bare_run(runner: Any) -> dict[str, Any]:
    return runner(x=X, y=Y)


def test_a_runner_is_small_and_picklable(head: dmlc.Program) -> None:
    runner = head.runner(threads=1)
    data = pickle.dumps(runner)
    assert len(data) < len(head.to_bytes("onnx")) + 3000
    for other in (runner, pickle.loads(data)):
        for found in (other.run({"x": X, "y": Y}), other(x=X, y=Y)):
            for name, array in head(x=X, y=Y).items():
                np.testing.assert_array_equal(found[name], array)
        assert list(other.run({"x": X, "y": Y}, outputs="i")) == ["i"]
        with pytest.raises(dmlc.DmlcError, match="E0446"):
            other.run({"x": X, "y": Y}, outputs=["h"])
        with pytest.raises(dmlc.DmlcError, match="E0425"):
            other.run({"x": X, "y": Y[:1]})


def test_a_process_has_one_session_for_a_runner(head: dmlc.Program) -> None:
    runners._SESSIONS.clear()
    runner = head.runner()
    for _ in range(3):
        pickle.loads(pickle.dumps(runner))(x=X, y=Y)
    assert len(runners._SESSIONS) == 1
    head.runner(threads=2)(x=X, y=Y)
    assert len(runners._SESSIONS) == 2
    for n in range(2 * runners._MOST_SESSIONS):
        dmlc.compile(dmlc.Source(TEXT.replace("x + y", f"x + {n}")), target="cpu").runner()(x=X, y=Y)
    assert len(runners._SESSIONS) == runners._MOST_SESSIONS


def test_runners_in_other_processes(head: dmlc.Program) -> None:
    wanted = head(x=X, y=Y)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        for found in pool.map(bare_run, [head.runner(), head.runner(backend="numpy")]):
            for name, array in wanted.items():
                np.testing.assert_allclose(found[name], array, rtol=1e-6)


def test_a_runner_does_not_load_the_compiler(head: dmlc.Program, tmp_path: Path) -> None:
    (tmp_path / "r.pickle").write_bytes(pickle.dumps(head.runner(backend="numpy")))
    code = (
        "import pickle, sys, numpy as np; runner = pickle.load(open('r.pickle', 'rb'));"
        "runner(x=np.ones((2, 3), np.float32), y=np.ones((2, 1), np.float32));"
        "assert not {'dmlc.passes', 'dmlc.importers', 'dmlc.text', 'lark'} & set(sys.modules), sorted(sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_runner_chooses_profiles() -> None:
    program = dmlc.compile(dmlc.Source(TEXT), target="cpu", profiles={"N": (1, 2)})
    runner = pickle.loads(pickle.dumps(program.runner()))
    for n in (1, 2, 3):
        fed = {"x": np.ones((n, 3), np.float32), "y": np.zeros((n, 1), np.float32)}
        assert runner.run(fed)["p"].shape == (n, 3)


@each_row("threads", [0, -1, 1.5, "1", True])
def test_threads_are_a_number(head: dmlc.Program, threads: Any) -> None:
    with pytest.raises(dmlc.DmlcError, match="E0556"):
        head.runner(threads=threads)


def test_a_runner_needs_an_artifact(head: dmlc.Program) -> None:
    for backend in ("reference", "tpu"):
        with pytest.raises(dmlc.DmlcError, match="E0553"):
            head.runner(backend=backend)


# --- names


def test_dir_has_public_names_alone() -> None:
    names = dir(dmlc)
    modules = [name for name in names if isinstance(getattr(dmlc, name), types.ModuleType)]
    assert not [name for name in names if name.startswith("_")]
    assert set(modules) == {"std"}
    packages = {"api", "debugging", "testing", "verifying"}
    assert all(isinstance(getattr(dmlc, name), types.ModuleType) for name in packages)
    stub = (Path(dmlc.__file__).parent / "__init__.pyi").read_text(encoding="utf-8")
    declared = {line.split()[-1] for line in stub.splitlines() if line.startswith("from ")} | {"bool"}
    assert {*names, *packages} == declared


def test_a_program_prints_its_open_dims() -> None:
    """Declared or not, inside an expression too, each once; a dim that is fixed is not open."""
    text = "dim N in 1..8\nmodel m(x: f32[N, M], y: f32[2 * N, K], z: f32[K, M, 3]) -> (r) {\n    return x\n}\n"
    program = dmlc.compile(dmlc.Source(text, name="m.dml"), bind={"K": 4})
    assert "dynamic sizes: N, M\n" in str(program)
    closed = dmlc.compile(dmlc.Source(text, name="m.dml"), bind={"K": 4, "N": 1, "M": 2})
    assert "dynamic sizes: none\n" in str(closed)
