"""The examples of the repository with their data."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

_FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(path.name for path in _FOLDER.iterdir() if path.is_dir() and path.name[:2].isdigit())


def example(name: str) -> tuple[Any, dict[str, np.ndarray]]:
    """The arguments of ``dmlc.compile``, and the inputs by name."""
    if name == "05_builder":
        return _built(), _detection_data()
    source = _FOLDER / name / "model.dml"
    if name == "04_detection_head":
        return source, _detection_data()
    (stored,) = (_FOLDER / name).glob("*.npz")
    with np.load(stored) as data:
        if name == "01_knn_digits":
            return source, {"images": data["scans"], "truth": data["truth"]}
        return source, dict(data)


def _detection_data() -> dict[str, np.ndarray]:
    return {key: np.load(_FOLDER / "04_detection_head" / f"{key}.npy") for key in ("logits", "image")}


def _built() -> Any:
    path = _FOLDER / "05_builder" / "model.py"
    spec = importlib.util.spec_from_file_location("example_builder", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.detection_head()
