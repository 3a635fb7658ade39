"""The same source and options give the same bytes, whatever the process: hashes, places in memory, paths, line ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.determinism.corpus import sources, with_crlf, write_corpus
from tools.determinism.runs import Circumstances, differences, run


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples, what once failed, a few random programs and models, models of patterns."""
    folder = tmp_path_factory.mktemp("determinism").resolve() / "sources"
    write_corpus(folder, programs=3, models=2, patterns=1)
    return folder


TARGETS = ["directml", "cpu"]


@pytest.fixture(scope="module")
def first(corpus: Path) -> dict[str, str]:
    """The digests of one run: small examples, all programs, a twelfth of the patterns and of what once failed."""
    share = {"programs": 1, "models": 1, "patterns": 12, "once": 12}
    listed = sources(corpus)
    names = [name for place, name in enumerate(listed) if place % share.get(name.split("/")[0], len(listed)) == 0]
    names += ["examples/03_language/model.dml", "examples/05_builder/model.py", "examples/06_ci/nms.dml"]
    names += [f"examples/more/{name}/model.dml" for name in ("ctc_greedy", "keypoints")]
    assert len(names) > 12
    return run(corpus, names, TARGETS, Circumstances("1", shake=1))


def test_the_same_bytes_in_every_process(corpus: Path, first: dict[str, str], tmp_path: Path) -> None:
    """One other process differs in everything at once: ``python -m tools.determinism`` finds the circumstance."""
    names = list(dict.fromkeys(label.split(" ")[0] for label in first))
    assert len(first) > 10 * len(names)
    assert set(with_crlf(corpus, tmp_path / "crlf")) & set(names)
    how = Circumstances("2", shake=2, folder=tmp_path, relative=True, optimized=True)
    assert differences(first, run(tmp_path / "crlf", names, TARGETS, how)) == []


def test_what_differs_is_found(corpus: Path, first: dict[str, str], tmp_path: Path) -> None:
    """The instrument sees a changed source, an output that is missing, and only the sources that are asked for."""
    name = "examples/more/ctc_greedy/model.dml"
    text = (corpus / name).read_text(encoding="utf-8")
    assert "argmax" in text
    changed = tmp_path / name
    changed.parent.mkdir(parents=True)
    changed.write_text(text.replace("argmax", "argmin"), encoding="utf-8")
    found = run(tmp_path, [name], ["directml"], Circumstances())
    assert {f"{name} directml {file}" for file in ("ledger.json", "saved.dxdispatch.json", "fast.py")} <= set(first)
    assert f"{name} directml out.onnx" in differences(first, found, [name])
    assert differences(first, {}, ["other"]) == [] and differences(first, {}) == list(first)
