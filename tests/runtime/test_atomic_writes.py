"""Files are written whole, or not at all: kills, full disks, two compilations at once, odd outputs."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from dmlc.cli.main import main
from dmlc.diagnostics import DmlcError
from dmlc.runtime import files
from dmlc.runtime.weights import write_model

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals, limits and pipes of POSIX")


def make_source(folder: Path, fill: float, rows: int) -> Path:
    """A model ``x @ w1 @ w2`` with its weights in a file; both are full of one number."""
    folder.mkdir()
    arrays = [np.full((rows, 256), fill, np.float32), np.full((256, 64), fill, np.float32)]
    (folder / "w.bin").write_bytes(b"".join(array.tobytes() for array in arrays))
    tensors, offset = [], 0
    for name, array in zip(("w1", "w2"), arrays, strict=True):
        tensor = TensorProto(name=name, dims=array.shape, data_type=1, data_location=TensorProto.EXTERNAL)
        for key, value in (("location", "w.bin"), ("offset", offset), ("length", array.nbytes)):
            tensor.external_data.add(key=key, value=str(value))
        tensors.append(tensor)
        offset += array.nbytes
    nodes = [helper.make_node("MatMul", ["x", "w1"], ["h"]), helper.make_node("MatMul", ["h", "w2"], ["y"])]
    inputs = [helper.make_tensor_value_info("x", 1, [1, rows])]
    outputs = [helper.make_tensor_value_info("y", 1, [1, 64])]
    graph = helper.make_graph(nodes, "m", inputs, outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (folder / "big.onnx").write_bytes(model.SerializeToString())
    return folder / "big.onnx"


def fill_of(path: Path) -> float:
    """The one number in all weights: the model and its data belong together."""
    onnx.checker.check_model(path)
    loaded = onnx.load(path)
    numbers = {float(n) for t in loaded.graph.initializer for n in np.unique(numpy_helper.to_array(t))}
    assert len(numbers) == 1, numbers
    (rows,) = (t.dims[0] for t in loaded.graph.initializer if t.name == "w1")
    assert rows == (1024 if numbers == {1.0} else 1536)
    return numbers.pop()


def names(folder: Path) -> set[str]:
    """The names in a folder, with ``HASH`` for the digits of a weights file."""
    return {re.sub(r"[0-9a-f]{16}\.data$", "HASH.data", path.name) for path in folder.iterdir()}


def data_of(path: Path) -> Path:
    (found,) = path.parent.glob(f"{path.name}.*.data")
    return found


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    """Two models of different size, each with a few hundred kilobytes of weights."""
    return [make_source(tmp_path / "a", 1.0, 1024), make_source(tmp_path / "b", 2.0, 1536)]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "out.onnx"


def save(source: Path, out: Path) -> None:
    model = onnx.load(source, load_external_data=False)
    write_model(model, out, source=source.parent)


# --- kills

FORKED = """
import os, signal, sys, time
from pathlib import Path
import onnx
from dmlc.cli.main import main

def compile(source, out, ready):
    pid = os.fork()
    if not pid:
        os.write(ready, b"x")
        os._exit(main(["compile", "-q", source, "-o", out]))
    return pid

main(["compile", "-q", sys.argv[1], "-o", sys.argv[1] + ".out.onnx"])  # imports what is needed
reader, ready = os.pipe()
for line in sys.stdin:  # SOURCE OUT MICROSECONDS: compiled, and killed so long after it began (0: left alone)
    source, out, delay = line.split()
    pid = compile(source, out, ready)
    os.read(reader, 1)
    if delay != "0":
        time.sleep(int(delay) / 1e6)
        os.kill(pid, signal.SIGKILL)
    print(os.waitpid(pid, 0)[1], flush=True)
