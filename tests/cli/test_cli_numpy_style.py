"""``compile --style``: which form of NumPy code is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dmlc import compile as compile_program
from dmlc.cli import main
from dmlc.diagnostics import Source

PROGRAM = """dml 1
model head(x: f32[N, 64, 100]) -> (best, p) {
    p = softmax(x * 0.5, axes=[1])
    best = argmax(p, axes=[1])
    return best, p
}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("head.dml").write_text(PROGRAM)


def written(*argv: str) -> str:
    assert main.main(["compile", "head.dml", "-o", "out.py", "-q", *argv]) == 0
    return Path("out.py").read_text()


def test_plain_is_the_default() -> None:
    assert written() == written("--style", "plain")
    assert "def _arg(" in written("--style", "fast")


def test_plain_is_what_one_would_write() -> None:
    text = written("--style", "plain")
    assert "np.argmax(p, axis=1, keepdims=True)" in text
    assert "_arg" not in text


def test_both_give_the_same() -> None:
    results: list[Any] = []
    x = np.random.default_rng(0).normal(size=(40, 64, 100)).astype(np.float32)
    for style in ("fast", "plain"):
        namespace: dict[str, Any] = {}
        exec(written("--style", style), namespace)
        results.append(namespace["head"](x))
    (best, p), (plain_best, plain_p) = results
    np.testing.assert_array_equal(best, plain_best)
    np.testing.assert_allclose(p, plain_p, rtol=1e-5)


def test_the_program_gives_either() -> None:
    program = compile_program(Source("head.dml", PROGRAM))
    assert program.to_numpy() == program.to_numpy(style="plain") == written()
    assert program.to_numpy(style="fast") == written("--style", "fast")


def test_stdout_and_a_dry_run_take_it_too(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main.main(["compile", "head.dml", "--emit", "numpy", "-o", "-", "-q", "--style", "fast"]) == 0
    assert b"def _arg(" in capfdbinary.readouterr().out


def test_no_other_style(capsys: pytest.CaptureFixture[str]) -> None:
    assert main.main(["compile", "head.dml", "-o", "out.py", "--style", "short"]) == 2
    assert "--style" in capsys.readouterr().err
