"""Models are written with their weights inside, beside or where they are; whole or not at all."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

from dmlc.codegen.artifact import Artifact, Signature
from dmlc.diagnostics import Diagnostic, DmlcError
from dmlc.ir import TensorType
from dmlc.ir.dtype import f32
from dmlc.runtime import weights
from dmlc.runtime.session import Session
from dmlc.runtime.weights import write_model
from tests.rows import each_row

#: The part between the name of a model and the suffix of its weights.
DIGITS = r"[0-9a-f]{16}\.data$"
SMALL = np.arange(4, dtype=np.float32)
LARGE = np.arange(1 << 16, dtype=np.float32).reshape(4, -1)
INSIDE = np.full(4, 0.5, np.float32)


def outside(name: str, array: np.ndarray, offset: int, location: str = "w.bin") -> TensorProto:
    dtype = helper.np_dtype_to_tensor_dtype(array.dtype)
    tensor = TensorProto(name=name, dims=array.shape, data_type=dtype, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", offset), ("length", array.nbytes), ("checksum", "abc")):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def model_of(*initializers: TensorProto) -> ModelProto:
    """``y`` is x times the sum of each initializer's first element."""
    nodes = [helper.make_node("Constant", [], ["at"], value=numpy_helper.from_array(np.zeros(1, np.int64)))]
    for tensor in initializers:
        nodes += [
            helper.make_node("Constant", [], [f"{tensor.name}_flat"], value_ints=[-1]),
            helper.make_node("Reshape", [tensor.name, f"{tensor.name}_flat"], [f"{tensor.name}_row"]),
            helper.make_node("ReduceMax", [f"{tensor.name}_row"], [f"{tensor.name}_most"], keepdims=1),
        ]
    nodes.append(helper.make_node("Sum", ["x", *[f"{t.name}_most" for t in initializers]], ["y"]))
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "m", infos[:1], infos[1:], list(initializers), doc_string="says")
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="test")
    helper.set_model_props(model, {"key": "value"})
    return model


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "w.bin").write_bytes(SMALL.tobytes() + b"\xff" * 84 + LARGE.tobytes())
    return folder


def model() -> ModelProto:
    return model_of(
        outside("small", SMALL, 0), numpy_helper.from_array(INSIDE, "inside"), outside("large", LARGE, 100),
        outside("again", SMALL, 0),
    )  # fmt: skip


def run(path: Path) -> float:
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return float(session.run(None, {"x": np.zeros(1, np.float32)})[0][0])


WANT = 3 + 0.5 + (1 << 16) - 1 + 3


def places(path: Path) -> dict[str, dict[str, str]]:
    loaded = onnx.load(path, load_external_data=False)
    return {t.name: {e.key: e.value for e in t.external_data} for t in loaded.graph.initializer}


def files(folder: Path) -> set[str]:
    """The names in a folder, with ``HASH`` for the digits of a weights file; those are of its content."""
    for path in folder.glob("*.data"):
        if path.is_file() and re.search(DIGITS, path.name):
            assert hashlib.sha256(path.read_bytes()).hexdigest()[:16] in path.name
    return {re.sub(DIGITS, "HASH.data", path.name) for path in folder.iterdir()}


def data_of(path: Path) -> Path:
    (found,) = path.parent.glob(f"{path.name}.*.data")
    return found


def refused(model: ModelProto, path: Path, source: Path | None, **options: object) -> tuple[Diagnostic, int]:
    with pytest.raises(DmlcError) as caught:
        write_model(model, path, source=source, **options)  # type: ignore[arg-type]
    (diagnostic,) = caught.value.diagnostics
    return diagnostic, caught.value.exit_code


# --- placements


def test_in_the_folder_of_the_source_weights_stay_where_they_are(source: Path) -> None:
    write_model(model(), source / "out.onnx", source=source)
    assert files(source) == {"w.bin", "out.onnx"}
    assert onnx.load(source / "out.onnx", load_external_data=False) == model()
    assert run(source / "out.onnx") == WANT


