"""The command line, verb by verb: what goes to stdout, to stderr, into files, and the exit code."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from dmlc.cli.main import VERBS, main
from tests.command_line import Run
from tests.rows import each_row

TEXT = """\
dim N in 2..64

model head(x: f32[N, 4], image: f16[2, 3]) -> (best, focus, mean) {
    best = argmax(x, axes=[1])
    focus = hardmax(image, axes=[0, 1])
    mean = reduce_mean(reduce_mean(x, axes=[0]), axes=[1])
    return best, focus, mean
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with a program and data in it."""
    monkeypatch.chdir(tmp_path)
    Path("head.dml").write_text(TEXT)
    np.save("x.npy", np.arange(12, dtype=np.float32).reshape(3, 4))
    np.savez("data.npz", image=np.array([[1, 2, 3], [6, 5, 4]], np.float16), other=np.zeros(3))
    return tmp_path


def document(output: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(output, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert found["schema"] == 1
    return found


def stdin(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


INPUTS = ("--input", "x=x.npy", "--input", "image=data.npz:image")


# --- the door


def test_help_and_version(command_line: Run) -> None:
    code, out, err = command_line("--help")
    assert (code, err) == (0, "")
    assert all(f"\n  {verb} " in out for verb in VERBS)
    assert all(f"\n{group}:\n" in out for group in ("build", "run", "find faults", "look"))
    assert command_line("-h") == command_line("--help")
    assert command_line("--version")[:2] == (0, "dmlc 0.1.0\n")


@each_row(
    "argv",
    [
        [],
        ["compil", "head.dml"],
        ["compile"],
        ["compile", "head.dml", "--opset", "x"],
        ["compile", "head.dml", "--nothing"],
        ["compile", "head.dml", "--targ", "cpu"],
        ["compile", "head.dml", "--bind", "N"],
        ["compile", "head.dml", "--bind", "N=x"],
        ["compile", "head.dml", "--bind", "N=3", "--bind", "N=4"],
        ["compile", "head.dml", "--exact", "--allow", "range"],
        ["compile", "head.dml", "--emit", "tflite"],
        ["compile", "head.dml", "-o", "head.xyz"],
        ["compile", "head.dml", "-o", "-", "--format", "json"],
        ["compile", "-"],
        ["run", "head.dml", "--input", "x"],
        ["run", "head.dml", "--input", "x="],
        ["run", "head.dml", "--input", "x=x.npy", "--input", "x=x.npy"],
        ["run", "head.dml", "--backend", "tpu"],
        ["run", "head.dml", "--random", "-1"],
        ["run", "head.dml", "--random", "0", "-o", "out.txt"],
        ["explain", "E9999"],
        ["ops", "argmx"],
        ["targets", "directx"],
        ["fmt"],
    ],
    ids=" ".join,
)
def test_wrong_usage(command_line: Run, folder: Path, argv: list[str]) -> None:
    before = sorted(folder.iterdir())
    code, out, err = command_line(*argv)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1 + err.count("= help: ")
    assert "usage:" not in err
    assert sorted(folder.iterdir()) == before


def test_did_you_mean(command_line: Run) -> None:
    assert command_line("compil")[2] == "dmlc: there is no command compil; did you mean compile?\n"
    assert 'did you mean "argmax"?' in command_line("ops", "argmx")[2]
    assert 'did you mean "directml"?' in command_line("targets", "directm")[2]


# --- compile


def test_compile_writes_beside_the_source(command_line: Run) -> None:
    code, out, err = command_line("compile", "head.dml")
    assert (code, out) == (0, "")
    assert err.startswith("head.onnx: directml, opset 21, ")
    model = onnx.load("head.onnx")
    assert [o.name for o in model.graph.output] == ["best", "focus", "mean"]


@pytest.mark.parametrize("argv", [["-o", "out.py"], ["--emit", "numpy", "-o", "out.py"], ["--target", "numpy"]])
def test_compile_to_numpy(command_line: Run, argv: list[str]) -> None:
    assert command_line("compile", "head.dml", *argv)[0] == 0
    name = "out.py" if "-o" in argv else "head.py"
    namespace: dict[str, Any] = {}
    exec(Path(name).read_text(), namespace)
    with np.load("data.npz") as data:
        best, focus, mean = namespace["head"](np.load("x.npy"), data["image"])
    assert best.tolist() == [[3], [3], [3]]
    assert focus.tolist() == [[0, 0, 0], [1, 0, 0]]
    assert mean.tolist() == [[5.5]]


def test_emit_wins_over_the_suffix(command_line: Run) -> None:
    assert command_line("compile", "head.dml", "--emit", "onnx", "-o", "model.bin")[0] == 0
    onnx.load_from_string(Path("model.bin").read_bytes())


def test_compile_to_stdout(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["compile", "head.dml", "-o", "-", "--emit", "onnx"]) == 0
    assert next(o.name for o in onnx.load_from_string(capfdbinary.readouterr().out).graph.output) == "best"
    assert main(["compile", "head.dml", "-o", "-", "--target", "numpy"]) == 0
    assert b"def head(" in capfdbinary.readouterr().out


def test_compile_from_stdin(command_line: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    stdin(monkeypatch, TEXT.encode())
    assert command_line("compile", "-", "-o", "out.onnx")[0] == 0
    onnx.checker.check_model(onnx.load("out.onnx"), full_check=True)
    stdin(monkeypatch, b"model m(")
    code, _, err = command_line("check", "-")
    assert code == 1
    assert "<stdin>:1:" in err


@pytest.mark.parametrize("output", ["head.dml", "./head.dml", "link.dml"])
def test_the_source_is_not_overwritten(command_line: Run, output: str) -> None:
    Path("link.dml").symlink_to("head.dml")
    code, _, err = command_line("compile", "head.dml", "--emit", "onnx", "-o", output)
    assert code == 2
    assert "OUT is SRC" in err
    assert Path("head.dml").read_text() == TEXT


def test_compile_json(command_line: Run) -> None:
    code, out, err = command_line("compile", "head.dml", "--format", "json", "--bind", "N=4", "-q")
    assert (code, err) == (0, "")
    found = document(out)
    assert (found["command"], found["ok"], found["output"], found["kind"]) == ("compile", True, "head.onnx", "onnx")
    assert found["inputs"][0] == {"name": "x", "dtype": "float32", "shape": [4, 4]}
    assert found["diagnostics"] == []


def test_quiet_and_verbose(command_line: Run) -> None:
    assert command_line("compile", "head.dml", "-q") == (0, "", "")
    assert "other passes" in command_line("compile", "head.dml", "-v")[2]


def test_shared_flags_reach_the_compiler(command_line: Run) -> None:
    argv = ["--opset", "13", "--exact", "--strict", "--lower-hardmax", "--feature-level", "6.4", "--model", "head"]
    assert command_line("compile", "head.dml", "-o", "o.onnx", *argv)[0] == 0
    assert {o.domain: o.version for o in onnx.load("o.onnx").opset_import}[""] == 13
    for argv, code, expected in (
        (["--target", "directx"], "E0550", 2),
        (["--opset", "9"], "E0551", 1),
        (["--bind", "N=1"], "E0555", 1),
        (["--feature-level", "3.x"], "E0556", 2),
        (["--feature-level", "3.0"], "E0557", 1),
    ):
        exit_code, _, err = command_line("compile", "head.dml", "-o", "p.onnx", *argv)
        assert exit_code == expected
        assert f"error[{code}]" in err
    assert command_line("compile", "head.dml", "--model", "hed")[0] == 1
    assert not Path("p.onnx").exists()


# --- check


def test_check(command_line: Run, folder: Path) -> None:
    before = sorted(folder.iterdir())
    code, out, err = command_line("check", "head.dml")
    assert (code, err) == (0, "")
    assert out.startswith("head.dml on directml: runs, all ")
    assert command_line("check", "head.dml", "-q") == (0, "", "")
    assert document(command_line("check", "head.dml", "--format", "json")[1])["ok"] is True
    assert sorted(folder.iterdir()) == before


def test_check_says_what_is_wrong(command_line: Run) -> None:
    Path("bad.dml").write_text(TEXT.replace("axes=[1])\n    focus", "axes=[7])\n    focus"))
    code, out, err = command_line("check", "bad.dml")
    assert (code, out) == (1, "")
    assert err.startswith("error[E0301]")
    assert "--> bad.dml:4:" in err
    code, out, err = command_line("check", "bad.dml", "--format", "json")
    assert (code, err) == (1, "")
    found = document(out)
    assert (found["ok"], found["exit_code"]) == (False, 1)
    (diagnostic,) = found["diagnostics"]
    assert (diagnostic["code"], diagnostic["labels"][0]["line"]) == ("E0301", 4)


def test_colour_only_on_a_terminal(
    command_line: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.dml").write_text("model\n")
    assert "\x1b[" not in command_line("check", "bad.dml")[2]
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda self: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    assert "\x1b[" in command_line("check", "bad.dml")[2]
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in command_line("check", "bad.dml")[2]


# --- run


@each_row("backend", [None, "cpu", "numpy", "reference"])
def test_run_prints_a_summary(command_line: Run, backend: str | None) -> None:
    code, out, _ = command_line("run", "head.dml", *INPUTS, *(["--backend", backend] if backend else []))
    assert code == 0
    lines = [line.split(None, 1) for line in out.splitlines()]
    assert [line[0] for line in lines] == ["best", "focus", "mean"]
    assert out.splitlines()[0].split("  ", 1)[1].strip().startswith("u32[3, 1]")
    assert "[[3], [3], [3]]" in out
    assert "[[5.5]]" in out


def test_run_summarises_large_outputs(command_line: Run) -> None:
    Path("big.dml").write_text("model m(x: f32[N], n: f32[20]) -> (y, z, b) {\n    return x * 2, n, x > 0\n}\n")
    np.save("big.npy", np.arange(100, dtype=np.float32))
    np.save("n.npy", np.array([np.nan] * 19 + [2], np.float32))
    code, out, _ = command_line("run", "big.dml", "--input", "x=big.npy", "--input", "n=n.npy")
    assert code == 0
    y, z, b = out.splitlines()
    assert y.split() == ["y", "f32[100]", "min", "0", "max", "198", "mean", "99"]
    assert z.split() == ["z", "f32[20]", "min", "2", "max", "2", "mean", "2", "NaN", "19"]
    assert b.endswith("99 of 100 true")


def test_run_writes_npz(command_line: Run) -> None:
    code, out, err = command_line("run", "head.dml", *INPUTS, "-o", "out.npz")
    assert (code, out) == (0, "")
    assert "out.npz" in err
    with np.load("out.npz") as found:
        assert found.files == ["best", "focus", "mean"]
        assert found["focus"].tolist() == [[0, 0, 0], [1, 0, 0]]


def test_run_json(command_line: Run) -> None:
    found = document(command_line("run", "head.dml", *INPUTS, "--format", "json", "--backend", "reference")[1])
    assert found["backend"] == "reference"
    assert found["outputs"]["mean"] == {
        "dtype": "float32", "shape": [1, 1], "min": 5.5, "max": 5.5, "mean": 5.5, "nan": 0, "values": [[5.5]],
    }  # fmt: skip
    Path("inf.dml").write_text("model m(x: f32[2]) -> (y, z) {\n    return exp(x), log(-x)\n}\n")
    np.save("big.npy", np.array([1000, 1], np.float32))
    outputs = document(command_line("run", "inf.dml", "--input", "x=big.npy", "--format", "json")[1])["outputs"]
    assert (outputs["y"]["max"], outputs["y"]["values"][0]) == ("inf", "inf")
    assert (outputs["z"]["min"], outputs["z"]["nan"], outputs["z"]["values"]) == ("nan", 2, ["nan", "nan"])


def test_run_on_random_inputs(command_line: Run) -> None:
    first, again, other = (command_line("run", "head.dml", "--random", seed)[:2] for seed in (1, 1, 2))
    assert first == again
    assert first[0] == 0
    assert first != other
    code, out, _ = command_line("run", "head.dml", "--random", 0, "--bind", "N=5", "--input", "image=data.npz:image")
    assert code == 0
    assert "u32[5, 1]" in out
    assert "[[0, 0, 0], [1, 0, 0]]" in out


def test_run_refuses_data_that_does_not_match(command_line: Run) -> None:
    np.save("f8.npy", np.zeros((3, 4)))
    np.save("row.npy", np.zeros(4, np.float32))
    np.save("one.npy", np.zeros((1, 4), np.float32))
    image = ("--input", "image=data.npz:image")
    for argv, code, text in (
        (["--input", "x=f8.npy", *image], "E0424", "expected f32[N, 4], got f64[3, 4]"),
        (["--input", "x=row.npy", *image], "E0425", "rank 2 is declared, 1 is given"),
        (["--input", "x=one.npy", *image], "E0425", "dim N is 1, it must be 2 to 64"),
        (["--input", "x=x.npy"], "E0423", "input image is not given"),
        ([*INPUTS, "--input", "y=x.npy"], "E0423", "no input y"),
        (["--input", "x=x.npy", "--input", "image=data.npz:imgae"], "E0422", 'did you mean "image"'),
    ):
        exit_code, out, err = command_line("run", "head.dml", *argv)
        assert (exit_code, out) == (1, "")
        assert f"error[{code}]" in err
        assert text in err


@each_row(
    "words",
    [
        ("run", "head.dml", *INPUTS, "--backend", "dml"),
        ("verify", "head.dml", "--backend", "dml"),
        ("verify", "head.dml", "--backend", "cpu:dml", "--locate"),
        ("verify", "head.onnx", "head.onnx", "--backend", "dml"),
    ],
    ids=" ".join,
)
def test_a_missing_provider_is_told(command_line: Run, words: tuple[str, ...]) -> None:
    """ONNX Runtime itself would take the CPU's without a word."""
    import onnxruntime

    if "DmlExecutionProvider" not in onnxruntime.get_available_providers():
        assert command_line("compile", "head.dml", "-q")[0] == 0
        code, _, err = command_line(*words)
        assert code == 1
        assert "error[E0553]" in err


# --- fmt


def formatted(command_line: Run) -> str:
    """Format ``head.dml`` and return its text."""
    assert command_line("fmt", "head.dml")[0] == 0
    return Path("head.dml").read_text()


def spoil(clean: str) -> str:
    """Write ``head.dml`` with needless blanks and return its text."""
    messy = clean.replace("axes=[1]", "axes = [ 1 ]")
    Path("head.dml").write_text(messy)
    return messy


def test_fmt(command_line: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    clean = formatted(command_line)
    assert command_line("fmt", "--check", "head.dml") == (0, "", "")
    messy = spoil(clean)
    code, out, err = command_line("fmt", "--check", "head.dml")
    assert (code, out) == (1, "")
    assert "head.dml" in err
    assert Path("head.dml").read_text() == messy
    stdin(monkeypatch, messy.encode())
    assert command_line("fmt", "-")[:2] == (0, clean)
    found = document(command_line("fmt", "--check", "head.dml", "--format", "json")[1])
    assert (found["ok"], found["changed"]) == (False, ["head.dml"])
    assert command_line("fmt", "head.dml", "-q") == (0, "", "")
    assert Path("head.dml").read_text() == clean


def test_fmt_diff_prints_the_change_and_writes_nothing(command_line: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    clean = formatted(command_line)
    assert command_line("fmt", "--diff", "head.dml") == (0, "", "")
    messy = spoil(clean)
    code, out, err = command_line("fmt", "--diff", "head.dml")
    assert (code, err) == (0, "")
    assert out.startswith("--- head.dml\n+++ head.dml (formatted)\n@@ ")
    removed = [line[1:] for line in out.splitlines()[2:] if line.startswith("-")]
    added = [line[1:] for line in out.splitlines()[2:] if line.startswith("+")]
    assert removed == [line for line in messy.splitlines() if line not in clean.splitlines()]
    assert added == [line for line in clean.splitlines() if line not in messy.splitlines()]
    assert Path("head.dml").read_text() == messy
    assert command_line("fmt", "--diff", "--check", "head.dml")[:2] == (1, out)
    assert document(command_line("fmt", "--diff", "head.dml", "--format", "json")[1])["diff"] == out
    stdin(monkeypatch, messy.encode())
    assert command_line("fmt", "--diff", "-")[1].startswith("--- -\n")


@pytest.mark.parametrize("source", [".", "/", ""])
def test_a_folder_as_source_is_wrong_usage(source: str, command_line: Run) -> None:
    code, out, err = command_line("compile", source)
    assert (code, out) == (2, "")
    assert "give an output file: -o OUT.onnx" in err
    assert "cannot open nope.onnx: no such file" in command_line("compile", "nope.onnx")[2]


@pytest.mark.usefixtures("sessions_here")
@each_row("dtype", ["f16", "f32", "f64"])
@each_row("name", ["elu", "softplus", "softsign"])
def test_activations_are_verified_at_every_opset_that_they_have(name: str, dtype: str, command_line: Run) -> None:
    """ONNX Runtime runs Softplus of f16 at opset 18 by its definition, which overflows; exp(x) - 1 has few digits."""
    Path("a.dml").write_text(f"model m(x: {dtype}[N, 5]) -> (y) {{\n    return {name}(x)\n}}\n")
    for opset in ("17", "18", "21") if dtype == "f16" else ("21",):
        code, _, err = command_line("compile", "a.dml", "--opset", opset, "--verify", "8", "-q", "-o", "a.onnx")
        assert code == 0, (opset, err)


def test_fmt_leaves_a_broken_program_alone(command_line: Run) -> None:
    Path("bad.dml").write_text("model m( {")
    assert command_line("fmt", "bad.dml")[0] == 1
    assert Path("bad.dml").read_text() == "model m( {"


def test_fmt_formats_the_files_after_a_broken_one(command_line: Run) -> None:
    clean = formatted(command_line)
    spoil(clean)
    Path("bad.dml").write_text("model m( {")
    code, _, err = command_line("fmt", "bad.dml", "head.dml", "missing.dml")
    assert code == 2
    assert Path("head.dml").read_text() == clean
    assert all(found in err for found in ("bad.dml:1", "head.dml: laid out", "E0420"))


@each_row("verb", [("check",), ("compile", "-o", "out.onnx"), ("run",), ("fmt",), ("verify", "head.dml")])
@each_row("suffix", [".py", ".dxdispatch.json", ".npz"])
def test_a_file_of_another_form_is_not_a_source(verb: tuple[str, ...], suffix: str, command_line: Run) -> None:
    Path(f"head{suffix}").write_text("model m(")
    code, out, err = command_line(*verb[:1], *verb[1:], f"head{suffix}")
    if verb[0] == "verify":  # it takes all three, but not one that holds something else
        assert (code, out) == (2 if suffix == ".npz" else 1, "")
        return
    assert (code, out) == (2, "")
    assert f"cannot read head{suffix}: expected a .dml program or an ONNX model" in err


@pytest.mark.parametrize("style", ["plain", "fast"])
def test_a_style_is_for_numpy_code(style: str, command_line: Run) -> None:
    code, _, err = command_line("compile", "head.dml", "--style", style, "-o", "q.onnx")
    assert code == 2
    assert "--style is for NumPy code" in err
    assert not Path("q.onnx").exists()
    assert command_line("compile", "head.dml", "--style", style, "-o", "q.py", "-q")[0] == 0


def test_uris_of_sarif_are_encoded(command_line: Run) -> None:
    Path("a b#\u00fc.dml").write_text("model m( {")
    assert '"uri": "a%20b%23%C3%BC.dml"' in command_line("check", "a b#\u00fc.dml", "--format", "sarif")[1]


def test_control_characters_of_names_do_not_reach_the_terminal(command_line: Run) -> None:
    name = "x\x1b]0;title\x07\x9b2J.dml"
    Path(name).write_text("model m( {")
    err = command_line("check", name)[2]
    assert r"x\x1b]0;title\x07\x9b2J.dml" in err
    assert not {"\x1b", "\x07", "\x9b"} & set(err)


# --- explain, inspect, ops, targets, doctor


def test_explain_a_code(command_line: Run) -> None:
    code, out, err = command_line("explain", "e0301")
    assert (code, err) == (0, "")
    assert out.startswith("E0301: ")
    assert "wrong:" in out
    assert "right:" in out
    assert document(command_line("explain", "E0301", "--format", "json")[1])["code"] == "E0301"


def test_explain_a_program(command_line: Run) -> None:
    code, out, _ = command_line("explain", "head.dml")
    assert code == 0
    assert "mean = reduce_mean(reduce_mean(x, axes=[0]), axes=[1])" in out
    assert "canonicalize-reduce" in command_line("explain", "head.dml", "-v")[1]
    found = document(command_line("explain", "head.dml", "--format", "json")[1])
    assert any("head.dml:6" in place for rewrite in found["rewrites"] for place in rewrite["places"])
    assert next(row["pass"] for row in found["passes"]) == "infer-shapes"
    exact = document(command_line("explain", "head.dml", "--exact", "--format", "json")[1])
    assert not any(rewrite["class"] != "exact" for rewrite in exact["rewrites"])


def test_inspect(command_line: Run) -> None:
    code, out, _ = command_line("inspect", "head.dml")
    assert code == 0
    for text in ("f32[N, 4]", "2 to 64", "hardmax", "as written", "compiled"):
        assert text in out
    found = document(command_line("inspect", "head.dml", "--format", "json")[1])
    assert found["operations"]["before"]["hardmax"] == 1
    assert "hardmax" not in found["operations"]["after"]
    assert found["nodes"]["after"]["ArgMax"] == 2  # best and hot
    assert found["dims"] == {"N": {"min": 2, "max": 64}}


def test_inspect_an_onnx_file(command_line: Run) -> None:
    assert command_line("compile", "head.dml", "-q")[0] == 0
    code, out, _ = command_line("inspect", "head.onnx")
    assert code == 0
    for text in ("ArgMax", "float32[N, 4]", "float16[2, 3]", "ai.onnx 21"):
        assert text in out
    found = document(command_line("inspect", "head.onnx", "--format", "json")[1])
    assert found["outputs"][0] == {"name": "best", "dtype": "uint32", "shape": ["N", 1]}
    Path("bad.onnx").write_text(TEXT)
    assert command_line("inspect", "bad.onnx")[1].startswith("model head"), "the content decides"
    for data in (b"", b"\x00hello", Path("head.onnx").read_bytes()[:-40]):
        Path("bad.onnx").write_bytes(data)
        code, out, err = command_line("inspect", "bad.onnx")
        assert (code, out) == (1, "")
        assert "error[E0430]" in err


def test_ops(command_line: Run) -> None:
    code, out, _ = command_line("ops")
    assert code == 0
    assert "top_k(x, *, k, axis=-1" in out
    for name in ("argmax", "+", "!", "add", "softmax"):
        assert command_line("ops", name)[0] == 0
    assert document(command_line("ops", "top_k", "--format", "json")[1])["operation"]["results"] == [
        "values",
        "indices",
    ]
    assert len(document(command_line("ops", "--format", "json")[1])["operations"]) > 50


def test_targets(command_line: Run) -> None:
    assert [line.split()[0] for line in command_line("targets")[1].splitlines() if line[0] != " "][:5] == [
        "target", "directml", "cpu", "onnx", "numpy",
    ]  # fmt: skip
    assert "11 to 21" in command_line("targets", "directml")[1]
    assert document(command_line("targets", "cpu", "--format", "json")[1])["target"]["max_opset"] == 21


def test_doctor(command_line: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, err = command_line("doctor")
    assert (code, err) == (0, "")
    for name in ("python", "numpy", "lark", "onnx", "onnxruntime", "CPUExecutionProvider"):
        assert name in out
    monkeypatch.setitem(sys.modules, "lark", None)  # as if it were not installed
    code, out, _ = command_line("doctor")
    assert code == 1
    assert "pip install --force-reinstall lark" in out
    assert document(command_line("doctor", "--format", "json")[1])["missing"] == ["lark"]


def test_memory_that_does_not_suffice_is_no_bug_of_ours(command_line: Run) -> None:
    Path("big.dml").write_text(
        "model m(x: f32[3]) -> (y) {\n    return full(shape=[3000000, 3000000, 3], value=1, dtype=f32)\n}\n"
    )
    for backend in ("numpy", "reference"):
        exit_code, _, err = command_line("run", "big.dml", "--random", "1", "--backend", backend)
        assert exit_code == 1
        assert "error[E0558]" in err


def test_numpy_code_does_without_what_only_onnx_lacks(command_line: Run) -> None:
    Path("erf.dml").write_text("model m(x: f64[3]) -> (y) {\n    return erf(x)\n}\n")
    assert "error[E0502]" in command_line("compile", "erf.dml", "-o", "erf.onnx")[2]
    assert command_line("compile", "erf.dml", "-o", "erf.py")[0] == 0
    for backend in ("numpy", "reference"):
        assert command_line("run", "erf.dml", "--random", "1", "--backend", backend)[0] == 0


def test_a_key_may_hold_a_colon(command_line: Run) -> None:
    Path("id.dml").write_text("model m(x: f32[2]) -> (`out:0`) {\n    return x + 1\n}\n")
    assert command_line("run", "id.dml", "--random", "1", "-o", "q.npz")[0] == 0
    assert command_line("run", "id.dml", "--input", "x=q.npz:out:0")[0] == 0


def test_ranks_above_eight_come_down(command_line: Run) -> None:
    Path("r9.dml").write_text(
        "model m(x: f32[2, 1, 2, 1, 2, 2, 2, 1, 2]) -> (a, b, c) {\n    a = reduce_sum(x, axes=[0, 2, 5, 8])\n"
        "    b = argmax(x, axes=[4, 5])\n    c = hardmax(x, axes=[4, 5])\n    return a, b, c\n}\n"
    )
    results = [
        command_line("run", "r9.dml", "--random", "1", "--backend", b, "--format", "json") for b in ("cpu", "numpy")
    ]
    assert [code for code, _, _ in results] == [0, 0]
    first, second = [json.loads(out)["outputs"] for _, out, _ in results]
    assert first["b"]["values"] == second["b"]["values"]
    assert first["c"]["values"] == second["c"]["values"]
    np.testing.assert_allclose(first["a"]["values"], second["a"]["values"], rtol=1e-6)  # f32 sums of 16
