"""The examples: every command of their READMEs runs, prints what the README shows, and the numbers are right.

The expected numbers are computed here with plain NumPy, written apart from the programs.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import dmlc
from dmlc.cli.main import main
from tests.docs.blocks import run_page
from tests.rows import each_row

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted(
    path.parent.relative_to(ROOT / "examples").as_posix() for path in (ROOT / "examples").glob("**/*/README.md")
)
BACKENDS = ["cpu", "numpy", "reference"]

PAGE = [
    "Let us first determine markers of the coins and the",
    "background. These markers are pixels that we can label",
    "unambiguously as either object or background. Here,",
    "the markers are found at the two extreme parts of the",
    "histogram of grey values:",
]


@pytest.fixture
def workplace(tmp_path: Path) -> Path:
    """A folder with a copy of the examples, so nothing is written into the tree."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def arrays(example: str, name: str) -> dict[str, np.ndarray]:
    with np.load(ROOT / "examples" / example / name) as stored:
        return dict(stored)


def run_model(example: str, feeds: dict[str, np.ndarray], backend: str) -> dict[str, np.ndarray]:
    program = dmlc.compile(ROOT / "examples" / example / "model.dml")
    return program.run(feeds, backend=backend)


@pytest.mark.parametrize("example", EXAMPLES)
def test_readme_commands_print_what_the_readme_shows(
    example: str, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the folder of the example."""
    readme = ROOT / "examples" / example / "README.md"
    assert len(readme.read_text(encoding="utf-8").splitlines()) <= 40
    monkeypatch.chdir(workplace / "examples" / example)
    assert run_page(readme) > 0


@each_row("example", EXAMPLES)
def test_every_data_file_is_small_and_described(example: str) -> None:
    folder = ROOT / "examples" / example
    data = [p for p in folder.iterdir() if p.suffix in {".npy", ".npz"}]
    models = [p for p in folder.iterdir() if p.suffix == ".onnx"]
    for path in (*data, *models):
        assert path.stat().st_size <= 600_000
        assert path.name in (folder / "DATA.md").read_text(encoding="utf-8").splitlines()[0]
    assert (folder / "make_data.py").exists() == bool(data)
    assert not models or list(folder.glob("LICENSE*"))


def test_the_index_names_every_example() -> None:
    index = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert [name for name in EXAMPLES if f"]({name})" in index] == EXAMPLES


def test_the_programs_are_formatted(capsys: pytest.CaptureFixture[str]) -> None:
    programs = sorted(map(str, (ROOT / "examples").rglob("*.dml")))
    assert main(["fmt", "--check", *programs]) == 0, capsys.readouterr().err


def nearest_neighbours(data: dict[str, np.ndarray]) -> np.ndarray:
    """The digit of each scan: all pairs, whole numbers, a stable sort, a count of votes."""
    known = data["known"].reshape(-1, 64).astype(np.int64)
    read = []
    for scan in data["scans"].reshape(-1, 64).astype(np.int64):
        nearest = np.argsort(((known - scan) ** 2).sum(axis=1), kind="stable")[:3]
        read.append(np.bincount(data["known_labels"][nearest], minlength=10).argmax())
    return np.array(read)


@pytest.mark.parametrize("backend", BACKENDS)
def test_digits_are_read_alike_everywhere(backend: str) -> None:
    data = arrays("03_language", "digits.npz")
    out = run_model("03_language", {"images": data["scans"], "truth": data["truth"]}, backend)
    expected = nearest_neighbours(data)
    np.testing.assert_array_equal(out["digit"], expected)
    right = expected == data["truth"]
    # Whole numbers below 2^24 divided once: equal on every back end, whatever the order of the sums.
    recall = [np.float32(right[data["truth"] == d].sum()) / np.float32((data["truth"] == d).sum()) for d in range(10)]
    np.testing.assert_array_equal(out["recall"], np.array(recall, np.float32))
    assert out["accuracy"] == pytest.approx(right.mean(), abs=1e-6)
    assert out["accuracy"] >= 0.98


def landmarks_of_crop(maps: np.ndarray, window: np.ndarray) -> tuple[tuple[int, int], np.ndarray]:
    """The cell of the peak of one crop, and its five landmarks in the photograph (CenterFace's decoding)."""
    row, column = (int(i) for i in np.argwhere(maps[0] == maps[0].max())[0])
    values = maps[:, row, column].astype(np.float64)
    height, width = 4 * np.exp(values[1:3])
    top = 4 * (row + values[3] + 0.5) - height / 2
    left = 4 * (column + values[4] + 0.5) - width / 2
    y, x = top + values[5::2] * height, left + values[6::2] * width
    scale = window[2] / 128
    return (row, column), np.stack([window[0] + y * scale, window[1] + x * scale], axis=1)


@pytest.mark.parametrize("backend", BACKENDS)
def test_keypoints_lie_where_numpy_finds_them(backend: str) -> None:
    data = arrays("more/keypoints", "faces.npz")
    out = run_model("more/keypoints", data, backend)
    decoded = [landmarks_of_crop(m, w) for m, w in zip(data["maps"], data["window"], strict=True)]
    np.testing.assert_array_equal(out["cell"], [cell for cell, _ in decoded])
    np.testing.assert_array_equal(out["score"], data["maps"][:, 0].max(axis=(1, 2)))
    points = np.stack([points for _, points in decoded])
    # About ten f32 operations on values below 512, whose steps are 3e-5.
    np.testing.assert_allclose(out["points"], points, atol=1e-3)
    np.testing.assert_allclose(out["face"], points.mean(axis=0), atol=1e-3)
    assert out["spread"] < 8  # the six crops find the same face


@pytest.mark.parametrize("backend", BACKENDS)
def test_scanned_lines_decode_to_their_text(backend: str) -> None:
    data = arrays("more/ctc_greedy", "lines.npz")
    out = run_model("more/ctc_greedy", data, backend)
    assert [bytes(row[row > 0]).decode("ascii") for row in out["text"]] == PAGE
    assert out["length"].tolist() == [len(line) for line in PAGE]
    logits = data["logits"].astype(np.float64)
    likelihood = (np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)).max(axis=2)
    expected = [p[k].mean() for p, k in zip(likelihood, out["keep"], strict=True)]
    np.testing.assert_allclose(out["confidence"], expected, rtol=1e-5)  # f32 softmax over 97 classes


@pytest.mark.parametrize("backend", BACKENDS)
def test_detection_head_agrees_with_plain_numpy(backend: str) -> None:
    folder = ROOT / "examples" / "more/detection_head"
    logits, image, prior = (np.load(folder / f"{name}.npy") for name in ("logits", "image", "prior"))
    out = run_model("more/detection_head", {"logits": logits, "image": image}, backend)
    scores = (logits.astype(np.float64) + prior) * 0.125
    p = np.exp(scores) / np.exp(scores).sum(axis=2, keepdims=True)
    np.testing.assert_array_equal(out["cls"][..., 0], p.argmax(axis=2))
    order = np.argsort(-p, axis=1, kind="stable")[:, :5]
    np.testing.assert_array_equal(out["top_i"], order)
    np.testing.assert_allclose(out["top_p"], np.take_along_axis(p, order, axis=1), rtol=1e-5)
    assert out["peak"].item() == np.flatnonzero(image == image.max())[-1]
    assert (out["focus"].sum(axis=(2, 3)) == 1).all()
    assert (image[out["focus"] == 1] == image.max(axis=(2, 3)).ravel()).all()
    np.testing.assert_allclose(out["spread"].item(), np.sqrt(p.var() + 1e-6), rtol=1e-5)
