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

ROOT = Path(dmlc.__file__).parents[1]
#: The body of the package's ``__init__.py``, by what is wrong with it.
BROKEN = {
    "import-error": "raise ImportError('DLL load failed while importing native: module not found')",
    "os-error": "raise OSError('libnative.so.1: cannot open shared object file')",
    "exit": "raise SystemExit(7)",
    "needs-another": "import a_package_that_nobody_has",
    "without-a-part": "import {name}.native",
    "stub": "InferenceSession = None",
    "empty": "",
}
#: Ways in which a library is missing: a folder that an uninstall left, and the ways in which an import fails.
MISSING = {
    "missing": "raise ModuleNotFoundError(f'No module named {name!r}', name=name)",
    "blocked": "raise ImportError('blocked')",
    "leftover": "return None if '.' in name else importlib.machinery.ModuleSpec(name, None, is_package=True)",
}
#: The faults that are tried of each library.
FAULTS: dict[str, tuple[str, ...]] = {
    "onnxruntime": ("missing", "leftover", *BROKEN),
    "numpy": ("missing", "blocked", "needs-another", "empty"),
    "onnx": ("missing", "leftover", "os-error", "empty"),
    **dict.fromkeys(("lark", "msgspec"), ("missing", "empty")),
}
#: One process for all faults of a library, which it never imports: each fault has a fork of it, or on Windows dmlc is
#: loaded anew.
DRIVER = """
import contextlib, importlib, importlib.machinery, io, json, os, sys
LIBRARY = sys.argv[1]
class Finder:
    def __init__(self, action):
        scope = {"importlib": importlib}
        exec("def spec(name):\\n    " + action, scope)
        self.spec = scope["spec"]
    def find_spec(self, name, path=None, target=None):
        if name == LIBRARY or name.startswith(LIBRARY + '.'):
            return self.spec(name)
def run(words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = importlib.import_module("dmlc.cli.main").main(words)
    return code, out.getvalue(), err.getvalue()
def outcomes(job):
    if job["action"]:
        sys.meta_path.insert(0, Finder(job["action"]))
    sys.path[1:1] = job["path"]
    importlib.invalidate_caches()
    return [run(words) for words in job["commands"]]
def in_a_fork(job):
    reader, writer = os.pipe()
    if not os.fork():
        with open(writer, "w", encoding="utf-8") as pipe:
            json.dump(outcomes(job), pipe)
        os._exit(0)
    os.close(writer)
    with open(reader, encoding="utf-8") as pipe:
        found = json.load(pipe)
    os.wait()
    return found
def anew(job):
    for name in [*sys.modules]:
        if name.split(".")[0] in ("dmlc", LIBRARY):
            del sys.modules[name]
    finders, path = sys.meta_path[:], sys.path[:]
    found = outcomes(job)
    sys.meta_path[:], sys.path[:] = finders, path
    return found
jobs = json.load(sys.stdin)
for name in sys.argv[2:]:
    importlib.import_module(name)
assert LIBRARY not in sys.modules
print(json.dumps({job["fault"]: (in_a_fork if hasattr(os, "fork") else anew)(job) for job in jobs}))
"""
PROGRAM = "model m(x: f32[3, 4]) -> (y) {\n    y = argmax(x, axes=[0, 1])\n    return y\n}\n"
#: Modules that a process loads before the faults of a library: those that never import it on their own.
BEFORE: dict[str, tuple[str, ...]] = {
    "onnxruntime": ("dmlc.cli.compile", "dmlc.importers.model", "dmlc.codegen.onnx", "dmlc.cli.run", "dmlc.cli.bench"),
    "numpy": ("lark", "msgspec"),
    "onnx": ("lark", "msgspec", "numpy"),
    "lark": ("msgspec", "onnx"),
    "msgspec": ("lark", "onnx"),
}
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
#: Commands of each kind, for faults that differ in how an import fails: text and generated code, models and kernels.
FEW = (["compile", "a.dml", "-o", "b.py"], ["compile", "a.onnx", "-o", "c.onnx", "--target", "cpu"])
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


Commands = tuple[list[str], ...]
Outcome = tuple[int, str, str]


def tried(library: str, fault: str) -> Commands:
    """The commands that run with a library at fault: all if it is missing, otherwise one for each way to load it."""
    if library == "onnxruntime":
        if fault == "missing":
            return WITHOUT_RUNTIME + WITH_RUNTIME
        return FEW[1:2] + (WITH_RUNTIME if fault == "stub" else WITH_RUNTIME[1:4:2] + WITH_RUNTIME[5:6])
    if fault == "missing":
        return WITHOUT_LIBRARIES + WITHOUT_RUNTIME + WITH_RUNTIME[2:3] + WITH_RUNTIME[4:6]
    return WITHOUT_LIBRARIES + FEW + WITH_RUNTIME[1:2]


def outcomes(library: str, folder: Path) -> dict[str, list[Outcome]]:
    """The exit code, stdout and stderr of the commands of each fault of a library, from one process."""
    (folder / "a.dml").write_text(PROGRAM)
    dmlc.compile(str(folder / "a.dml")).save(folder / "a.onnx")
    jobs: list[dict[str, Any]] = []
    for fault in FAULTS[library]:
        path = []
        if fault in BROKEN:
            package = folder / fault / library
            package.mkdir(parents=True)
            (package / "__init__.py").write_text(BROKEN[fault].format(name=library))
            path = [str(package.parent)]
        words = tried(library, fault)
        jobs.append({"fault": fault, "action": MISSING.get(fault, ""), "path": path, "commands": words})
    done = subprocess.run(
        [sys.executable, "-c", DRIVER, library, *BEFORE[library]],
        input=json.dumps(jobs), cwd=folder, capture_output=True, text=True, timeout=600,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found: dict[str, list[Outcome]] = json.loads(done.stdout)
    return found


def diagnostic(words: list[str], out: str, err: str) -> str:
    """The error as text, of the JSON document if that was asked for."""
    if "json" not in words:
        return err
    document: dict[str, Any] = json.loads(out)
    assert document["ok"] is False
    (found,) = document["diagnostics"]
    return f"{found['severity']}[{found['code']}]: {found['message']} {found['help']}"


def test_only_what_runs_models_needs_onnx_runtime(tmp_path: Path) -> None:
    for fault, found in outcomes("onnxruntime", tmp_path).items():
        for words, (code, out, err) in zip(tried("onnxruntime", fault), found, strict=True):
            if words in WITHOUT_RUNTIME:
                assert (code, "error[" in err) == (0, False), (fault, words, err)
                continue
            text = diagnostic(words, out, err)
            assert code == 1 and text.startswith("error[E0560]: "), (fault, words, code, text)
            assert "onnxruntime" in text and "pip install" in text, (fault, words, text)
            assert "Traceback" not in err, (fault, words, text)


@pytest.mark.parametrize("library", [name for name in FAULTS if name != "onnxruntime"])
def test_a_command_works_or_names_the_library_to_install(tmp_path: Path, library: str) -> None:
    for fault, found in outcomes(library, tmp_path).items():
        failed = False
        for command, (code, out, err) in zip(tried(library, fault), found, strict=True):
            assert "I0901" not in out + err and "Traceback" not in err, (fault, command, err)
            if code != 0:
                assert command not in WITHOUT_LIBRARIES
                text = diagnostic(command, out, err)
                assert code == 1 and text.startswith(("error[E0560]: ", "error[E0561]: ")), (fault, command, text)
                assert library in text and "pip install" in text, (fault, command, text)
                failed = True
        assert failed, fault
