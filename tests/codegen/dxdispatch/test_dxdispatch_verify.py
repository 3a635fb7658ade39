"""``dmlc verify PROGRAM FILE.dxdispatch.json``: the files that DxDispatch wrote against the program's reference."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from dxdispatch_machine import Machine

from dmlc.cli.main import main

HEAD = """\
dim N in 1..64

model head(x: f32[N, 6], c: bool[6]) -> (i, s, any, count, y) {
    i = argmax(x, axes=[1], keepdims=false)
    s = softmax(where(c, x, -10.0), axes=[1])
    any = x > 0.5
    count = reduce_sum(any as i32, keepdims=false)
    y = reduce_sum(x, axes=[0])
    return i, s, any, count, y
}
"""
MODEL = """<ir_version: 8, opset_import: ["" : 17]>
g (float[2, 6] x, bool[6] c) => (float[2, 6] s, bool[6] n) {
    m = Where(c, x, x)
    s = Softmax<axis = 1>(m)
    n = Not(c)
}"""


def dispatch(folder: Path, file: Path) -> None:
    """Acts as DxDispatch with ``--output_path folder``."""
    machine = Machine(file.read_text("utf-8"), lambda path: np.load(file.parent / path))
    for target, array in machine.run().items():
        place = folder / target
        place.parent.mkdir(parents=True, exist_ok=True)
        np.save(place, array)


@pytest.fixture(params=["m.dml", "m.onnx"])
def source(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A program, or a model, that was compiled to ``m.dxdispatch.json``."""
    monkeypatch.chdir(tmp_path)
    Path("m.dml").write_text(HEAD)
    onnx.save(onnx.parser.parse_model(MODEL), "m.onnx")
    name = str(request.param)
    bind = ["--bind", "N=3"] if name == "m.dml" else []
    assert main(["compile", name, *bind, "-q", "-o", "m.dxdispatch.json"]) == 0
    return name


def verify(source: str, *more: str) -> int:
    return main(["verify", source, "m.dxdispatch.json", *more])


def results() -> list[Path]:
    return sorted(Path().glob("**/out/*.npy"))


def test_results_of_the_operators_are_equal(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    dispatch(Path(), Path("m.dxdispatch.json"))
    assert verify(source) == 0
    assert "on the files of m.dxdispatch.json" in capsys.readouterr().out
    assert verify(source, "--exact", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["ok"]


def test_results_in_another_folder(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    dispatch(Path("gpu"), Path("m.dxdispatch.json"))
    assert verify(source) == 1
    assert "not comparable" in capsys.readouterr().out
    assert verify(source, "--output-path", "gpu") == 0


def test_own_inputs_are_the_ones_compared(source: str) -> None:
    x = np.load("m.dxdispatch/x.npy")
    np.save("m.dxdispatch/x.npy", (x * 3 - 1).astype(np.float32))
    np.save("m.dxdispatch/c.npy", np.array([True, False] * 3))
    dispatch(Path(), Path("m.dxdispatch.json"))
    assert verify(source) == 0
    np.save("m.dxdispatch/x.npy", -x)
    assert verify(source) == 1


def test_each_missing_file_is_not_verified(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    dispatch(Path(), Path("m.dxdispatch.json"))
    for file in [*results(), Path("m.dxdispatch/x.npy")]:
        data = file.read_bytes()
        file.unlink()
        capsys.readouterr()
        assert verify(source) == 1
        told = capsys.readouterr()
        assert "help: dmlc explain E0563" in told.out
        assert str(file) in told.out
        file.write_bytes(data)
    assert verify(source) == 0


def test_each_wrong_element_is_different(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    dispatch(Path(), Path("m.dxdispatch.json"))
    for file in results():
        data = file.read_bytes()
        array = np.load(file)
        for wrong in (_changed(array), array.astype(np.float64), array.reshape(1, *array.shape), array.reshape(-1)[:0]):
            np.save(file, wrong)
            capsys.readouterr()
            assert verify(source) == 1
            told = capsys.readouterr()
            assert "help: dmlc explain E0562" in told.out
            assert f"different: {file.stem} on the files" in told.out
        file.write_bytes(data)
    assert verify(source) == 0


def _changed(array: np.ndarray) -> np.ndarray:
    """The last element is another one; a truth value stays a byte of 0 or 1."""
    out = array.copy()
    last = out.reshape(-1)[-1:]
    last[:] = 1 - last if array.dtype == np.uint8 else last + 1
    return out


def test_rounding_is_within_the_class(source: str) -> None:
    dispatch(Path(), Path("m.dxdispatch.json"))
    for file in results():
        array = np.load(file)
        if array.dtype == np.float32:
            np.save(file, np.nextafter(array, np.float32(np.inf)))
    assert verify(source) == 0


WRITTEN = '[{"type": "writeFile", "resource": "i", "targetPath": "a"}]'


@pytest.mark.parametrize(
    "text",
    [
        "", "[]", "{}", "{", "[" * 5000, '{"resources": 3, "commands": []}', '{"resources": {}, "commands": []}',
        f'{{"resources": {{"x": {{"initialValues": {{"sourcePath": 3}}}}}}, "commands": {WRITTEN}}}',
        '{"resources": {}, "commands": [{"type": "writeFile", "resource": ["i"], "targetPath": "a"}]}',
    ],
    ids=range(9),
)  # fmt: skip
def test_other_files_are_refused(text: str, source: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("m.dxdispatch.json").write_text(text)
    assert verify(source) == 1
    assert "E0584" in capsys.readouterr().err


def test_files_of_another_program(source: str, capsys: pytest.CaptureFixture[str]) -> None:
    dispatch(Path(), Path("m.dxdispatch.json"))
    Path("other.dml").write_text("model m(x: f32[3, 6]) -> (z) {\n    return exp(x)\n}")
    assert main(["verify", "other.dml", "m.dxdispatch.json"]) == 1
    assert verify(source, "--inputs", "3") == 0


def test_the_folder_of_results_is_for_dispatches_only(source: str) -> None:
    assert main(["compile", source, "-q", "-o", "m2.onnx"]) == 0
    assert main(["verify", source, "m2.onnx", "--output-path", "gpu"]) == 2
