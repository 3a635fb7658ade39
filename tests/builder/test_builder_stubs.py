"""The stubs are what the declarations say, and the package is what the stubs say."""

from __future__ import annotations

import ast

import dmlc
from tools import builder_stubs as stub


def test_stubs_are_up_to_date() -> None:
    command = "python -m tools.builder_stubs --write"
    assert stub.OPERATIONS_STUB.read_text(encoding="utf-8") == stub.operations_stub(), f"run: {command}"
    assert stub.PACKAGE_STUB.read_text(encoding="utf-8") == stub.package_stub(), f"run: {command}"


def test_the_package_gives_what_its_stub_promises() -> None:
    tree = ast.parse(stub.package_stub())
    imported = [a.asname for node in tree.body if isinstance(node, ast.ImportFrom) for a in node.names]
    for name in imported:
        assert name is not None
        assert getattr(dmlc, name) is not None
    (names,) = [node.value for node in tree.body if isinstance(node, ast.Assign)]
    assert sorted(ast.literal_eval(names)) == sorted(dmlc.__all__)
