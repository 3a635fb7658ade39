"""The small jobs of ``examples/06_ci``: their numbers against NumPy, and the commands that their page names."""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dmlc
from dmlc.cli.main import main
from tests.rows import each_row

FOLDER = Path(__file__).parents[2] / "examples/06_ci"
RNG = np.random.default_rng(11)
Arrays = Mapping[str, "np.ndarray[Any, Any]"]


def softmax(x: np.ndarray, axis: int | tuple[int, ...]) -> np.ndarray:
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def metrics(logits: np.ndarray, labels: np.ndarray) -> Arrays:
    p = softmax(logits.astype(np.float64), 1)
    order = np.argsort(-logits, axis=1, kind="stable")[:, :5]
    return {
        "loss": -np.log(p[np.arange(len(labels)), labels]).mean(),
        "top_5": np.mean([label in row for label, row in zip(labels, order, strict=True)]),
    }


def candidates(boxes_xyxy: np.ndarray, scores: np.ndarray) -> Arrays:
    at = np.argsort(-scores, axis=1, kind="stable")[:, :100]
    kept = np.take_along_axis(boxes_xyxy, at[..., None], 1)
    iou = np.empty((len(kept), 100, 100))
    for n, boxes in enumerate(kept.astype(np.float64)):
        for i, a in enumerate(boxes):
            low, high = np.maximum(a[:2], boxes[:, :2]), np.minimum(a[2:], boxes[:, 2:])
            both = np.prod(np.maximum(high - low, 0), axis=1)
            areas = np.prod(boxes[:, 2:] - boxes[:, :2], axis=1)
            iou[n, i] = both / (np.prod(a[2:] - a[:2]) + areas - both)
    return {"kept": kept, "score": np.take_along_axis(scores, at, 1), "iou": iou}


def keypoints(maps: np.ndarray) -> Arrays:
    n, k, height, width = maps.shape
    at = maps.reshape(n, k, -1).argmax(-1)
    p = softmax(maps.astype(np.float64), (2, 3))
    x, y = (p.sum(2) * np.arange(width)).sum(-1), (p.sum(3) * np.arange(height)).sum(-1)
    return {"hard": np.stack([at % width, at // width], 2), "soft": np.stack([x, y], 2), "peak": maps.max((2, 3))}


def scores(q: np.ndarray, k: np.ndarray, scale: np.ndarray) -> Arrays:
    a, b = (x.astype(np.float64) / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + 1e-5) for x in (q, k))
    s = (a * scale) @ (b * scale).transpose(0, 2, 1) / 8
    return {"top": s.max(-1, keepdims=True), "mean": s.mean(-1, keepdims=True), "spread": s.std(-1, keepdims=True)}


def boxes_of(n: int, count: int) -> np.ndarray:
    low = RNG.uniform(0, 500, (n, count, 2))
    return np.concatenate([low, low + RNG.uniform(5, 100, low.shape)], 2).astype(np.float32)


def normal(*shape: int, dtype: str = "float32") -> np.ndarray:
    return RNG.standard_normal(shape).astype(dtype)


#: Reference, inputs, relative tolerance: sums of f32, and products of 64 terms in f16.
JOBS: dict[str, tuple[Any, Arrays, float]] = {
    "metrics": (metrics, {"logits": normal(7, 1000), "labels": RNG.integers(0, 1000, 7)}, 1e-5),
    "nms": (candidates, {"boxes_xyxy": boxes_of(2, 150), "scores": RNG.random((2, 150), np.float32)}, 1e-4),
    "keypoints": (keypoints, {"maps": 4 * normal(2, 3, 6, 9)}, 1e-4),
    "scores": (
        scores,
        {
            "q": normal(2, 5, 64, dtype="float16"),
            "k": normal(2, 5, 64, dtype="float16"),
            "scale": normal(64, dtype="float16"),
        },
        1e-2,
    ),
}


@each_row("target", ["directml", "cpu", "numpy"])
@each_row("name", JOBS)
def test_numbers(name: str, target: str) -> None:
    reference, feeds, tolerance = JOBS[name]
    program = dmlc.compile(FOLDER / f"{name}.dml", target=target, accumulate="f32")
    found, expected = program.run(dict(feeds), "numpy" if target == "numpy" else "cpu"), reference(**feeds)
    assert set(found) == set(expected)
    for output, array in expected.items():
        np.testing.assert_allclose(found[output].astype(np.float64), array, rtol=tolerance, atol=tolerance)


def test_the_same_in_python() -> None:
    graph = runpy.run_path(str(FOLDER / "scores.py"))["g"]
    feeds = dict(JOBS["scores"][1])
    found = dmlc.compile(graph, accumulate="f32").run(feeds, "cpu")
    for name, array in dmlc.compile(FOLDER / "scores.dml", accumulate="f32").run(feeds, "cpu").items():
        np.testing.assert_array_equal(found[name], array)


def test_numpy_code_in_another_project(tmp_path: Path) -> None:
    """It is imported where nothing but numpy can be."""
    assert main(["compile", str(FOLDER / "keypoints.dml"), "-o", str(tmp_path / "keypoints.py"), "-q"]) == 0
    code = (
        "import sys, numpy as np\n"
        f"sys.path.insert(0, {str(tmp_path)!r})\nfrom keypoints import keypoints\n"
        "hard, soft, peak = keypoints(np.eye(4, dtype=np.float32).reshape(1, 1, 4, 4) * [0, 1, 2, 9])\n"
        "assert hard.tolist() == [[[3, 3]]] and 'dmlc' not in sys.modules\n"
    )
    code = code.replace("* [0, 1, 2, 9])", "* np.float32([0, 1, 2, 9]))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_a_step_of_continuous_integration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    programs = sorted(map(str, FOLDER.glob("*.dml")))
    assert main(["check", *programs]) == 0
    assert main(["fmt", "--check", *programs]) == 0
    wrong = tmp_path / "wrong.dml"
    wrong.write_text("model m(x: f32[3]) -> (y) {\n    y = x.sum()\n    return y\n}\n", "utf-8")
    capsys.readouterr()
    assert main(["check", *programs, str(wrong)]) == 1
    assert "reduce_sum(x" in capsys.readouterr().err


def test_shared_blocks(tmp_path: Path) -> None:
    (tmp_path / "blocks").mkdir()
    (tmp_path / "blocks/iou.dml").write_text(
        "def area(b) { return (b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1]) }\n"
    )
    main_file = tmp_path / "model.dml"
    main_file.write_text(
        'use area from "iou.dml"\n\nmodel m(b: f32[N, 4]) -> (y) {\n    y = area(b)\n    return y\n}\n', "utf-8"
    )
    program = dmlc.compile(main_file, include=[tmp_path / "blocks"])
    found = program.run({"b": np.float32([[0, 0, 2, 3], [1, 1, 2, 2]])}, "cpu")
    assert found["y"].tolist() == [6, 1]
