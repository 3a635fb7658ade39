"""The blocks of the tutorial and of the how-to pages run, in an empty folder, as they are written."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dmlc
from tests.docs.blocks import run_page

DOCS = Path(__file__).parents[2] / "docs"
TUTORIAL = sorted((DOCS / "tutorial").glob("[0-9]*.md"))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which is the current one."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.usefixtures("sessions_here")
def test_the_tutorial_runs_part_by_part(folder: Path) -> None:
    """In one folder, as a reader works through it."""
    assert len(TUTORIAL) == 5
    for page in TUTORIAL:
        assert run_page(page) > 0


def test_the_rows_of_the_cookbook_compute_the_same() -> None:
    """All rows as the outputs of one program, against NumPy, and against PyTorch where it is installed."""
    text = DOCS.joinpath("how_to", "numpy_and_pytorch.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(.*?)` \| `(.*?)` \| `(.*?)` \|$", text, re.MULTILINE)
    assert len(rows) == 40
    (head,) = re.findall(r"^```dml\n(.*?)->", text, re.MULTILINE | re.DOTALL)
    outputs = [f"r{number}" for number in range(len(rows))]
    lines = [f"    {output} = {row[2]}\n" for output, row in zip(outputs, rows, strict=True)]
    names = ", ".join(outputs)
    program = dmlc.compile(dmlc.Source(f"{head}-> ({names}) {{\n{''.join(lines)}    return {names}\n}}\n"))
    rng = np.random.default_rng(0)
    feeds = {
        **{name: rng.integers(-3, 4, (4, 6, 8)).astype(np.float32) / 2 for name in "xy"},  # with ties
        "w": rng.standard_normal((8, 3), dtype=np.float32),
        "n": rng.integers(-9, 9, (4, 6, 8), dtype=np.int32),
        "m": rng.random((4, 6, 8)) < 0.5,
        "i": rng.integers(0, 6, 5),
    }
    results = program.run(feeds, "cpu")
    torch: Any = importlib.util.find_spec("torch") and importlib.import_module("torch")
    for output, (numpy_code, torch_code, code) in zip(outputs, rows, strict=True):
        expected = eval(numpy_code, {"np": np, **feeds})
        np.testing.assert_allclose(results[output], expected, rtol=1e-5, atol=1e-6, err_msg=code)  # sums of f32
        if torch:
            names_of_torch = {"torch": torch, "pad": torch.nn.functional.pad, "one_hot": torch.nn.functional.one_hot}
            found = eval(torch_code, names_of_torch, {name: torch.from_numpy(feed) for name, feed in feeds.items()})
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6, err_msg=torch_code)


@pytest.mark.cluster
def test_many_machines(folder: Path) -> None:
    """With processes of joblib and of dask, two at a time, one of which ends in the middle."""
    for library in ("joblib", "distributed", "dask.array"):
        pytest.importorskip(library, reason=f"{library} is not installed: pip install '.[cluster]'")
    assert run_page(DOCS / "how_to" / "many_machines.md") == 8