def test_elsewhere_they_are_copied_to_a_file_beside_the_model(source: Path, tmp_path: Path) -> None:
    given = model()
    before = given.SerializeToString()
    write_model(given, tmp_path / "out.onnx", source=source)
    assert given.SerializeToString() == before
    assert files(tmp_path) == {"models", "out.onnx", "out.onnx.HASH.data"}
    name = data_of(tmp_path / "out.onnx").name
    assert places(tmp_path / "out.onnx") == {
        "small": {"location": name, "offset": "0", "length": "16"},
        "inside": {},
        "large": {"location": name, "offset": "4096", "length": str(LARGE.nbytes)},
        "again": {"location": name, "offset": "0", "length": "16"},
    }
    assert (tmp_path / name).stat().st_size == 4096 + LARGE.nbytes
    assert run(tmp_path / "out.onnx") == WANT
    loaded = onnx.load(tmp_path / "out.onnx")
    arrays = {t.name: numpy_helper.to_array(t) for t in loaded.graph.initializer}
    for name, array in (("small", SMALL), ("large", LARGE), ("again", SMALL), ("inside", INSIDE)):
        np.testing.assert_array_equal(arrays[name], array)
    assert (loaded.graph.doc_string, loaded.producer_name, loaded.metadata_props[0].key) == ("says", "test", "key")


def test_all_but_the_weights_is_the_same(source: Path, tmp_path: Path) -> None:
    write_model(model(), tmp_path / "out.onnx", source=source)
    got = onnx.load(tmp_path / "out.onnx", load_external_data=False)
    want = model()
    for a, b in zip(got.graph.initializer, want.graph.initializer, strict=True):
        for tensor in (a, b):
            tensor.ClearField("external_data")
    assert got == want


def test_inline(source: Path, tmp_path: Path) -> None:
    write_model(model(), tmp_path / "out.onnx", source=source, weights="inline")
    assert files(tmp_path) == {"models", "out.onnx"}
    assert set(map(len, places(tmp_path / "out.onnx").values())) == {0}
    assert run(tmp_path / "out.onnx") == WANT


def test_a_copy_in_the_folder_of_the_source(source: Path) -> None:
    write_model(model(), source / "out.onnx", source=source, weights="copy")
    assert files(source) == {"w.bin", "out.onnx", "out.onnx.HASH.data"}
    (source / "w.bin").unlink()
    assert run(source / "out.onnx") == WANT


def test_the_folder_of_the_source_by_another_name(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(source)
    write_model(model(), Path("out.onnx"), source=source / ".." / "models")
    assert files(source) == {"w.bin", "out.onnx"}


def test_a_reference_from_another_folder_is_refused(source: Path, tmp_path: Path) -> None:
    diagnostic, exit_code = refused(model(), tmp_path / "out.onnx", source, weights="reference")
    assert (diagnostic.code.id, exit_code) == ("E0436", 1)
    assert files(tmp_path) == {"models"}


@each_row("placement", [None, "inline", "copy", "reference"])
def test_a_model_without_files_of_weights_is_one_file(placement: str | None, tmp_path: Path) -> None:
    plain = model_of(numpy_helper.from_array(INSIDE, "inside"))
    write_model(plain, tmp_path / "out.onnx", source=None, weights=placement)  # type: ignore[arg-type]
    assert files(tmp_path) == {"out.onnx"}
    assert onnx.load(tmp_path / "out.onnx") == plain


def test_weights_in_graphs_inside_nodes_and_in_nodes(source: Path, tmp_path: Path) -> None:
    inner = helper.make_graph([], "inner", [], [], [outside("deep", SMALL, 0)])
    outer = model_of(numpy_helper.from_array(INSIDE, "inside"))
    outer.graph.node.append(helper.make_node("If", ["c"], [], then_branch=inner, else_branch=inner))
    outer.graph.node.append(helper.make_node("Constant", [], ["k"], value=outside("", LARGE, 100)))
    write_model(outer, tmp_path / "out.onnx", source=source)
    loaded = onnx.load(tmp_path / "out.onnx", load_external_data=False)
    branch, constant = loaded.graph.node[-2], loaded.graph.node[-1]
    for held in (*[a.g.initializer[0] for a in branch.attribute], constant.attribute[0].t):
        assert held.external_data[0].value == data_of(tmp_path / "out.onnx").name
    write_model(outer, tmp_path / "out.onnx", source=source, weights="inline")
    loaded = onnx.load(tmp_path / "out.onnx", load_external_data=False)
    np.testing.assert_array_equal(numpy_helper.to_array(loaded.graph.node[-1].attribute[0].t), LARGE)
    np.testing.assert_array_equal(numpy_helper.to_array(loaded.graph.node[-2].attribute[0].g.initializer[0]), SMALL)


# --- limits


def test_too_large_for_one_file(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "_MOST_INLINE", 100_000)
    diagnostic, exit_code = refused(model(), tmp_path / "out.onnx", source, weights="inline")
    assert (diagnostic.code.id, exit_code) == ("E0435", 1)
    assert files(tmp_path) == {"models"}


def test_data_inside_that_is_too_large_goes_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "_MOST_INLINE", 100_000)
    given = model_of(numpy_helper.from_array(LARGE, "large"), numpy_helper.from_array(INSIDE, "inside"))
    write_model(given, tmp_path / "out.onnx", source=None)
    assert places(tmp_path / "out.onnx")["large"]["location"] == data_of(tmp_path / "out.onnx").name
    assert places(tmp_path / "out.onnx")["inside"] == {}
    assert (tmp_path / "out.onnx").stat().st_size < 2000
    assert run(tmp_path / "out.onnx") == 0.5 + (1 << 16) - 1
    assert given.graph.initializer[0].HasField("raw_data")


