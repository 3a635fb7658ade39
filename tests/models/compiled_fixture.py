"""A model fixture, compiled once for all tests that read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import onnx

import dmlc

#: The targets that emit ONNX.
TARGETS = ("directml", "cpu", "onnx")


@dataclass
class CompiledFixture:
    """The model at a path, and what it is compiled to. No test changes these."""

    path: Path
    _programs: dict[str, dmlc.Program] = field(default_factory=dict)
    _models: dict[str, onnx.ModelProto] = field(default_factory=dict)

    @cached_property
    def source(self) -> onnx.ModelProto:
        return onnx.load(self.path)

    def program(self, target: str) -> dmlc.Program:
        """The program for a target, compiled when it is first asked for."""
        if target not in self._programs:
            self._programs[target] = dmlc.compile(self.path, target=target)
        return self._programs[target]

    def model(self, target: str) -> onnx.ModelProto:
        """The model for a target, emitted when it is first asked for."""
        if target not in self._models:
            self._models[target] = self.program(target).to_onnx()
        return self._models[target]
