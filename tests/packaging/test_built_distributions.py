"""The distributions are whole: asked of a build, which fetches setuptools."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tools.distribution import faults


@pytest.mark.network
def test_the_wheel_of_the_sdist_is_that_of_the_tree_and_nothing_is_left_out(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if request.config.getoption("markexpr") != "network":
        pytest.skip("fetches setuptools; run it with: pytest -m network tests/packaging")
    if shutil.which("uv") is None:
        pytest.skip("uv is not installed")
    assert faults(tmp_path) == []
