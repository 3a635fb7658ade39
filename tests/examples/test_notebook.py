"""The notebook of the examples runs, and shows what it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).parents[2] / "examples" / "05_builder" / "classes.ipynb"


def test_the_notebook_runs_and_shows_each_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed")
    nbformat: Any = pytest.importorskip("nbformat")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_PLATFORM_DIRS", "1")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3")
    client.execute(cwd=str(tmp_path))
    shown = [output["data"] for cell in notebook.cells for output in cell.get("outputs", ()) if "data" in output]
    graph, program, placement, verdict, shapes = shown
    assert "<td>softmax</td>" in graph["text/html"]
    assert "<svg" in program["text/html"]
    assert "all on DirectML, in 1 fused graph" in placement["text/plain"]
    assert 'class="verdict good"' in verdict["text/html"]
    assert "'cls': (1, 225, 1)" in shapes["text/plain"]
    assert (tmp_path / "classes.onnx").exists()
