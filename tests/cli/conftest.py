"""Every JSON document that a test of the command line prints keeps to the schema of its verb."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from typing import Any

import pytest

from dmlc.cli import console
from tools.output_schemas.build import schema_of


@cache
def _validator(verb: str) -> Any:
    from jsonschema import Draft202012Validator

    return Draft202012Validator(schema_of(verb))


@pytest.fixture(autouse=True)
def documents_keep_to_their_schemas(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Checks at the end of the test, for an exception inside a command would become its bug. Without ``jsonschema``,
    which the extra ``test`` has, only ``test_output_schemas.py`` fails."""
    printed: list[Mapping[str, Any]] = []
    write = console._write_json

    def kept(body: Mapping[str, Any]) -> None:
        printed.append(console._plain(body))
        write(body)

    monkeypatch.setattr(console, "_write_json", kept)
    yield
    if find_spec("jsonschema") is None:
        return
    for body in printed:
        verb = body["command"] if "command" in body else body["files"][0]["command"]
        wrong = [error.message for error in _validator(verb).iter_errors(body)]
        assert not wrong, f"{verb}: tools/output_schemas declares its documents: {wrong}"
