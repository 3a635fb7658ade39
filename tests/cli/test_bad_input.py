"""Bad input: the right exit code, a coded message, no traceback, nothing written."""

from __future__ import annotations

import os
import random
from pathlib import Path

import numpy as np
import pytest

from dmlc.cli.main import main
from tests.command_line import Refused
from tests.rows import each_row

GOOD = "model m(x: f32[3]) -> (y) {\n    y = exp(x)\n    return y\n}\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    inside = tmp_path / "inside"
    inside.mkdir()
    monkeypatch.chdir(inside)
    return inside


def program(text: str | bytes, name: str = "m.dml") -> str:
    Path(name).write_bytes(text if isinstance(text, bytes) else text.encode())
    return name


def body(line: str, returned: str = "y") -> str:
    return f"model m(x: f32[4, 3]) -> (y) {{\n    {line}\n    return {returned}\n}}\n"


@each_row("verb", ["compile", "check", "fmt", "inspect", "explain"])
@each_row(
    "data",
    [
        b"",
        b"\n\n",
        b"\x00\x01\x02\xff" * 50,
        b"\xff\xfem\x00o\x00",
        b"model m(x: f32[3]) -> (y) { \xe9 }",
        random.Random(0).randbytes(4000),
        b"PK\x03\x04" + b"\0" * 100,
    ],
    ids=["empty", "blank", "binary", "utf-16", "latin-1", "random", "zip"],
)
def test_files_that_are_no_program(refused: Refused, verb: str, data: bytes) -> None:
    if verb == "fmt" and not data.strip():
        return  # nothing laid out is nothing
    refused(1, "E0", verb, program(data))


@each_row(
    ("line", "code"),
    [
        ("y = argmx(x)", "E02"),
        ("y = exp(z)", "E02"),
        ("y = exp(x) + y", "E02"),
        ("y = argmax(x, axes=[2])", "E0301"),
        ("y = argmax(x, axes=[0, -2])", "E0302"),
        ("y = reduce_sum(x, axes=[])", "E0303"),
        ("y, _ = top_k(x, k=0)", "E0316"),
        ("y, _ = top_k(x, k=4)", "E0316"),
        ("y = x & x", "E0309"),
        ("y = x + (x as f16)", "E0310"),
        ("y = x + 1e300", "E0311"),
        ("y = x + full(shape=[5], value=1, dtype=f32)", "E0313"),
        ("y = x x", "E01"),
        ("y = (x", "E01"),
    ],
)
def test_mistakes_in_programs(refused: Refused, line: str, code: str) -> None:
    err = refused(1, code, "compile", program(body(line)))
    assert "--> m.dml:2:" in err or code == "E01"


def test_cyclic_definitions(refused: Refused) -> None:
    cycle = "def a(x) {\n    return b(x)\n}\ndef b(x) {\n    return a(x)\n}\n"
    refused(1, "E02", "check", program(cycle + body("y = a(x)")))
    refused(1, "E02", "check", program("def a(x) {\n    return a(x)\n}\n" + body("y = a(x)")))


@pytest.mark.parametrize(("opening", "closing"), [("(", ")"), ("[", "]"), ("-", ""), ("!", ""), ("exp(", ")")])
def test_nesting_without_end(refused: Refused, opening: str, closing: str) -> None:
    depth = 100_000 if opening == "(" else 20_000
    refused(1, "E01", "check", program(body(f"y = {opening * depth}x{closing * depth}")))
    refused(1, "E01", "check", program(body(f"y = {opening * depth}")))


def test_a_program_of_50_megabytes(refused: Refused) -> None:
    line = "    y = exp(x) # " + "x" * 83 + "\n"
    refused(1, "E01", "compile", program(GOOD.replace("    return", line * 500_000 + "    return")))


def test_two_models(refused: Refused) -> None:
    refused(1, "E02", "check", program(GOOD + GOOD))
    two = program(GOOD + GOOD.replace("model m", "model n"))
    assert "--model" in refused(1, "E02", "compile", two)
    assert main(["check", two, "--model", "n"]) == 0


# --- files that programs load


def loading(path: str) -> str:
    return program(f'const w: f32[3] = load("{path}")\n' + GOOD.replace("exp(x)", "x * w"))


def test_loads_that_fail(refused: Refused, folder: Path) -> None:
    np.save("good.npy", np.arange(3, dtype=np.float32))
    assert main(["check", loading("good.npy")]) == 0
    data = Path("good.npy").read_bytes()
    Path("cut.npy").write_bytes(data[:-5])
    Path("empty.npy").write_bytes(b"")
    np.save("objects.npy", np.array([{}] * 3, dtype=object), allow_pickle=True)
    np.savez("two.npz", a=np.zeros(3))
    np.save(folder.parent / "outside.npy", np.arange(3, dtype=np.float32))
    Path("link.npy").symlink_to(folder.parent / "outside.npy")
    outside = str(folder.parent / "outside.npy").replace("\\", "/")
    for path in (
        "missing.npy", "cut.npy", "empty.npy", "objects.npy", "m.dml", ".",
        "../outside.npy", outside, "link.npy", "a\\0b.npy",
    ):  # fmt: skip
        refused(1, "E0", "compile", loading(path))
    program(Path("m.dml").read_text().replace('load("a\\0b.npy")', 'load("two.npz", "b")'))
    refused(1, "E04", "compile", "m.dml")


# --- files of the command line


def test_sources_that_cannot_be_opened(refused: Refused, folder: Path) -> None:
    program(GOOD)
    assert 'did you mean "m.dml"?' in refused(2, "E0420", "compile", "n.dml")
    Path("bert_small.onnx").touch()
    assert "did you mean" not in refused(2, "E0420", "check", "bert_large.onnx"), "another file is meant"
    for name in (".", "no/such.dml", "m.dml/below.dml", "missing.onnx"):
        for verb in ("check", "run", "inspect", "explain", "fmt"):
            refused(2, "E0420", verb, name)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions bind no one here")
def test_sources_that_may_not_be_read(refused: Refused, folder: Path) -> None:
    program(GOOD)
    Path("m.dml").chmod(0)
    code = main(["check", "m.dml"])
    Path("m.dml").chmod(0o600)
    assert code == 2


def test_outputs_that_cannot_be_written(refused: Refused, folder: Path) -> None:
    program(GOOD)
    Path("file").write_text("")
    Path("folder.onnx").mkdir()
    for output in ("no/such/m.onnx", "file/m.onnx", "folder.onnx"):
        refused(2, "E0421", "compile", "m.dml", "-o", output)
    refused(2, "E0421", "run", "m.dml", "--random", "0", "-o", "no/such/out.npz")
    assert list(Path("folder.onnx").iterdir()) == []


def test_inputs_that_cannot_be_opened(refused: Refused) -> None:
    program(GOOD)
    np.save("x.npy", np.zeros(3, np.float32))
    Path("cut.npy").write_bytes(Path("x.npy").read_bytes()[:-5])
    for place in ("missing.npy", ".", "missing.npz:key", "x.npy/below"):
        refused(2, "E0420", "run", "m.dml", "--input", f"x={place}")
    for place in ("cut.npy", "m.dml"):
        refused(1, "E0422", "run", "m.dml", "--input", f"x={place}")


def test_several_errors_are_told_together(refused: Refused) -> None:
    text = "model m(x: f32[4]) -> (a, b) {\n    a = argmax(x, axes=[1])\n    b = exp(x, axis=0)\n    return a, b\n}\n"
    err = refused(1, "E0301", "check", program(text))
    assert err.count("error[") == 2
