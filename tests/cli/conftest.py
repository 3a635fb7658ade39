"""Every JSON document that a test of the command line prints keeps to the schema of its verb."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from dmlc.cli import console
from dmlc.cli.schemas import schema_of
from tests.command_line import Refused, Run


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
        printed.append(json.loads(write(body)))

    monkeypatch.setattr(console, "_write_json", kept)
    yield
    if find_spec("jsonschema") is None:
        return
    for body in printed:
        verb = body["command"] if "command" in body else body["files"][0]["command"]
        wrong = [error.message for error in _validator(verb).iter_errors(body)]
        assert not wrong, f"{verb}: its answers declare its documents: {wrong}"


@pytest.fixture
def refused(command_line: Run) -> Refused:
    """A command that fails with that exit code and code, and changes no file of the working directory: its message."""

    def contents() -> dict[Path, bytes | None]:
        return {path: path.read_bytes() if path.is_file() else None for path in Path().rglob("*")}

    def run(exit_code: int, code: str, *words: str) -> str:
        before = contents()
        got, out, err = command_line(*words)
        assert got == exit_code, err
        assert out == ""
        assert f"error[{code}" in err
        assert len(err) < 3000
        assert contents() == before
        return err

    return run
