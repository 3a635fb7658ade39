"""Names of files and of resources: no two data files are one, and every system takes them."""

from __future__ import annotations

import json
import re
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import onnx
import pytest
from dxdispatch_check import outputs_of, program_of
from onnx import helper, numpy_helper

import dmlc
from dmlc.cli.main import main
from tests.rows import each_row

#: Base names that Windows keeps for devices, with any suffix and in any case.
DEVICES = ["aux", "CON", "nul", "Prn", "com1", "LPT9", "aux.weight", "nul.npy"]


def model_of(inputs: list[str], constants: list[str], folder: str = "g") -> onnx.ModelProto:
    """Each input is doubled into ``NAME+``; each constant of 20 elements is a result."""
    nodes = [helper.make_node("Add", [name, name], [f"{name}+"]) for name in inputs]
    stored = [numpy_helper.from_array(np.arange(20, dtype=np.float32) + i, n) for i, n in enumerate(constants)]
    outputs = [helper.make_tensor_value_info(f"{name}+", 1, [3]) for name in inputs]
    outputs += [helper.make_tensor_value_info(name, 1, [20]) for name in constants]
    graph = helper.make_graph(
        nodes, folder, [helper.make_tensor_value_info(name, 1, [3]) for name in inputs], outputs, stored
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def paths(document: dict[str, Any]) -> list[str]:
    initial = [row["initialValues"] for row in document["resources"].values()]
    read = [values["sourcePath"] for values in initial if isinstance(values, dict) and "sourcePath" in values]
    return read + [c["targetPath"] for c in document["commands"] if c["type"] == "writeFile"]


NAMES = ["a/b", "a_b", "A_B", "a:b", "constant", "out", "out/y", "入力", "é", *DEVICES, "con.", ".", "..", "x" * 300]


@each_row("turn", range(len(NAMES)))
def test_data_files_differ(turn: int) -> None:
    """In some turn each name is that of an input, and each other one that of a constant beside it."""
    turned = [*NAMES[turn:], *NAMES[:turn]]
    middle = len(NAMES) // 2
    artifact = dmlc.compile(model_of(turned[:middle], turned[middle:])).artifact("dxdispatch")
    found = [path.lower() for path in paths(json.loads(artifact.payload))]
    assert len(set(found)) == len(found) == 2 * len(NAMES)
    for path in found:
        parts = PurePosixPath(path).parts
        assert parts[0] == "g.dxdispatch"
        for part in parts[1:]:
            assert re.fullmatch(r"[a-z0-9._-]{1,120}", part)
            assert part.split(".")[0] not in ("aux", "con", "nul", "prn", "com1", "lpt9")


def test_a_constant_leaves_the_file_of_an_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mine = np.array([5, 6, 7], np.float32)
    Path("m.dxdispatch").mkdir()
    np.save("m.dxdispatch/a_b.npy", mine)
    for inputs, constants in ((["a_b"], ["a/b"]), (["a_b"], ["a:b", "A_B"]), (["z"], ["a_b"])):
        dmlc.compile(model_of(inputs, constants)).save("m.dxdispatch.json")
        np.testing.assert_array_equal(np.load("m.dxdispatch/a_b.npy"), mine)


@pytest.mark.parametrize("name", ["größe", "モデル", "aux", "con", "nul.v2", "é"])
def test_folders_are_of_ascii_and_are_no_devices(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    dmlc.compile(model_of(["x"], ["k"])).save(f"{name}.dxdispatch.json")
    document = json.loads(Path(f"{name}.dxdispatch.json").read_text("utf-8"))
    for path in paths(document):
        assert path.isascii()
        assert path.split(".")[0].lower() not in ("aux", "con", "nul")
    assert all(Path(path).exists() for path in paths(document) if "/out/" not in path)


def test_models_of_different_names_have_different_folders(tmp_path: Path) -> None:
    program = dmlc.compile(model_of(["x"], []))
    for name in ("größe", "grüße", "gr__e", "grö e"):
        program.save(tmp_path / f"{name}.dxdispatch.json")
    assert len([path for path in tmp_path.iterdir() if path.is_dir()]) == 4
    assert (tmp_path / "gr__e.dxdispatch").is_dir()


# --- resources


@each_row(
    "body",
    [
        "y = reduce_sum(x) as i32",
        "s = x * x\n    y = s as i16",
        "s = x * x\n    y = reshape(s, shape=[6])",
        "s = transpose(x * x)\n    y = transpose(s)",
        "y = x",
        "y = reshape(x, shape=[6])",
        "y = full(shape=[3], value=2, dtype=i64)",
        "y = iota(length=5, dtype=i64) as i32",
    ],
)
def test_results_are_printed_and_written_under_their_names(body: str) -> None:
    program = program_of(f"model m(x: i64[2, 3]) -> (y, z) {{\n    {body}\n    z = y\n    return y, z\n}}")
    commands = json.loads(program.artifact("dxdispatch").payload)["commands"]
    assert [c["resource"] for c in commands if c["type"] == "print"] == ["y", "z"]
    assert [c["resource"] for c in commands if c["type"] == "writeFile"] == ["y", "z"]
    feeds = {"x": np.arange(-3, 3).reshape(2, 3) * 2**30}
    wanted = program.run(feeds, backend="reference")
    found = outputs_of(program, feeds)
    for name in ("y", "z"):
        np.testing.assert_array_equal(found[name], np.atleast_1d(wanted[name]))


def test_a_result_keeps_its_name_beside_an_intermediate_tensor_of_another_case() -> None:
    text = "model m(x: f32[2]) -> (t, constant, T) {\n    T = exp(x)\n    t = T + x * x\n    constant = t + 1\n"
    commands = json.loads(program_of(f"{text}    return t, constant, T\n}}").artifact("dxdispatch").payload)["commands"]
    assert [c["resource"] for c in commands if c["type"] == "writeFile"] == ["t", "constant", "T"]


def test_only_small_results_are_printed() -> None:
    text = "model m(x: f32[8, 8]) -> (small, large) {\n    return exp(x), concat(x, x, axis=0)\n}"
    commands = json.loads(program_of(text).artifact("dxdispatch").payload)["commands"]
    assert [c["resource"] for c in commands if c["type"] == "print"] == ["small"]
    assert [c["resource"] for c in commands if c["type"] == "writeFile"] == ["small", "large"]


# --- notes


@pytest.mark.parametrize("output", ["-", "my.dxdispatch.json", "sub/größe.dxdispatch.json"])
@pytest.mark.parametrize("more", [[], ["--dry-run"]], ids=["written", "dry"])
def test_notes_name_the_files_in_the_document(
    output: str, more: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sub").mkdir()
    onnx.save(model_of(["x", "b"], ["k"]), "m.onnx")
    command = ["compile", "m.onnx", "--emit", "dxdispatch", "-o", output]
    assert main([*command, *more]) == 0
    told = capfd.readouterr()
    notes = [line for line in told.err.splitlines() if line.startswith("note: ")]
    if more:
        assert main(command) == 0
        told = capfd.readouterr()
        assert [line for line in told.err.splitlines() if line.startswith("note: ")] == notes
    text = told.out if output == "-" else Path(output).read_text("utf-8")
    named = re.findall(r"[^\s,;]+\.npy", " ".join(notes))
    assert sorted(named) == sorted(path for path in paths(json.loads(text)) if "/constants/" not in path)
