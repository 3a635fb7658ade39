"""The debugging verbs in Python and on a terminal: typed results, a progress line, and interrupts."""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest
from msgspec import Struct
from onnx import parser

import dmlc
from dmlc.cli import decompose as decompose_verb
from dmlc.cli.main import main
from dmlc.cli.progress import Progress

OPSET = '<ir_version: 8, opset_import: ["": 17]>'
PROGRAM = "model m(x: f32[N, 8]) -> (y) {\n    t = x * 2\n    y = softmax(t, axes=[1])\n    return y\n}\n"


def model(factor: float) -> onnx.ModelProto:
    text = f"c = Constant<value = float {{{factor}}}>() [scale] t = Mul(x, c) [last] y = Softmax(t)"
    return parser.parse_model(f"{OPSET} g (float[N, 3] x) => (float[N, 3] y) {{ {text} }}")


def results() -> Iterator[Any]:
    a, b = model(2.0), model(2.5)
    yield dmlc.diff(a, b)
    yield dmlc.locate(a, b, inputs=2)
    yield dmlc.bisect(a, against=b, inputs=2)
    yield dmlc.repro(a, against=b, inputs=2)
    yield dmlc.api.decomposition.stayed(
        dmlc.decompose(
            parser.parse_model(f"""{OPSET} g (float[3, 3] a) => (float[3] y) {{
        y = Einsum<equation = "ii->i">(a)
    }}""")
        )
    )[0]


def records(value: Any) -> Iterator[Any]:
    """The records of a result, its own and those of its fields."""
    if isinstance(value, Struct) or (dataclasses.is_dataclass(value) and not isinstance(value, type)):
        yield value
        for name in names_of(value):
            yield from records(getattr(value, name))
    elif isinstance(value, tuple):
        for item in value:
            yield from records(item)


def names_of(record: Any) -> list[str]:
    """The fields of a record."""
    if isinstance(record, Struct):
        return list(record.__struct_fields__)
    return [field.name for field in dataclasses.fields(record)]


# --- typed results


def test_results_are_frozen_records() -> None:
    seen = set()
    for result in results():
        for record in records(result):
            seen.add(type(record).__name__)
            for name in names_of(record):
                with pytest.raises(AttributeError):
                    setattr(record, name, None)
    assert {"ModelDiff", "LocatedVerdict", "Location", "BisectResult", "Repro", "StayedNode", "NodeRecord"} <= seen


def test_plain_data_of_results_is_json() -> None:
    for result in results():
        if hasattr(result, "to_json"):
            assert isinstance(json.loads(json.dumps(result.to_json())), dict)


# --- progress


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    onnx.save(model(2.0), "a.onnx")
    onnx.save(model(2.5), "b.onnx")
    Path("m.dml").write_text(PROGRAM)
    return tmp_path


COMMANDS = (
    "compile m.dml -o o.onnx",
    "check m.dml",
    "run m.dml --random 1 --backend reference",
    "bench m.dml --random 1 --provider cpu --rounds 1",
    "explain m.dml",
    "explain a.onnx --node scale",
    "inspect m.dml",
    "verify a.onnx b.onnx --locate",
    "diff a.onnx b.onnx",
    "bisect a.onnx --against b.onnx --inputs 2",
    "repro a.onnx --against b.onnx --inputs 2 -o bug.zip",
    "decompose a.onnx -o o.onnx",
)


@pytest.mark.usefixtures("folder", "sessions_here")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_verb_shows_its_progress_on_a_terminal(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[bool] = []
    monkeypatch.setattr(Progress, "__enter__", lambda self: shown.append(self.shown) or self)
    monkeypatch.setattr(Progress, "__exit__", lambda self, *_: None)
    monkeypatch.setattr(type(sys.stderr), "isatty", lambda self: True)
    monkeypatch.setenv("TERM", "xterm")
    assert main(command.split()) in (0, 1)
    assert shown, "it works without a progress line"
    assert all(shown)
    shown.clear()
    assert main([*command.split(), "-q"]) in (0, 1)
    assert not any(shown)


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "command", [c for c in COMMANDS if c.split()[0] in ("verify", "diff", "bisect", "repro", "decompose")]
)
def test_quiet_leaves_stderr_to_errors(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    code = main([*command.split(), "-q"])
    err = capsys.readouterr().err
    assert all(line.startswith(("error", "  ")) for line in err.splitlines()), err
    assert code or not err


# --- interrupts


def test_an_interrupt_leaves_nothing_half_written(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    Path("o.onnx").write_bytes(b"older")

    def interrupted(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    for place in ("decompose", "_write"):
        with monkeypatch.context() as patched:
            patched.setattr(decompose_verb, place, interrupted)
            assert main(["decompose", "a.onnx", "-o", "o.onnx"]) == 130
    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", interrupted)
        assert main(["decompose", "a.onnx", "-o", "o.onnx"]) == 130
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == {**before, "o.onnx": b"older"}


def test_other_names_are_compared_by_position() -> None:
    body = "[scale] t = Add(x, x) [last] y = Softmax(t)"
    first = parser.parse_model(f"{OPSET} g (float[N, 3] x) => (float[N, 3] y) {{ {body} }}")
    text = f"{OPSET} g (float[N, 3] x) => (float[N, 3] z) {{ {body.replace('y =', 'z =')} }}"
    other = parser.parse_model(text)
    wrong = parser.parse_model(text.replace("Add(x", "Mul(x"))
    more = parser.parse_model(text.replace("3] z", "3] z, float[N, 3] t"))
    same = dmlc.verify(first, other, inputs=2)
    assert (same.answer, same.notes[0]) == ("same", "compared by position: y is z in B")
    found = dmlc.locate(first, wrong, inputs=2)
    assert (found.verdict.answer, found.location is not None) == ("different", True)
    assert dmlc.bisect(wrong, against=first, inputs=2).found
    unlike = dmlc.verify(first, more, inputs=2)
    why = "nothing was compared: the outputs are y in the original and z, t in the result"
    assert (unlike.answer, unlike.reason) == ("not comparable", why)


#: A process that is started where SIGINT is ignored ignores it too, as a shell starts those in the background.
WAITS = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, 'SIGHUP'):  # a suite that runs under nohup has it ignored
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
from {module} import {name} as waited
def wait(*args, **keywords):
    print("started", flush=True)
    time.sleep(60)
import {module} as home
home.{name} = wait
from dmlc.cli.main import entry
entry()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no SIGINT for one process")
@pytest.mark.parametrize(
    ("command", "module", "name", "sent"),
    [
        ("verify a.onnx b.onnx --locate", "dmlc.debugging.verification", "locate_first", "SIGINT"),
        ("compile a.onnx -o o.onnx --verify 3", "dmlc.verifying", "verify_models", "SIGHUP"),
    ],
)
def test_a_signal_ends_a_verb(command: str, module: str, name: str, sent: str, folder: Path) -> None:
    before = sorted(path.name for path in folder.iterdir())
    code = WAITS.format(module=module, name=name)
    words = [sys.executable, "-c", code, *command.split()]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"started\n"
        number = getattr(signal, sent)
        process.send_signal(number)
        assert process.wait(30) == (-number if sent == "SIGINT" else 128 + number)
        assert b"Traceback" not in process.stderr.read()
    assert sorted(path.name for path in folder.iterdir()) == before