def test_references_stay_beside_spilled_data(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "_MOST_INLINE", 100_000)
    given = model_of(numpy_helper.from_array(LARGE, "large"), outside("small", SMALL, 0))
    write_model(given, source / "out.onnx", source=source)
    assert places(source / "out.onnx")["small"]["location"] == "w.bin"
    assert places(source / "out.onnx")["large"]["location"] == data_of(source / "out.onnx").name
    assert run(source / "out.onnx") == (1 << 16) - 1 + 3


SPARSE = """
import sys
from pathlib import Path
from onnx import ModelProto
from dmlc.importers.weights import stored
from dmlc.runtime.weights import write_model

folder, out = Path(sys.argv[1]), Path(sys.argv[2])
model = ModelProto.FromString((folder / "model.onnx").read_bytes())
held = [stored(tensor, folder) for tensor in model.graph.initializer]
assert sum(tensor.nbytes for tensor in held) >= int(sys.argv[3])
write_model(model, out, source=folder)
# getrusage would count what the parent had when it forked
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(int(peak.split()[1]) // 1024)
"""


def peak_mib(folder: Path, out: Path, size: int) -> int:
    """The peak memory of a process that reads the model and writes it."""
    tensor = TensorProto(name="w", dims=[size], data_type=TensorProto.INT8, data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="w.bin")
    with (folder / "w.bin").open("wb") as file:
        file.truncate(size)
    (folder / "model.onnx").write_bytes(model_of(tensor).SerializeToString())
    done = subprocess.run(
        [sys.executable, "-c", SPARSE, str(folder), str(out), str(size)], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="/proc, sparse files")
