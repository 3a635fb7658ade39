"""Every verb without the libraries of dmlc, and with broken ones: an error that names what to install, never a bug."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dmlc

#: The body of the package's ``__init__.py``, by what is wrong with it.
BROKEN = {
    "import-error": "raise ImportError('DLL load failed while importing native: module not found')",
    "os-error": "raise OSError('libnative.so.1: cannot open shared object file')",
    "other-error": "raise RuntimeError('built for another processor')",
    "exit": "raise SystemExit(7)",
    "needs-another": "import a_package_that_nobody_has",
    "without-a-part": "import {name}.native",
    "stub": "InferenceSession = None",
    "empty": "",
}
#: How a library is missing: a folder that an uninstall left, and the ways in which an import fails.
MISSING = {
    "missing": "raise ModuleNotFoundError(f'No module named {name!r}', name=name)",
    "blocked": "raise ImportError('blocked')",
    "leftover": "return None if '.' in name else importlib.machinery.ModuleSpec(name, None, is_package=True)",
}
FINDER = """
import importlib.machinery
class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == LIBRARY or name.startswith(LIBRARY + '.'):
            ACTION
sys.meta_path.insert(0, Finder)
"""
DRIVER = """
import contextlib, io, json, sys
LIBRARY = sys.argv[1]
PRELUDE
from dmlc.cli.main import main
results = []
for words in json.loads(sys.argv[2]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    results.append((code, out.getvalue(), err.getvalue()))
print(json.dumps(results))
"""
PROGRAM = "model m(x: f32[3, 4]) -> (y) {\n    y = argmax(x, axes=[0, 1])\n    return y\n}\n"
#: Commands that need no ONNX Runtime.
WITHOUT_RUNTIME = (
    ["compile", "a.dml", "-o", "b.onnx"],
    ["compile", "a.dml", "-o", "b.py"],
    ["compile", "a.onnx", "-o", "c.onnx", "--target", "cpu"],
    ["check", "a.dml"],
    ["check", "a.onnx"],
    ["fmt", "a.dml"],
    ["explain", "a.dml"],
    ["explain", "E0301"],
    ["inspect", "a.onnx"],
    ["ops", "argmax"],
    ["targets", "cpu"],
    ["run", "a.dml", "--random", "1", "--backend", "numpy"],
    ["run", "a.dml", "--random", "1", "--backend", "reference"],
)
#: Commands of each kind, for faults that differ in how an import fails: text, models, generated code, kernels.
FEW = (
    ["compile", "a.dml", "-o", "b.py"],
    ["compile", "a.onnx", "-o", "c.onnx", "--target", "cpu"],
    ["check", "a.onnx"],
    ["run", "a.dml", "--random", "1", "--backend", "reference"],
)
#: Commands that need no library: the page of a code is what errors of missing libraries refer to.
WITHOUT_LIBRARIES = (["explain", "E0560"], ["explain", "E0561", "--format", "json"])
WITH_RUNTIME = (
    ["run", "a.dml", "--random", "1"],
    ["run", "a.onnx", "--random", "1", "--backend", "cpu"],
    ["run", "a.onnx", "--random", "1", "--target", "cpu", "--format", "json"],
    ["run", "a.dml", "--random", "1", "--backend", "dml"],
    ["bench", "a.dml", "--random", "1"],
    ["bench", "a.onnx", "--random", "1", "--provider", "cpu", "--format", "json"],
    ["bench", "a.onnx", "--random", "1", "--provider", "dml"],
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.dml").write_text(PROGRAM)
    dmlc.compile(str(tmp_path / "a.dml")).save(tmp_path / "a.onnx")
    return tmp_path


def commands(folder: Path, library: str, fault: str, words: tuple[list[str], ...]) -> list[tuple[int, str, str]]:
    """The exit code, stdout and stderr of each command, all run in one process in which the library is at fault."""
    prelude = FINDER.replace("ACTION", MISSING[fault]) if fault in MISSING else ""
    path = [str(Path(dmlc.__file__).parents[1])]
    if fault in BROKEN:
        package = folder / "broken" / library
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(BROKEN[fault].format(name=library))
        path.insert(0, str(package.parent))
    done = subprocess.run(
        [sys.executable, "-c", DRIVER.replace("PRELUDE", prelude), library, json.dumps(words)],
        cwd=folder, capture_output=True, text=True, timeout=300,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [(code, out, err) for code, out, err in json.loads(done.stdout)]


def diagnostic(words: list[str], out: str, err: str) -> str:
    """The error as text, of the JSON document if that was asked for."""
    if "json" not in words:
        return err
    document: dict[str, Any] = json.loads(out)
    assert document["ok"] is False
    (found,) = document["diagnostics"]
    return f"{found['severity']}[{found['code']}]: {found['message']} {found['help']}"


@pytest.mark.parametrize("fault", [*MISSING, *BROKEN])
def test_only_what_runs_models_needs_onnx_runtime(folder: Path, fault: str) -> None:
    tried = (WITHOUT_RUNTIME if fault == "missing" else FEW) + WITH_RUNTIME
    for words, (code, out, err) in zip(tried, commands(folder, "onnxruntime", fault, tried), strict=True):
        if words in WITHOUT_RUNTIME:
            assert (code, "error[" in err) == (0, False), (words, err)
            continue
        text = diagnostic(words, out, err)
        assert code == 1 and text.startswith("error[E0560]: "), (words, code, text)
        assert "onnxruntime" in text and "pip install" in text and "Traceback" not in err, (words, text)


@pytest.mark.parametrize(
    ("library", "fault"),
    [(library, fault) for library in ("numpy", "onnx") for fault in (*MISSING, "os-error", "needs-another", "empty")]
    + [("lark", fault) for fault in ("missing", "os-error", "empty")]
    + [("networkx", fault) for fault in ("missing", "os-error")],
)
def test_a_command_works_or_names_the_library_to_install(folder: Path, library: str, fault: str) -> None:
    words = WITHOUT_LIBRARIES + FEW + WITH_RUNTIME[1:2]
    if fault == "missing":
        words = WITHOUT_LIBRARIES + WITHOUT_RUNTIME + WITH_RUNTIME[:3] + WITH_RUNTIME[4:6]
    failed = 0
    for command, (code, out, err) in zip(words, commands(folder, library, fault, words), strict=True):
        assert "I0901" not in out + err and "Traceback" not in err, (command, err)
        if code != 0:
            assert command not in WITHOUT_LIBRARIES
            text = diagnostic(command, out, err)
            assert code == 1 and text.startswith(("error[E0560]: ", "error[E0561]: ")), (command, code, text)
            assert library in text and "pip install" in text, (command, text)
            failed += 1
    assert bool(failed) == (library != "networkx")
