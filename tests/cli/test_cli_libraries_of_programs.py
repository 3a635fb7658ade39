"""Verbs on a library: a program file without a model."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dmlc.cli.main import main

LIBRARY = "const w: f32[4] = [1, 2, 3, 4]\n\ndef f(x, y, *, axes, k=2) {\n    return x * w + y\n}\n"


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("blocks.dml").write_text(LIBRARY)
    return "blocks.dml"


@pytest.mark.parametrize("verb", ["check", "inspect", "explain"])
def test_verbs_that_take_it(library: str, verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([verb, library]) == 0
    assert capsys.readouterr().out == (
        "blocks.dml: a library of 1 def and 1 const\n  f(x, y, *, axes, k=...)\n  w: f32[4]\n"
    )
    assert main([verb, library, "--format", "json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["schema"], document["ok"]) == (1, True)
    assert document["library"] == {"defs": ["f(x, y, *, axes, k=...)"], "consts": ["w: f32[4]"]}


@pytest.mark.parametrize("form", ["sarif", "github"])
def test_check_in_other_forms(library: str, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", library, "--format", form]) == 0
    assert "error" not in capsys.readouterr().out


def test_its_mistakes_are_found(library: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(library).write_text(LIBRARY.replace("x * w", "x * v"))
    for verb in ("check", "inspect", "explain"):
        assert main([verb, library]) == 1
        err = capsys.readouterr().err
        assert "E0202" in err
        assert "E0209" not in err


def test_fmt_takes_it(library: str) -> None:
    assert main(["fmt", "--check", library]) == 0


@pytest.mark.parametrize("words", [["compile"], ["run", "--random", "1"]])
def test_verbs_that_need_a_model(library: str, words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main([words[0], library, *words[1:]]) == 1
    err = capsys.readouterr().err
    assert "E0209" in err
    assert 'use f from "blocks.dml"' in err


def test_include(library: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "own").mkdir()
    head = 'use f from "blocks.dml"\nmodel m(x: f32[2, 4]) -> (y) {\n    return f(x, x, axes=[0])\n}\n'
    Path("own/head.dml").write_text(head)
    for words in (["compile"], ["check"], ["run", "--random", "1"], ["inspect"], ["explain"]):
        assert main([words[0], "own/head.dml", "--include", str(tmp_path), *words[1:]]) == 0
        assert main([words[0], "own/head.dml", *words[1:]]) == 1
    assert main(["verify", "own/head.dml", "own/head.onnx", "--include", "."]) == 0
    assert main(["compile", "own/head.dml", "--include", "nothing"]) == 2
    assert "nothing" in capsys.readouterr().err
