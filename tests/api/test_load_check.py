"""Compiled models load in ONNX Runtime, or are refused with the node; the reason is said where it cannot judge."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import ModelProto, TensorProto, helper, parser

import dmlc
from dmlc.diagnostics import DmlcError
from dmlc.verifying import load_phase as phases
from dmlc.workers import SESSIONS
from tests.command_line import Run
from tests.rows import each_row

X = "float[2,3] x"


def model(body: str, inputs: str = X, opset: int = 13, ir: int = 8, more: str = "") -> ModelProto:
    text = f'<ir_version: {ir}, opset_import: ["": {opset}{more}]> g ({inputs}) => (float y) {{ {body} }}'
    made = parser.parse_model(text)
    made.graph.output[0].type.tensor_type.ClearField("shape")
    return made


VECTORS = ", ".join(f"float[4] {name}" for name in "sbmv")
#: Models that ONNX Runtime's load phase refuses; our own inference does not.
REFUSED: dict[str, ModelProto] = {
    "normalization of one axis": model("[n] y = BatchNormalization(x, s, b, m, v)", f"float[4] x, {VECTORS}", 15),
    "scale of another size": model(
        "[n] y = BatchNormalization(x, s, b, m, v)",
        "float[2,3,4] x, float[4] s, float[4] b, float[4] m, float[4] v",
        15,
    ),
    "depth of two": model("d = Constant<value = int64[2] {3, 3}>() [n] y = OneHot(i, d, w)", "int64[2] i, float[2] w"),
    "two open sizes": model("s = Constant<value = int64[2] {-1, -1}>() [n] y = Reshape(x, s)"),
    "identity of three axes": model("[n] y = EyeLike(x)", "float[2,3,4] x"),
    "determinant of no square": model("[n] y = Det(x)"),
    "loss of other sizes": model("[n] y = NegativeLogLikelihoodLoss(x, t)", "float[3,5] x, int64[4] t"),
    "loss of another rank": model("[n] y = NegativeLogLikelihoodLoss(x, t)", "float[3,5] x, int64[3,2] t"),
    "types that differ": model("[n] y = Add(x, z)", "float[2,3] x, int64[2,3] z"),
    "attribute that is not there": model("[n] y = Relu<alpha = 1.0>(x)"),
}


@each_row("name", list(REFUSED))
@each_row("target", ["directml", "cpu", "onnx"])
def test_a_model_that_does_not_load_is_refused(name: str, target: str, tmp_path: Path, command_line: Run) -> None:
    onnx.save(REFUSED[name], tmp_path / "m.onnx")
    out = tmp_path / "o.onnx"
    for words in (["check", str(tmp_path / "m.onnx")], ["compile", str(tmp_path / "m.onnx"), "-o", str(out)]):
        code, _, err = command_line(*words, "--target", target)
        assert code == 1 and "error[E0431]: node " in err and " n: " in err and "= help:" in err, err
        assert "cast the operands" not in err
    assert not out.exists()
    with pytest.raises(DmlcError, match="E0431"):
        dmlc.compile(REFUSED[name], target=target).save(out)
    with pytest.raises(DmlcError, match="E0431"):
        dmlc.compile(REFUSED[name], target=target, strict=True)


def test_what_only_the_emitted_model_does_not_load_is_another_error(tmp_path: Path, command_line: Run) -> None:
    made = model("[n] y = BatchNormalization(x, s, b, m, v)", f"float[4] x, {VECTORS}", 9)
    onnx.save(made, tmp_path / "m.onnx")
    for words in (
        ["check", str(tmp_path / "m.onnx")],
        ["compile", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "o")],
    ):
        code, _, err = command_line(*words, *(["--emit", "onnx"] if words[0] == "compile" else []))
        assert code == 1 and "error[E0554]: ONNX Runtime refuses the compiled model: node BatchNormalization n" in err
        assert "loads the model as it is, at opset 9; if it runs too, compile it with --opset 11" in err
    assert dmlc.compile(made, opset=11).load_check().errors == ()


@pytest.mark.emits_invalid("ONNX Runtime refuses a determinant of a matrix that is not square")
def test_a_program_is_refused_at_its_place(command_line: Run, tmp_path: Path) -> None:
    source = tmp_path / "det.dml"
    source.write_text("model m(x: f32[2, 3]) -> (y) {\n    a = x * 2\n    y = onnx.Det(a)\n    return y\n}\n")
    for verb in ("check", "compile"):
        code, _, err = command_line(verb, str(source))
        assert code == 1
        assert "error[E0554]: ONNX Runtime refuses the model: node Det " in err
        assert "det.dml:3:9" in err and "onnx__Det.html" in err


def test_a_kernel_that_is_refused_is_an_error_for_cpu_alone(command_line: Run, tmp_path: Path) -> None:
    onnx.save(model("[n] y = LRN<size = 2>(x)", "float[1,4,3,3] x"), tmp_path / "m.onnx")
    for verb in (["check"], ["compile", "-o", str(tmp_path / "o.onnx")]):
        code, _, err = command_line(*verb, str(tmp_path / "m.onnx"), "--target", "cpu")
        assert code == 1
        said = "error[E0554]: ONNX Runtime's CPU provider makes no kernel of LRN n: size_ % 2 == 1 was false\n"
        assert said in err
        assert "cast the operands" not in err
        for target in ("directml", "onnx"):
            code, _, err = command_line(*verb, str(tmp_path / "m.onnx"), "--target", target)
            assert code == 0
            assert "warning[W0614]: ONNX Runtime's CPU provider makes no kernel of LRN n: size_ % 2 == 1" in err
    odd = model("[n] y = LRN<size = 3>(x)", "float[1,4,3,3] x")
    assert dmlc.compile(odd, target="cpu").loading_problems() == ()


#: Models that this ONNX Runtime cannot judge, and its reason.
UNKNOWN: dict[str, tuple[ModelProto, str]] = {
    "operator": (model("y = Reluu(x)"), "does not know Reluu"),
    "domain": (model("y = far.Off(x)", more=', "far": 1'), "does not know far.Off"),
    "domain's operator": (
        model("y = com.microsoft.NoSuch(x)", more=', "com.microsoft": 1'),
        "does not know com.microsoft.NoSuch",
    ),
    "IR version": (model("y = Relu(x)", ir=99), "reads IR versions up to"),
    "opset": (model("y = ai.onnx.ml.Binarizer(x)", more=', "ai.onnx.ml": 99'), "reads opsets of ai.onnx.ml up to"),
}


@each_row("name", list(UNKNOWN))
def test_what_cannot_be_judged_is_not_held_against_a_model(name: str) -> None:
    made, reason = UNKNOWN[name]
    found = phases.load_phase(made)
    assert found.refusal is None and reason in found.unchecked


@each_row("target", ["directml", "cpu", "onnx"])
def test_a_model_of_an_unknown_domain_is_noted(target: str, command_line: Run, tmp_path: Path) -> None:
    onnx.save(UNKNOWN["domain"][0], tmp_path / "m.onnx")
    note = "note: not checked if ONNX Runtime loads the model: this ONNX Runtime does not know far.Off"
    for verb in (["check"], ["compile", "-o", str(tmp_path / "o.onnx")]):
        code, _, err = command_line(*verb, str(tmp_path / "m.onnx"), "--target", target)
        assert (code, note in err) == (0, True), err


def test_nodes_beside_one_of_an_unknown_domain_are_checked() -> None:
    made = model("h = far.Off(x) [n] y = Det(h)", more=', "far": 1')
    made.graph.value_info.append(helper.make_tensor_value_info("h", TensorProto.FLOAT, [2, 3]))
    found = phases.load_phase(made)
    assert found.refusal is not None and found.refusal.node is not None and found.refusal.node.name == "n"
    assert found.unchecked == "this ONNX Runtime does not know far.Off"


def test_an_operator_of_a_later_opset_is_an_error() -> None:
    """ONNX Runtime knows it, and says the same as of one that it does not know."""
    found = dmlc.compile(model("y = HardSwish(x)", opset=13), target="cpu").load_check()
    assert [error.message for error in found.errors] == ["node HardSwish y: opset 13 has no HardSwish"]


def test_a_wrong_declaration_and_a_function_are_notes() -> None:
    """A model whose nodes are right: the compiled one declares other types, and has no functions."""
    declared = model("h = Relu(x) y = Exp(h)")
    declared.graph.value_info.append(helper.make_tensor_value_info("h", TensorProto.DOUBLE, [2, 3]))
    found = dmlc.compile(declared).load_check()
    assert found.errors == () and "node Relu h: its result h is declared tensor(double)" in found.note
    part = "part = t () => (float[2,3] q) { q = Exp(x) }"
    called = parser.parse_model(
        f'<ir_version: 10, opset_import: ["": 17, "f": 1]> g ({X}, bool c) => (float[2,3] y) '
        f"{{ y = f.K <{part}> (c) }} "
        '<domain: "f", opset_import: ["": 17]> K <part> (c) => (y) { y = If <then_branch: graph = @part, '
        "else_branch = e () => (float[2,3] q) { q = Constant<value = float[2,3] {1.0, 1.0, 1.0, 1.0, 1.0, 1.0}>() }>"
        " (c) }"
    )
    found = dmlc.compile(called).load_check()
    assert found.errors == () and found.note


def test_weights_are_not_read(tmp_path: Path) -> None:
    made = model("y = MatMul(x, w)")
    tensor = made.graph.initializer.add(name="w", data_type=TensorProto.FLOAT, dims=[3, 1 << 40])
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="nowhere.bin")
    assert phases.load_phase(made).refusal is None
    made.graph.initializer[0].dims[0] = 5
    refusal = phases.load_phase(made).refusal
    assert refusal is not None and refusal.reason == "Incompatible dimensions for matrix multiplication"


def test_a_node_is_found_by_its_place_where_it_has_no_name() -> None:
    made = model("a = Relu(x) b = Exp(a) y = Det(b)")
    refusal = phases.load_phase(made).refusal
    assert refusal is not None and refusal.node is not None and list(refusal.node.output) == ["y"]
    inside = model(
        "y = If(c) <then_branch = t () => (float q) { q = Det(x) }, else_branch = e () => (float r) { r = Det(x) }>",
        f"{X}, bool c",
    )
    refusal = phases.load_phase(inside).refusal
    assert refusal is not None and refusal.node is not None and refusal.node.op_type == "Det"


@pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="needs a signal that stops a process")
def test_a_load_phase_that_hangs_is_not_held_against_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    assert phases.load_phase(model("y = Det(x)")).refusal is not None
    assert SESSIONS._process is not None
    os.kill(SESSIONS._process.pid, signal.SIGSTOP)
    monkeypatch.setattr(phases, "TIME_LIMIT", 0.1)
    assert phases.load_phase(model("y = Det(x)")) == phases.LoadResult(unchecked="ONNX Runtime took longer than 0.1 s")
    monkeypatch.undo()
    assert phases.load_phase(model("y = Det(x)")).refusal is not None


def test_a_load_phase_that_ends_its_process_is_not_held_against_the_model() -> None:
    """ONNX Runtime 1.32 does so."""
    found = phases.load_phase(model("[n] y, z, q = Split<axis = 1, num_outputs = 2>(x)", opset=18))
    assert found.refusal is not None or "ended its process" in found.unchecked
    assert phases.load_phase(model("y = Det(x)")).refusal is not None


COMMANDS = [
    ("numpy", ["check", "m.dml", "--target", "numpy"], False),
    ("Python", ["compile", "m.dml", "-o", "o.py"], False),
    ("text", ["compile", "m.dml", "-o", "o.dml"], False),
    ("DxDispatch", ["compile", "m.dml", "-o", "o.dxdispatch.json"], False),
    ("ONNX", ["compile", "m.dml", "-o", "o.onnx"], True),
    ("check", ["check", "m.dml"], True),
]


@each_row(("name", "words", "starts"), COMMANDS, ids=[name for name, *_ in COMMANDS])
def test_only_what_writes_or_checks_onnx_starts_a_process(
    name: str, words: list[str], starts: bool, command_line: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.dml").write_text("model m(x: f32[2, 3]) -> (y) {\n    y = softmax(x, axes=[1])\n    return y\n}\n")
    SESSIONS.stop()
    code, _, err = command_line(*words)
    assert (code, SESSIONS.is_running) == (0, starts), err


def test_a_python_caller_starts_a_process_only_for_nodes_of_others(tmp_path: Path) -> None:
    SESSIONS.stop()
    program = dmlc.compile(dmlc.Source("model m(x: f32[2, 3]) -> (y) {\n    y = exp(x)\n    return y\n}\n"))
    program.save(tmp_path / "o.onnx")
    program.to_onnx()
    assert program.diagnostics == () and not SESSIONS.is_running
    program.require_sound()
    assert SESSIONS.is_running
    SESSIONS.stop()
    own = dmlc.compile(model("y = Exp(x)"))
    own.to_onnx()
    assert not SESSIONS.is_running
    own.save(tmp_path / "o.onnx")
    assert SESSIONS.is_running


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_has_a_process_of_its_own() -> None:
    code = """
