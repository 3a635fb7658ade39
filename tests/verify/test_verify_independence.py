"""The check shares no code with what it checks: nothing of the passes, the code generators, the front ends."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import dmlc
from tests.rows import each_row

PACKAGE = Path(dmlc.__file__).parent
#: Packages that it may share: what a graph is, what its operations mean, what runs a model, errors, processes.
SHARED = {"verifying", "runtime", "ir", "ops", "diagnostics", "workers"}
#: Modules that it may share: where nodes of a file hold graphs, names of domains, and names that are loaded late.
MODULES = {"dmlc.onnx_schema.nested", "dmlc.onnx_schema.domains", "dmlc.lazy_names"}
LOADED = """
import pkgutil, sys, importlib, dmlc.verifying
for found in pkgutil.iter_modules(dmlc.verifying.__path__):
    importlib.import_module(f"dmlc.verifying.{found.name}")
print(*sorted(name for name in sys.modules if name.startswith("dmlc.")))
"""


@each_row("path", sorted((PACKAGE / "verifying").glob("*.py")), ids=lambda path: path.stem)
def test_imports(path: Path) -> None:
    """At any depth, those for type checkers too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom):
            assert node.module is not None
            names = [f"{node.module}.{alias.name}" if node.module == "dmlc" else node.module for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            assert not name.startswith("dmlc") or name in MODULES or name.split(".")[1] in SHARED, name


def test_what_is_loaded() -> None:
    """Also through what it shares."""
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    loaded = {*done.stdout.split()}
    assert {name.split(".")[1] for name in loaded - MODULES - {"dmlc.onnx_schema"}} <= SHARED
    assert "dmlc.verifying.check" in loaded
