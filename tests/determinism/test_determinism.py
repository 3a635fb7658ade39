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


def test_the_same_bytes_in_every_process(corpus: Path, tmp_path: Path) -> None:
    found = sources(corpus)
    names = [name for place, name in enumerate(found) if place % 6 == 0 or not name.startswith("patterns/")]
    assert len(names) > 22
    targets = ["directml", "cpu"]
    first = run(corpus, names, targets, Circumstances("1", shake=1))
    assert len(first) > 10 * len(names)
    second = run(corpus, names, targets, Circumstances("2", shake=2, folder=tmp_path, relative=True))
    assert differences(first, second) == []
    programs = [name for name in with_crlf(corpus, tmp_path / "crlf") if not name.startswith("once/")]
    third = run(tmp_path / "crlf", programs, targets, Circumstances("3", optimized=True))
    assert differences(first, third, programs) == []


def test_what_differs_is_found(corpus: Path, tmp_path: Path) -> None:
    """The instrument sees a changed source, an output that is missing, and only the sources that are asked for."""
    name = "examples/03_ctc_greedy/model.dml"
    text = (corpus / name).read_text(encoding="utf-8")
    assert "argmax" in text
    changed = tmp_path / name
    changed.parent.mkdir(parents=True)
    changed.write_text(text.replace("argmax", "argmin"), encoding="utf-8")
    first, second = (run(folder, [name], ["directml"], Circumstances()) for folder in (corpus, tmp_path))
    assert {f"{name} directml {file}" for file in ("ledger.json", "saved.dxdispatch.json", "fast.py")} <= set(first)
    assert f"{name} directml out.onnx" in differences(first, second)
    assert differences(first, {}, ["other"]) == [] and differences(first, {}) == list(first)