import os, sys, dmlc
from dmlc.workers import SESSIONS
from onnx import parser
text = '<ir_version: 8, opset_import: ["": 13]> g (float[2,3] x) => (float y) { y = Det(x) }'
def refused():
    try:
        dmlc.compile(parser.parse_model(text), strict=True)
    except dmlc.DmlcError as error:
        return error.diagnostics[0].code.id == "E0431"
fine = refused()
first = SESSIONS._process.pid
child = os.fork()
if child == 0:
    SESSIONS.stop()
    os._exit(0 if refused() and SESSIONS._process.pid != first else 1)
other = os.fork()
if other == 0:
    os._exit(0 if refused() and SESSIONS._process.pid != first else 1)
fine = fine and all(os.waitpid(pid, 0)[1] == 0 for pid in (child, other))
sys.exit(not (fine and refused() and SESSIONS._process.pid == first))
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=120, check=False).returncode == 0


def test_a_large_model_is_checked_quickly() -> None:
    body = "".join(f"v{k + 1} = Relu(v{k}) " for k in range(5000))
    made = model(f"v0 = Exp(x) {body} y = Exp(v5000)")
    made.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, [1000, 1000], np.zeros(10**6)))
    phases.load_phase(model("y = Exp(x)"))
    start = time.perf_counter()
    assert phases.load_phase(made) == phases.LoadResult()
    assert time.perf_counter() - start < 5.0
