"""Two whole files, word for word: what a user reads. ``golden_models.py`` writes them anew."""

from __future__ import annotations

import ast

import numpy as np
import pytest
from golden_models import FOLDER, GOLDEN
from numpy_models import check, function, source

#: In the helper that shares work, where THREADS is set.
THREADS = "from concurrent.futures import ThreadPoolExecutor"


@pytest.mark.parametrize("name", GOLDEN)
def test_text(name: str) -> None:
    assert source(GOLDEN[name]()) == (FOLDER / f"{name}.py").read_text(encoding="utf-8")


def test_no_golden_file_without_a_graph() -> None:
    assert {p.stem for p in FOLDER.glob("*.py")} == set(GOLDEN)


@pytest.mark.parametrize("name", GOLDEN)
def test_only_numpy_is_imported(name: str) -> None:
    tree = ast.parse((FOLDER / f"{name}.py").read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, (ast.Import, ast.ImportFrom))]
    assert {ast.unparse(node) for node in imports} - {THREADS} == {"import numpy as np"}


def test_detection_head_agrees_with_the_reference() -> None:
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(2, 9, 80)).astype(np.float32)
    image = rng.integers(-3, 3, (2, 3, 4, 5)).astype(np.float16)
    check(GOLDEN["detection_head"](), logits, image)


def test_nearest_neighbours_agrees_with_the_reference() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 12, 30).astype(np.uint32)  # 10 and 11 are not classes: they get no vote
    known = rng.integers(0, 17, (30, 64)).astype(np.float32)
    images = rng.integers(0, 17, (4, 64)).astype(np.uint8)
    check(GOLDEN["nearest_neighbours"](), images, known, labels, np.array([3, 2, 2, 1, 1], np.int32))


def test_parameters_and_annotations() -> None:
    made = function((FOLDER / "detection_head.py").read_text(encoding="utf-8"), "detection_head")
    assert made.__annotations__ == {"logits": np.ndarray, "image": np.ndarray, "return": tuple[np.ndarray, ...]}
    assert "logits : float32, shape (batch, anchors, 80)" in made.__doc__
    assert "8 <= anchors <= 8400" in made.__doc__
