"""Selects the machine for the tests of this folder: those marked ``directml`` on a machine with the execution provider.

``--models FOLDER`` names a folder of ``.onnx`` files to run there too.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from directml_provider import missing_provider

sys.path.insert(0, str(Path(__file__).parents[1] / "codegen" / "onnx"))  # the calls of every operation


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--models", metavar="FOLDER", help="a folder of .onnx files, with cases in .npz files beside them")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = missing_provider()
    for item in items:
        if reason and item.get_closest_marker("directml"):
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that takes ``model_file`` runs on every model of the folder."""
    if "model_file" not in metafunc.fixturenames:
        return
    folder = metafunc.config.getoption("--models", default=None)
    found = sorted(Path(folder).glob("*.onnx")) if folder else []
    if found:
        metafunc.parametrize("model_file", found, ids=[path.stem for path in found])
        return
    reason = f"no .onnx files in {folder}" if folder else "no folder of models: --models FOLDER"
    metafunc.parametrize("model_file", [pytest.param(None, marks=pytest.mark.skip(reason=reason))], ids=["none"])
