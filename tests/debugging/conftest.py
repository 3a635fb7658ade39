"""Faults planted in dmlc and in a backend, for the searches that must find them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import dmlc
from dmlc.debugging import checks
from dmlc.debugging.insides import inside_model
from dmlc.verifying.onnx_subject import OnnxSubject
from dmlc.verifying.subject import Subject
from tests.debugging import faulty_backend
from tests.debugging.script_server import ScriptServer


@pytest.fixture(scope="session")
def python() -> Iterator[str]:
    """A shell's words for ``python``, as a command that runs a script in this process."""
    server = ScriptServer()
    yield server.python
    server.stop()


@pytest.fixture
def backend(python: str) -> str:
    """A command that checks a model with the faulty backend; the fault is to be added."""
    return f"{python} {shlex.quote(faulty_backend.__file__)} {{model}} {{inputs}}"


@pytest.fixture
def wrong_tanh(monkeypatch: pytest.MonkeyPatch) -> dmlc.Source:
    """A program whose ``tanh`` is compiled to Sin."""
    compiled = checks.compiled_inside

    def wrong(program: dmlc.Program, backend: str | None) -> Any:
        inside = compiled(program, backend)
        for node in inside.model.graph.node:
            if node.op_type == "Tanh":
                node.op_type = "Sin"
        return inside_model(inside.model, None, backend or "")

    monkeypatch.setattr(checks, "compiled_inside", wrong)
    return dmlc.Source("model m(x: f32[4]) -> (y) {\n    a = exp(x) + 1\n    b = tanh(a)\n    return b * x\n}\n")


@pytest.fixture
def wrong_gate(monkeypatch: pytest.MonkeyPatch) -> np.float32:
    """The factor by which a model with a node ``gate`` is wrong on a backend; the reference is right."""
    factor, values = np.float32(1.25), OnnxSubject.run

    def wrong(self: OnnxSubject, feeds: dict[str, Any], wanted: Any = None) -> dict[str, Any]:
        found = values(self, feeds, wanted)
        if self._backend and any(node.name == "gate" for node in self._model.graph.node):
            return {name: array * factor for name, array in found.items()}
        return found

    monkeypatch.setattr(OnnxSubject, "run", wrong)
    monkeypatch.setattr(OnnxSubject, "runs", Subject.runs)
    return factor
