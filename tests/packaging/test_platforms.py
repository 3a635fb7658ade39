"""The requirements of dmlc on each platform and Python: one ONNX Runtime each, with a wheel where there can be one."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tests.rows import each_row

ROOT = Path(__file__).parents[2]
PROJECT = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
PAGE = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
#: ``sys.platform`` and ``platform.machine()`` by uv's name of a platform.
PLATFORMS = {
    "x86_64-pc-windows-msvc": ("win32", "AMD64"),
    "aarch64-pc-windows-msvc": ("win32", "ARM64"),
    "x86_64-unknown-linux-gnu": ("linux", "x86_64"),
    "aarch64-unknown-linux-gnu": ("linux", "aarch64"),
    "aarch64-apple-darwin": ("darwin", "arm64"),
    "x86_64-apple-darwin": ("darwin", "x86_64"),
}
#: No version on PyPI has a wheel of onnxruntime for Intel Macs after 1.23, which is older than Python 3.14.
WITHOUT_WHEELS = {
    ("x86_64-apple-darwin", "3.14"): ("onnxruntime",),
}


def requirements() -> list[Requirement]:
    (block,) = re.findall(r"^dependencies = \[\n(.*?)^\]", PROJECT, re.DOTALL | re.MULTILINE)
    return [Requirement(text) for text in re.findall(r'^    "(.*?)",', block, re.MULTILINE)]


def runtime_of(platform: str, python: str) -> str:
    """The one ONNX Runtime that is required."""
    system, machine = PLATFORMS[platform]
    environment = {"sys_platform": system, "platform_machine": machine, "python_version": python}
    required = [r for r in requirements() if r.marker is None or r.marker.evaluate(environment)]
    (runtime,) = [r.name for r in required if r.name.startswith("onnxruntime")]
    assert {r.name for r in required} == {"lark", "msgspec", "numpy", "onnx", runtime}
    return runtime


@each_row("platform", PLATFORMS)
def test_directml_is_required_where_it_has_wheels(platform: str) -> None:
    expected = "onnxruntime-directml" if platform == "x86_64-pc-windows-msvc" else "onnxruntime"
    assert {runtime_of(platform, python) for python in PYTHONS} == {expected}


def test_the_page_says_where_dmlc_cannot_be_installed() -> None:
    rows = re.findall(r"^\| (\S.*?) \| (.*?) \| (.*?) \|$", PAGE, re.MULTILINE)
    assert any("Windows, Arm" in row[0] and "3.11" in row[1] for row in rows)
    assert any("macOS, Intel" in row[0] and row[1].endswith("3.13") for row in rows)


def uv() -> list[str]:
    if importlib.util.find_spec("uv"):
        return [sys.executable, "-m", "uv"]
    found = shutil.which("uv")
    if found is None:
        pytest.skip("needs uv: pip install uv")
    return [found]


@pytest.mark.network
@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("platform", PLATFORMS)
def test_wheels_exist(platform: str, python: str, request: pytest.FixtureRequest) -> None:
    if request.config.getoption("markexpr") != "network":
        pytest.skip("asks PyPI; run it with: pytest -m network tests/packaging")
    done = subprocess.run(
        [*uv(), "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--only-binary", ":all:",
         "--python-platform", platform, "--python-version", python, str(ROOT / "pyproject.toml")],
        capture_output=True, text=True, timeout=300, env={**os.environ, "MACOSX_DEPLOYMENT_TARGET": "14.0"},
    )  # fmt: skip
    lacking = WITHOUT_WHEELS.get((platform, python))
    if lacking is not None:
        assert done.returncode != 0 and any(f"{name}{{" in done.stderr or f"{name}>" in done.stderr for name in lacking)
        return
    assert done.returncode == 0, done.stderr
    pinned = dict(line.split("==") for line in done.stdout.split())
    print(platform, python, {name: version for name, version in pinned.items() if name.startswith(("onnx", "numpy"))})
    assert runtime_of(platform, python) in pinned
    assert [name for name in pinned if name.startswith("onnxruntime")] == [runtime_of(platform, python)]