def test_memory_is_constant(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    reference = peak_mib(tmp_path, tmp_path / "out.onnx", 4 << 30)
    copy = peak_mib(tmp_path, tmp_path / "other" / "out.onnx", 128 << 20)
    assert data_of(tmp_path / "other" / "out.onnx").stat().st_size == 128 << 20
    assert reference < 300
    assert copy < reference + 32


# --- whole or not at all


def test_what_is_read_is_never_written(source: Path) -> None:
    name = f"out.onnx.{'0' * 16}.data"
    (source / name).write_bytes((source / "w.bin").read_bytes())
    given = model_of(outside("small", SMALL, 0, name))
    write_model(given, source / "out.onnx", source=source, weights="copy")
    assert (source / name).read_bytes() == (source / "w.bin").read_bytes()  # not removed as weights of out.onnx
    assert run(source / "out.onnx") == 3
    diagnostic, exit_code = refused(model(), source / "w.bin", source)
    assert (diagnostic.code.id, exit_code) == ("E0421", 2)
    assert "weight small of the source is in it" in diagnostic.message
    assert refused(model(), source / "w.bin", source, weights="inline")[0].code.id == "E0421"
    write_model(given, source / "out.onnx", source=source)  # a reference leaves it alone
    assert (source / name).exists()


def test_a_broken_source_writes_nothing(source: Path, tmp_path: Path) -> None:
    cut = model_of(outside("small", SMALL, 0), outside("large", LARGE, 104))
    assert refused(cut, tmp_path / "out.onnx", source)[0].code.id == "E0434"
    missing = model_of(outside("small", SMALL, 0, "no.bin"))
    assert refused(missing, tmp_path / "out.onnx", source)[0].code.id == "E0433"
    away = model_of(outside("small", SMALL, 0, "../models/w.bin"))
    for placement in (None, "inline", "copy", "reference"):
        assert refused(away, source / "out.onnx", source, weights=placement)[0].code.id == "E0432"
    assert refused(model(), tmp_path / "out.onnx", None)[0].code.id == "E0432"
    assert files(tmp_path) == {"models"}
    assert files(source) == {"w.bin"}


@pytest.mark.parametrize("failing", [1, 2])
def test_a_failure_leaves_both_files_as_they_were(
    failing: int, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, data = tmp_path / "out.onnx", tmp_path / f"out.onnx.{'0' * 16}.data"
    out.write_bytes(b"model before")
    data.write_bytes(b"data before")
    calls = 0
    replace = Path.replace

    def fail(self: Path, other: Path) -> Path:
        nonlocal calls
        calls += 1
        if calls == failing:
            raise OSError(28, "No space left on device")
        return replace(self, other)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", fail)
        diagnostic, exit_code = refused(model(), out, source)
    assert (diagnostic.code.id, exit_code) == ("E0421", 2)
    assert out.read_bytes() == b"model before"
    assert data.read_bytes() == b"data before"
    data.unlink()
    assert files(tmp_path) == {"models", "out.onnx"}
    data.write_bytes(b"data before")
    write_model(model(), out, source=source)
    assert run(out) == WANT
    assert files(tmp_path) == {"models", "out.onnx", "out.onnx.HASH.data"}


def test_a_failure_of_a_first_write_leaves_nothing(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Path.replace

    def fail(self: Path, other: Path) -> Path:
        if Path(other).suffix == ".onnx":
            raise OSError(13, "Permission denied")
        return replace(self, other)

    monkeypatch.setattr(Path, "replace", fail)
    assert refused(model(), tmp_path / "out.onnx", source)[0].message.endswith("permission denied")
    assert files(tmp_path) == {"models"}


def test_where_nothing_can_be_written(source: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "dir.onnx").mkdir()
    for path in (tmp_path / "no" / "out.onnx", tmp_path / "file" / "out.onnx", tmp_path / "dir.onnx", tmp_path / "a\0"):
        diagnostic, exit_code = refused(model(), path, source)
        assert (diagnostic.code.id, exit_code) == ("E0421", 2)
    assert files(tmp_path) == {"models", "file", "dir.onnx"}


@pytest.mark.skipif(os.name == "nt", reason="modes, links and devices of POSIX")
def test_modes_links_and_devices(source: Path, tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "out.onnx").symlink_to(real / "there.onnx")
    (real / "there.onnx").write_bytes(b"")
    (real / "there.onnx").chmod(0o640)
    assert "symbolic link to" in refused(model(), tmp_path / "out.onnx", source)[0].message
    assert (tmp_path / "out.onnx").is_symlink()
    assert files(real) == {"there.onnx"}
    write_model(model(), real / "there.onnx", source=source)
    data = data_of(real / "there.onnx")
    assert data.stat().st_mode & 0o777 == 0o640
    (tmp_path / "precious").write_bytes(b"precious")
    data.unlink()
    data.symlink_to(tmp_path / "precious")
    write_model(model(), real / "there.onnx", source=source)  # the link is replaced
    assert (tmp_path / "precious").read_bytes() == b"precious"
    assert not data.is_symlink()
    assert (real / "there.onnx").stat().st_mode & 0o777 == 0o640
    assert run(real / "there.onnx") == WANT
    write_model(model(), Path(os.devnull), source=source)  # inline, as nothing lies beside a device
    assert refused(model(), Path(os.devnull), source, weights="copy")[0].code.id == "E0421"
    assert refused(model(), Path(os.devnull), source, weights="reference")[0].code.id == "E0436"


# --- running from memory


def test_a_session_reads_weights_from_the_folder(source: Path) -> None:
    signature = Signature("m", (("x", TensorType(f32, (1,))),), (("y", TensorType(f32, (1,))),))
    session = Session(Artifact("onnx", model(), signature, folder=source), "cpu")
    assert session.run({"x": np.zeros(1, np.float32)})["y"].tolist() == [WANT]
    with pytest.raises(DmlcError, match="E0554"):
        Session(Artifact("onnx", model(), signature), "cpu")