"""


@pytest.fixture
def compiler(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has everything imported and forks a compilation for each line that it gets."""
    warm = make_source(tmp_path / "warm", 1.0, 8)
    with subprocess.Popen(
        [sys.executable, "-c", FORKED, str(warm)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def ask(process: subprocess.Popen[str], source: Path, out: Path, delay: int) -> int:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{source} {out} {delay}\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def test_a_kill_leaves_the_old_model_or_the_new(
    sources: list[Path], out: Path, compiler: subprocess.Popen[str]
) -> None:
    assert ask(compiler, sources[0], out, 0) == 0
    begin = time.perf_counter()
    assert ask(compiler, sources[1], out, 0) == 0
    whole = (time.perf_counter() - begin) * 1e6
    chance = random.Random(0)
    seen = set()
    for turn in range(20):
        before = fill_of(out)
        status = ask(compiler, sources[turn % 2], out, 1 + int(chance.uniform(0.05, 1.1) * whole))
        after = fill_of(out)
        assert after in (before, 1.0 + turn % 2)
        seen.add((status, after != before))
    assert any(status for status, _ in seen)
    assert ask(compiler, sources[1], out, 0) == 0
    assert fill_of(out) == 2.0
    assert names(out.parent) == {"out.onnx", "out.onnx.HASH.data"}  # files that the killed ones left are gone


@pytest.mark.parametrize("first", [0, 1])
def test_every_moment_between_two_changes_of_the_folder(
    first: int, sources: list[Path], out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model at each rename and unlink, whatever comes next."""
    save(sources[first], out)
    seen: list[float] = []

    def watched(door: object, name: str) -> None:
        real = getattr(door, name)

        def look(*args: object, **options: object) -> object:
            seen.append(fill_of(out))
            result = real(*args, **options)
            seen.append(fill_of(out))
            return result

        monkeypatch.setattr(door, name, look)

    watched(Path, "replace")
    watched(Path, "unlink")
    save(sources[1 - first], out)
    assert len(seen) >= 6
    assert seen == sorted(seen, reverse=first == 1)  # first the old, then the new
    assert {seen[0], seen[-1]} == {1.0, 2.0}
    other = out.with_name("fresh.onnx")
    monkeypatch.undo()
    save(sources[1 - first], other)
    assert data_of(out).read_bytes() == data_of(other).read_bytes()


@pytest.mark.parametrize("moment", [1, 2])
def test_after_a_failure_at_any_rename_model_and_data_belong_together(
    moment: int, sources: list[Path], out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(sources[0], out)
    replace, calls = Path.replace, 0

    def fail(self: Path, other: Path) -> Path:
        nonlocal calls
        calls += 1
        if calls == moment:
            raise OSError(5, "Input/output error")
        return replace(self, other)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", fail)
        with pytest.raises(DmlcError, match="E0421"):
            save(sources[1], out)
    assert fill_of(out) == 1.0
    assert names(out.parent) == {"out.onnx", "out.onnx.HASH.data"}
    save(sources[1], out)
    assert fill_of(out) == 2.0


def test_the_same_model_again_has_the_same_files(sources: list[Path], out: Path) -> None:
    save(sources[0], out)
    before = {path.name: path.read_bytes() for path in out.parent.iterdir()}
    save(sources[0], out)
    assert {path.name: path.read_bytes() for path in out.parent.iterdir()} == before


def test_weights_of_other_models_stay(sources: list[Path], out: Path) -> None:
    """A file is old weights of a model only if its name is the model's with digits and ``.data``."""
    digits = "0123456789abcdef"
    others = {"out.onnx.data", f"out.onnx.{digits[:-1]}.data", f"out.onnx.{digits.upper()}.data", f"out.{digits}.data"}
    others |= {f"out.onnx.{digits}.dat", f"out.onnx.onnx.{digits}.data", f"out_onnx.{digits}.data"}
    for name in others:
        out.with_name(name).write_bytes(b"others")
    save(sources[0], out)
    save(sources[1], out)
    assert names(out.parent) == {
        "out.onnx",
        "out.onnx.HASH.data",
        *[re.sub(f"{digits}.data$", "HASH.data", n) for n in others],
    }
    assert all(out.with_name(name).read_bytes() == b"others" for name in others)
    assert fill_of(out) == 2.0


# --- two at once

TWICE = """
import os, sys
from pathlib import Path
import onnx
from dmlc.runtime.weights import write_model

source, out = Path(sys.argv[1]), Path(sys.argv[2])
model = onnx.load(source, load_external_data=False)
for _ in range(int(sys.argv[3])):
    write_model(model, out, source=source.parent)
"""


def test_two_compilations_into_one_path_do_not_mix(sources: list[Path], out: Path) -> None:
    arguments = [[sys.executable, "-c", TWICE, str(source), str(out), "15"] for source in sources]
    both = [subprocess.Popen(each, stderr=subprocess.PIPE, text=True) for each in arguments]
    for process in both:
        error = process.communicate()[1]
        assert process.returncode == 0, error
    assert fill_of(out) in (1.0, 2.0)
    assert names(out.parent) == {"out.onnx", "out.onnx.HASH.data"}


def test_a_compilation_waits_for_another_in_its_folder(sources: list[Path], out: Path) -> None:
    import fcntl

    descriptor = os.open(out.parent, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    argv = [sys.executable, "-c", TWICE, str(sources[0]), str(out), "1"]
    with subprocess.Popen(argv) as process:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(timeout=2)
        assert names(out.parent) == set()
        os.close(descriptor)
        assert process.wait() == 0
    assert fill_of(out) == 1.0


def test_a_folder_that_has_no_locks_is_written(sources: list[Path], out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import fcntl

    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    save(sources[0], out)
    assert fill_of(out) == 1.0


# --- disks and outputs

LIMITED = """
import resource, sys
from dmlc.cli.main import main
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
sys.exit(main(sys.argv[2:]))
"""


def test_a_limit_on_file_sizes(sources: list[Path], out: Path) -> None:
    save(sources[0], out)
    before = {path.name: path.read_bytes() for path in out.parent.iterdir()}
    argv = [sys.executable, "-c", LIMITED, "100000", "compile", str(sources[1]), "-o", str(out)]
    done = subprocess.run(argv, capture_output=True, text=True)
    assert done.returncode == 2
    assert "error[E0421]: cannot write" in done.stderr
    assert "file too large" in done.stderr
    assert {path.name: path.read_bytes() for path in out.parent.iterdir()} == before


@pytest.mark.parametrize(
    "error", [(28, "No space left on device"), (30, "Read-only file system"), (122, "Disk quota exceeded")]
)
def test_a_full_or_read_only_disk(
    error: tuple[int, str],
    sources: list[Path],
    out: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    save(sources[0], out)
    real = Path.open

    def refuse(self: Path, mode: str = "r", *args: object, **options: object) -> object:
        if "x" in mode:
            raise OSError(*error)
        return real(self, mode, *args, **options)  # type: ignore[call-overload]

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", refuse)
        for argv in (["-o", str(out)], ["--weights", "inline", "-o", str(out)], ["--emit", "numpy", "-o", f"{out}.py"]):
            assert main(["compile", "-q", str(sources[1]), *argv]) == 2
            told = capsys.readouterr().err
            assert "error[E0421]" in told
            assert error[1].lower() in told
    assert fill_of(out) == 1.0
    assert names(out.parent) == {"out.onnx", "out.onnx.HASH.data"}


def test_a_full_device(tmp_path: Path) -> None:
    if not Path("/dev/full").is_char_device():
        pytest.skip("no /dev/full here")
    with pytest.raises(DmlcError, match="no space left"):
        files.write_bytes(Path("/dev/full"), b"x" * 10)


def test_outputs_that_are_no_plain_file(sources: list[Path], out: Path) -> None:
    os.mkfifo(out)
    with pytest.raises(DmlcError, match="nobody reads the pipe"):
        save(sources[0], out)
    reader = os.open(out, os.O_RDONLY | os.O_NONBLOCK)
    files.write_bytes(out, b"hello")
    assert os.read(reader, 10) == b"hello"
    os.close(reader)
    out.unlink()
    save(sources[0], out)
    data = data_of(out)
    data.unlink()
    data.mkdir()
    with pytest.raises(DmlcError, match="is a directory"):
        save(sources[0], out)
    assert names(out.parent) == {"out.onnx", "out.onnx.HASH.data"}


def test_hard_links_of_what_is_replaced_keep_what_they_had(sources: list[Path], out: Path) -> None:
    save(sources[0], out)
    other = {}
    for path in (out, data_of(out)):
        link = out.parent.parent / path.name
        link.hardlink_to(path)
        other[link] = link.read_bytes()
    save(sources[1], out)
    assert fill_of(out) == 2.0
    assert {link: link.read_bytes() for link in other} == other


def test_long_names(sources: list[Path], out: Path) -> None:
    long = out.with_name("o" * 228 + ".onnx")
    save(sources[0], long)
    assert fill_of(long) == 1.0
    files.write_bytes(out.with_name("é" * 127), b"x")
