"""The examples of the repository with their data."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np

_FOLDER = Path(__file__).parents[2] / "examples"
_JOBS = sorted(f"06_ci/{path.stem}" for path in (_FOLDER / "06_ci").glob("*.dml"))
EXAMPLES = ["03_language", "more/keypoints", "more/ctc_greedy", "more/detection_head", "05_builder", *_JOBS]


def example(name: str) -> tuple[Any, dict[str, np.ndarray]]:
    """The arguments of ``dmlc.compile``, and the inputs by name."""
    if name in _JOBS:
        return (_FOLDER / name).with_suffix(".dml"), _job_data(name.rpartition("/")[2])
    if name == "05_builder":
        return _built(), _detection_data()
    source = _FOLDER / name / "model.dml"
    if name == "more/detection_head":
        return source, _detection_data()
    (stored,) = (_FOLDER / name).glob("*.npz")
    with np.load(stored) as data:
        if name == "03_language":
            return source, {"images": data["scans"], "truth": data["truth"]}
        return source, dict(data)


def _job_data(job: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(6)
    if job == "metrics":
        return {"logits": rng.random((4, 1000), np.float32), "labels": rng.integers(0, 1000, 4)}
    if job == "nms":
        corners = np.sort(rng.random((2, 120, 2, 2), np.float32), axis=2)
        return {"boxes_xyxy": corners.reshape(2, 120, 4), "scores": rng.random((2, 120), np.float32)}
    if job == "keypoints":
        return {"maps": rng.random((2, 3, 6, 9), np.float32)}
    shapes = {"q": (2, 5, 64), "k": (2, 5, 64), "scale": (64,)}
    return {name: rng.standard_normal(shape).astype(np.float16) for name, shape in shapes.items()}


def _detection_data() -> dict[str, np.ndarray]:
    return {key: np.load(_FOLDER / "more/detection_head" / f"{key}.npy") for key in ("logits", "image")}


def _built() -> Any:
    path = _FOLDER / "05_builder" / "model.py"
    spec = importlib.util.spec_from_file_location("example_builder", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.detection_head()
