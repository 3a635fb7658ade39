"""The stubs are what the declarations say, and the package is what the stubs say."""

from __future__ import annotations

import ast
import importlib

import pytest

import dmlc
from tools import builder_stubs as stub


def test_stubs_are_up_to_date() -> None:
    old = [path.as_posix() for path, text in stub.stubs().items() if path.read_text(encoding="utf-8") != text]
    assert old == [], "run: python -m tools.builder_stubs --write"


@pytest.mark.parametrize("name", stub.LAZY_PACKAGES)
def test_a_lazy_package_gives_and_lists_what_its_stub_promises(name: str) -> None:
    package = importlib.import_module(f"dmlc.{name}")
    (names,) = [node.value for node in ast.parse(stub.lazy_stub(f"dmlc.{name}")).body if isinstance(node, ast.Assign)]
    assert sorted(ast.literal_eval(names)) == package.__all__ == dir(package)
    for one in package.__all__:
        assert getattr(package, one) is not None
    with pytest.raises(AttributeError, match=f"module 'dmlc.{name}' has no attribute 'nosuch'"):
        _ = package.nosuch


def test_the_package_gives_what_its_stub_promises() -> None:
    tree = ast.parse(stub.package_stub())
    imported = [a.asname for node in tree.body if isinstance(node, ast.ImportFrom) for a in node.names]
    for name in imported:
        assert name is not None
        assert getattr(dmlc, name) is not None
    (names,) = [node.value for node in tree.body if isinstance(node, ast.Assign)]
    assert sorted(ast.literal_eval(names)) == sorted(dmlc.__all__)
