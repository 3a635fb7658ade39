"""``compile --verify``: what is compared is the file that gets the name of OUT."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import parser

import dmlc
from dmlc.runtime import weights
from dmlc.verifying import Verdict
from tests.command_line import Run

SMALL = """<ir_version: 8, opset_import: ["" : 17]> g (float[2, 3] x) => (float[2, 3] y)
{ r = Relu(x) e = Exp(r) y = Neg(e) }"""


@pytest.fixture(autouse=True)
def small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    onnx.save(parser.parse_model(SMALL), "small.onnx")


def test_the_file_that_is_verified_is_the_file_that_is_written(
    command_line: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The verdict is about bytes beside OUT, which get its name only then."""
    seen: list[tuple[Path, bytes, bool]] = []
    verify = dmlc.Program.verify

    def watched(self: dmlc.Program, inputs: int, *, seed: int = 0, written: Path | None = None) -> Verdict:
        assert written is not None
        seen.append((written, written.read_bytes(), Path("out.onnx").exists()))
        return verify(self, inputs, seed=seed, written=written)

    monkeypatch.setattr(dmlc.Program, "verify", watched)
    argv = ("compile", "small.onnx", "-o", "out.onnx", "--verify", "3")
    assert command_line(*argv)[0] == 0
    ((beside, data, there),) = seen
    assert (beside.parent, there, Path("out.onnx").read_bytes()) == (Path(), False, data)
    assert not beside.exists()


def test_a_file_that_was_written_otherwise_does_not_get_the_name(
    command_line: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = weights.write_model

    def wrong(model: onnx.ModelProto, path: Path, **given: Any) -> None:
        copy = onnx.ModelProto.FromString(model.SerializeToString())
        copy.graph.node[-1].op_type = "Abs"
        write(copy, path, **given)

    monkeypatch.setattr(weights, "write_model", wrong)
    before = sorted(Path().iterdir())
    code, _, err = command_line("compile", "small.onnx", "-o", "out.onnx", "--verify", "3", "--ledger", "l.json")
    assert code == 1
    assert "E0562" in err or "E0563" in err
    assert sorted(Path().iterdir()) == before


@pytest.mark.parametrize("verified", [(), ("--verify", "3")])
def test_a_folder_that_does_not_exist_is_named(command_line: Run, verified: tuple[str, ...]) -> None:
    code, _, err = command_line("compile", "small.onnx", "-o", "build/out.onnx", *verified)
    assert (code, err.splitlines()[0]) == (2, "error[E0421]: cannot write build/out.onnx: there is no folder build")


def test_a_model_alone_is_compared_with_what_compile_makes_of_it(command_line: Run) -> None:
    code, out, err = command_line("verify", "small.onnx")
    assert (code, err) == (0, "")
    assert out.startswith("same on 24 inputs")
    assert "note: small.onnx was compared with what dmlc compile makes of it for directml" in out
    assert "note: small.onnx was compared with itself on reference" in command_line(
        "verify", "small.onnx", "--backend", "reference"
    )[1]  # fmt: skip


def test_a_refused_model_is_said_as_check_says_it(command_line: Run) -> None:
    model = parser.parse_model(SMALL)
    model.graph.output.append(onnx.helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, [2, 3]))
    onnx.save(model, "lacks.onnx")
    code, out, err = command_line("verify", "small.onnx", "lacks.onnx")
    assert (code, err) == (1, "")
    assert out.startswith("different: the result: ONNX Runtime refuses the model: output z is made by no node\n")
    assert out.endswith("help: dmlc explain E0562\n")
    assert "output z is made by no node" in command_line("check", "lacks.onnx")[2]


def test_an_attribute_that_became_an_operand_is_no_other_attribute(command_line: Run) -> None:
    """``axes`` of ReduceMean is an operand since opset 18."""
    text = "g (float[2, 3] x) => (float[2] y) { y = ReduceMean <axes = [1], keepdims = 0> (x) }"
    onnx.save(parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}'), "mean.onnx")
    code, out, _ = command_line("verify", "mean.onnx")
    assert code == 0
    assert "other attributes" not in out
