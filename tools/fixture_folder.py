"""A folder of model fixtures: ONNX models with cases, inputs and the results of ONNX Runtime without optimizations."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np

from tools import ROOT

#: The environment variable that names the folder.
VARIABLE = "DMLC_MODELS"
#: Kinds of fixtures, and where they are in the folder.
PARTS = {"whole": ".", "patterns": "patterns", "torch": "torch"}
Case = tuple[dict[str, np.ndarray], dict[str, np.ndarray]]


def fixture_folder() -> Path | None:
    """The folder that ``DMLC_MODELS`` names, else ``shared/models`` beside the checkout; None if there is neither."""
    named = os.environ.get(VARIABLE)
    folder = Path(named) if named else ROOT.parent / "shared" / "models"
    return folder if folder.is_dir() else None


@cache
def fixtures(part: str) -> dict[str, Path]:
    """The models of a part of ``PARTS``, by name; empty without a folder."""
    folder = fixture_folder()
    if folder is None:
        return {}
    return {path.stem: path for path in sorted((folder / PARTS[part]).glob("*.onnx"))}


def cases(path: Path) -> list[Case]:
    """The inputs and the expected results of each case of a model."""
    found = [path.with_suffix(".npz"), *sorted(path.parent.glob(f"{path.stem}.[0-9]*.npz"))]
    return [_case(file) for file in found if file.exists()]


def _case(file: Path) -> Case:
    with np.load(file, allow_pickle=False) as arrays:
        feeds = {name[4:]: arrays[name] for name in arrays.files if name.startswith("in::")}
        results = {name[5:]: arrays[name] for name in arrays.files if name.startswith("out::")}
    return feeds, results
