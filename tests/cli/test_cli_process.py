"""The command line as its own process: what it loads, pipes that close, signals, bugs."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import dmlc as package
from dmlc.cli import main as cli
from dmlc.cli.main import main

ROOT = Path(package.__file__).parents[1]


def python(*argv: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *argv], cwd=cwd, env=env, capture_output=True, text=True, timeout=120, check=False
    )


def shell(command: str, cwd: Path) -> tuple[int, str, str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    line = f"'{sys.executable}' -m dmlc {command}"
    done = subprocess.run(line, shell=True, cwd=cwd, env=env, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("argv", [["--help"], ["--version"], ["-h"]])
def test_help_loads_no_library(tmp_path: Path, argv: list[str]) -> None:
    code = (
        "import sys\nfrom dmlc.cli.main import main\n"
        f"code = main({argv!r})\n"
        "heavy = {'numpy', 'lark', 'onnx', 'onnxruntime', 'argparse', 'typing'} & set(sys.modules)\n"
        "assert not heavy, heavy\nsys.exit(code)\n"
    )
    done = python("-c", code, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(("usage: dmlc", "dmlc "))


@pytest.mark.parametrize(
    ("program", "absent"),
    [
        ("import dmlc; dmlc.__version__", {"numpy", "typing"}),
        ("import dmlc; dmlc.Graph('g')", {"lark", "onnx", "onnxruntime"}),
        (
            "import dmlc; g = dmlc.Graph('g'); g.output('y', -g.input('x', 'f32', 3)); "
            "dmlc.compile(g, target='numpy').run({'x': [1.0, 2.0, 3.0]})",
            {"lark", "onnx", "onnxruntime"},
        ),
        ("from dmlc.cli.main import main; main(['targets'])", {"lark", "onnx", "onnxruntime"}),
        ("from dmlc.cli.main import main; main(['ops'])", {"lark", "onnx", "onnxruntime"}),
    ],
)
def test_libraries_are_loaded_when_they_are_needed(tmp_path: Path, program: str, absent: set[str]) -> None:
    done = python("-c", f"{program}\nimport sys\nassert not {absent!r} & set(sys.modules)", cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_python_m_dmlc(tmp_path: Path) -> None:
    (tmp_path / "m.dml").write_text("model m(x: f32[3]) -> (y) {\n    y = argmx(x)\n    return y\n}\n")
    done = python("-m", "dmlc", "check", "m.dml", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error[E02")
    assert '"argmax"' in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="pipes of POSIX")
def test_a_pipe_that_closes_is_no_error(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = f"{sys.executable} -m dmlc ops | head -n 1"
    done = subprocess.run(command, shell=True, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr == ""
    argv = [sys.executable, "-m", "dmlc", "ops"]
    reader = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert reader.stdout is not None
    assert reader.stderr is not None
    reader.stdout.close()
    assert reader.stderr.read() == b""
    assert reader.wait(60) == 141
    reader.stderr.close()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is always full")
def test_a_full_disk(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    for verb in (["explain", "E0301"], ["--help"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run(
                [sys.executable, "-m", "dmlc", *verb],
                env=env,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
        assert done.returncode == 2
        assert done.stderr == "dmlc: cannot write to stdout: No space left on device\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a disk that is always full")
@pytest.mark.parametrize("stderr", ["2>&-", "2>/dev/full", "<&- 2>&-"])
def test_messages_that_cannot_be_written_change_nothing(tmp_path: Path, stderr: str) -> None:
    # the exit code was 1, after a traceback that nobody saw
    tmp_path.joinpath("m.dml").write_text("model m(x: f32[2]) -> (y) {\n    y = -x\n    return y\n}\n")
    verbs = {
        "2>&-": [("compile m.dml", 0), ("check none.dml", 2)],
        "2>/dev/full": [("compile m.dml", 0), ("no", 2)],
        "<&- 2>&-": [("compile m.dml -o - --format json", 2)],
    }[stderr]
    for verb, code in verbs:
        assert shell(f"{verb} {stderr}", tmp_path) == (code, "", "")
    written = ["m.onnx"] if ("compile m.dml", 0) in verbs else []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.dml", *written]
    assert shell(f"explain E0301 --format json {stderr}", tmp_path)[0] == 0


@pytest.mark.skipif(sys.platform == "win32", reason="the shell of POSIX")
@pytest.mark.parametrize("closed", [">&-", "<&- >&-"])
def test_a_closed_stdout(tmp_path: Path, closed: str) -> None:
    tmp_path.joinpath("m.dml").write_text("model m(x: f32[2]) -> (y) {\n    y = -x\n    return y\n}\n")
    # bytes, a page, text and a document: the pages are of verbs that start fast
    verbs = ["--help", "explain E0301", "explain E0301 --format json -q"] if closed == ">&-" else ["compile m.dml -o -"]
    for verb in verbs:
        assert shell(f"{verb} {closed}", tmp_path) == (2, "", "dmlc: cannot write to stdout: it is closed\n")
    assert shell(f"compile m.dml -q {closed}", tmp_path) == (0, "", "")  # says nothing there


@pytest.mark.skipif(os.name == "nt", reason="shells of POSIX")
def test_stdin_that_is_closed(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = f"{sys.executable} -m dmlc check - <&-"
    done = subprocess.run(command, shell=True, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error[E0420]: cannot open stdin")


def test_interrupts(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(argv: list[str]) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_dispatch", interrupt)
    assert main(["check"]) == 130


def test_an_interrupt_waits_for_the_setup_of_an_extension_module(monkeypatch: pytest.MonkeyPatch) -> None:
    is_whole = False

    def setup() -> None:
        nonlocal is_whole
        signal.raise_signal(signal.SIGINT)
        is_whole = True

    class ExtensionFileLoader:  # as importlib names it
        def exec_module(self) -> None:
            setup()

    def lists(*_: object) -> None:
        ExtensionFileLoader().exec_module()
        raise AssertionError("the interrupt is lost")

    monkeypatch.setattr("dmlc.cli.ops.run", lists)
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert main(["ops"]) == 130
    finally:
        signal.signal(signal.SIGINT, handler)
    assert is_whole


def test_a_bug_of_ours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from dmlc.cli import targets

    def broken(*_: object) -> int:
        raise RuntimeError("the sky fell")

    monkeypatch.setattr(targets, "run", broken)
    assert main(["targets"]) == 3
    err = capsys.readouterr().err
    assert err.startswith("error[I0901]: RuntimeError: the sky fell")
    assert "Traceback" not in err
    assert main(["targets", "-v"]) == 3
    assert "Traceback" in capsys.readouterr().err
    assert main(["targets", "--format", "json"]) == 3
    captured = capsys.readouterr()
    assert '"I0901"' in captured.out
